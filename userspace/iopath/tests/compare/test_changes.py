# SPDX-License-Identifier: GPL-2.0
"""How a change is written."""

from iopath.compare.changes import percent


def test_a_figure_that_was_not_positive_has_no_percentage() -> None:
    """Its growth is beyond any limit: -3 to +40 are not -1,433 %."""
    assert percent(-3.0, 40.0) is None
    assert percent(0.0, 40.0) is None
    assert percent(40.0, 50.0) == 25.0
