# SPDX-License-Identifier: GPL-2.0
"""Progress on standard error."""

import io

import pytest
from rich.console import Console

from iopath.base.progress import Reporter


def said(*, terminal: bool, kernels: list[str]) -> list[str]:
    """The lines with a question mark while two kernels get figures."""
    out = io.StringIO()
    reporter = Reporter(Console(file=out, force_terminal=terminal, width=80))
    with reporter.running(2, kernels):
        if reporter.shows_figures:
            reporter.figure("dio.pread read", "old", 2647.47)
            reporter.figure("raw.pread read", "old", 1748.35)
            reporter.figure("dio.pread read", "new", 2883.23)
    return [line.strip() for line in out.getvalue().splitlines() if line.rstrip().endswith(" ?")]


def test_first_figures_are_shown_and_marked() -> None:
    """A row is shown when all kernels have it, with a mark that says that it is not decided."""
    (line,) = said(terminal=True, kernels=["old", "new"])
    assert line.split()[-5:] == ["read", "2,647.47", "2,883.23", "+235.76", "?"]


@pytest.mark.parametrize(("terminal", "kernels"), [(False, ["old", "new"]), (True, ["old"])])
def test_figures_are_not_shown(terminal: bool, kernels: list[str]) -> None:
    """Not in a file, and not of one kernel."""
    assert said(terminal=terminal, kernels=kernels) == []
