# SPDX-License-Identifier: GPL-2.0
"""What views show of a result: a kind of report for each kind of result. A view fits a kind that
has the method which the view shows (views.py)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iopath.compare.changes import Comparison
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import ExactResult, HardwareResult, Result
from iopath.show import figures, stacks
from iopath.show.figures import Figure
from iopath.show.stacks import Stacks

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart


@dataclass
class TimesReport:
    """A result, and if its kernels are compared with the first one, how they differ."""

    result: Result
    comparison: Comparison | None = None
    layers: Layers | None = None

    def json(self) -> str:
        data = result.dump(self.result)
        if self.comparison:
            data["comparison"] = result.dump(self.comparison)
        return json.dumps(data, indent=1) + "\n"

    def figures(self) -> Iterator[Figure]:
        return figures.of_result(self.result)


class SamplesReport(TimesReport):
    """Times by function."""

    def html(self) -> str:
        from iopath.show import page

        return page.render(self.result, self.comparison, self.layers)

    def stacks(self) -> Iterator[Stacks]:
        return stacks.of_result(self.result)


class CountsReport(TimesReport):
    """Counts of instructions."""

    html = SamplesReport.html

    def markdown(self) -> str:
        from iopath.show import markdown  # slow to load

        return markdown.markdown(self.result, self.comparison)

    def requests(self) -> tuple[Result, Comparison | None]:
        return self.result, self.comparison

    def chart(self) -> "Chart":
        from iopath.show import charts  # slow to load

        return charts.ladder(self.result)

    def history(self) -> "Chart":
        from iopath.show import charts

        return charts.history(self.result)


class ProfileReport(CountsReport, SamplesReport):
    """Counts by function, of rungs or of a program by its parts."""


_KINDS = {
    (ExactResult, True): ProfileReport, (ExactResult, False): CountsReport,
    (HardwareResult, True): SamplesReport, (HardwareResult, False): TimesReport,
}  # fmt: skip


def report(
    whole: Result, comparison: Comparison | None = None, layers: Layers | None = None
) -> TimesReport:
    """The report on a result."""
    return _KINDS[type(whole), whole.profiled](whole, comparison, layers)
