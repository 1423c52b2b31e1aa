# SPDX-License-Identifier: GPL-2.0
"""The table of rungs."""

from iopath.rungs.builtin import LADDER, RUNGS


def test_each_rung_is_there_once() -> None:
    names = [rung.name for rung in RUNGS]
    assert len(set(names)) == len(names)
    assert set(LADDER) <= set(RUNGS)
