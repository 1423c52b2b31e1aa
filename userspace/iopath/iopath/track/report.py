# SPDX-License-Identifier: GPL-2.0
"""What views show of a site: what was measured on the kernels of its watches. Its chart and its
requests are those of the newest two kernels of each watch, its history that of the newest ones."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from iopath.base.errors import NotMeasured
from iopath.results import result
from iopath.results.result import ExactResult
from iopath.show import figures, stacks
from iopath.show.figures import Figure
from iopath.show.stacks import Stacks
from iopath.track import kcidb, site, store
from iopath.track.index import Index
from iopath.track.watches import Config

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

_HISTORY = 20  # kernels of a watch; the page has all


@dataclass
class SiteReport:
    """The site of a *folder*."""

    folder: Path
    config: Config
    index: Index

    def json(self) -> str:
        return site.dump(site.points(self.config, self.index))

    def html(self) -> str:
        return site.alone(site.points(self.config, self.index))

    def markdown(self) -> str:
        """The steps."""
        lines = [f"# {self.config.title}", "", "| kernel | after | rung | change | functions |"]
        lines.append("|---" * 5 + "|")
        for step in self.index.steps():
            head = [f"{step.after.watch} {step.after.title}", step.before.title]
            rows = [[one.title, one.text, one.functions] for one in step.changes]
            rows += [["", f"not judged: {'; '.join(step.differing)}", ""]] * bool(step.differing)
            lines += [f"| {' | '.join([*head, *row])} |" for row in rows]
        return "\n".join(lines) + "\n"

    def figures(self) -> Iterator[Figure]:
        return (one for whole in self._results() for one in figures.of_result(whole))

    def stacks(self) -> Iterator[Stacks]:
        return (one for whole in self._results() for one in stacks.of_result(whole))

    def requests(self) -> tuple[ExactResult, None]:
        return self._newest(2), None

    def chart(self) -> "Chart":
        from iopath.show import charts  # slow to load

        return charts.ladder(self._newest(2))

    def history(self) -> "Chart":
        from iopath.show import charts

        return charts.history(self._newest(_HISTORY))

    def kcidb(self) -> str:
        return json.dumps(kcidb.export(self.config, self.index), indent=1, sort_keys=True) + "\n"

    def _newest(self, number: int) -> ExactResult:
        """The result of the newest kernels, a *number* of each watch."""
        if not (found := list(self._results(number))):
            raise NotMeasured("no kernel could be measured")
        return result.join(found)

    def _results(self, newest: int = 0) -> Iterator[ExactResult]:
        """The result of each kernel, which is named by its watch, too. *newest* is how many of each
        watch, 0 for all."""
        for points in self.index.points().values():
            for point in [point for point in points if not point.error][-newest:]:
                whole = result.make(store.read(self.folder / point.path)[1])
                yield result.renamed(whole, {point.title: f"{point.watch} {point.title}"})
