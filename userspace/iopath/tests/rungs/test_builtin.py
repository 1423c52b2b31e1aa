# SPDX-License-Identifier: GPL-2.0
"""The table of rungs."""

import pytest

from iopath.base.errors import UsageError
from iopath.rungs.builtin import LADDER, RUNGS, select


def test_each_rung_is_there_once() -> None:
    names = [rung.name for rung in RUNGS]
    assert len(set(names)) == len(names)
    assert set(LADDER) <= set(RUNGS)


def test_rungs_by_pattern() -> None:
    names = [rung.name for rung in RUNGS]
    assert select([]) == list(RUNGS[: names.index("mq.uring") + 1])
    assert select(["*"]) == list(RUNGS)
    assert [rung.name for rung in select(["dio.aio.*", "syscall"])][:2] == ["syscall", "dio.aio.1"]
    with pytest.raises(UsageError, match="unknown rung 'raw': did you mean"):
        select(["raw"])


def test_a_rung_has_offsets_in_a_registered_buffer() -> None:
    """What an I/O costs there may grow by the page: they are 64 pages on average."""
    (rung,) = select(["dio.uring.onebuf"])
    assert {"--fixedbufs", "--onebuf", f"--iodepth={rung.batch}"} <= {*rung.options}
    assert rung.batch == 128
    assert rung.fits(4096)
