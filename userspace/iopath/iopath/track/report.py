# SPDX-License-Identifier: GPL-2.0
"""What views show of a site: all that was measured on the kernels of its watches."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iopath.results import result
from iopath.results.result import ExactResult
from iopath.show import figures, stacks
from iopath.show.figures import Figure
from iopath.show.stacks import Stacks
from iopath.track import kcidb, site, store
from iopath.track.index import Index
from iopath.track.watches import Config


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

    def kcidb(self) -> str:
        return json.dumps(kcidb.export(self.config, self.index), indent=1, sort_keys=True) + "\n"

    def _results(self) -> Iterator[ExactResult]:
        """The result of each kernel, which is named by its watch, too."""
        for points in self.index.points().values():
            for point in (point for point in points if not point.error):
                whole = result.make(store.read(self.folder / point.path)[1])
                yield result.renamed(whole, {point.title: f"{point.watch} {point.title}"})
