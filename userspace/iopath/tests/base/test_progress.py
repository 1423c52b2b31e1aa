# SPDX-License-Identifier: GPL-2.0
"""Progress on standard error."""

import io

import pytest
from rich.console import Console

from iopath.base.progress import Reporter


def said(*, terminal: bool, kernels: list[str], known: bool = False) -> list[str]:
    """The lines with a question mark while two kernels get figures, the second one *known*."""
    out = io.StringIO()
    reporter = Reporter(Console(file=out, force_terminal=terminal, width=80))
    with reporter.running(2, kernels):
        if reporter.shows_figures:
            reporter.figure("dio.pread read", "old", 2647.47)
            reporter.figure("raw.pread read", "old", 1748.35)
            reporter.figure("dio.pread read", "new", 2883.23, known=known)
            reporter.figure("dio.pread read", "old", 2647.48)
    return [line.strip() for line in out.getvalue().splitlines() if line.rstrip().endswith(" ?")]


def test_first_figures_are_shown_and_marked() -> None:
    """A row is shown when all kernels have it, with a mark that says that it is not decided."""
    (line,) = said(terminal=True, kernels=["old", "new"])
    assert line.split()[-5:] == ["read", "2,647.47", "2,883.23", "+235.76", "?"]


def test_what_is_known_is_not_shown() -> None:
    """The result follows at once."""
    assert said(terminal=True, kernels=["old", "new"], known=True) == []


def test_figures_of_a_known_kernel() -> None:
    """It is in the row of a kernel that is counted."""
    out = io.StringIO()
    reporter = Reporter(Console(file=out, force_terminal=True, width=80))
    with reporter.running(2, ["old", "new"]):
        reporter.figure("dio.pread read", "old", 2647.47, known=True)
        reporter.figure("dio.pread read", "new", 2883.23)
    assert "+235.76 ?" in out.getvalue()


@pytest.mark.parametrize(("terminal", "kernels"), [(False, ["old", "new"]), (True, ["old"])])
def test_figures_are_not_shown(terminal: bool, kernels: list[str]) -> None:
    """Not in a file, and not of one kernel."""
    assert said(terminal=terminal, kernels=kernels) == []
