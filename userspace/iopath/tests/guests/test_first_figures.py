# SPDX-License-Identifier: GPL-2.0
"""What a terminal shows while guests run."""

import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from helpers.command import build_into, copy_states
from iopath.base.cache import Cache
from iopath.base.progress import Reporter
from iopath.guest.machine import Machine
from iopath.measure.session import Session
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings

KERNELS = ("debian:6.1", "debian:7.2")


@pytest.mark.guest
def test_first_figures(session: Session, tmp_path: Path) -> None:
    """They are those of the boot that checks the first one, also where string instructions copy."""
    settings = Settings(select(["dio.pread", "buf.pread"]), ops=["read"], boots=2)
    machine, root = Machine(), tmp_path / "cache"
    for kernel in KERNELS:
        build_into(session, kernel, root)
        copy_states(session, root, [machine.seed, machine.seed + 1], machine.cmdline, kernel)
    out = io.StringIO()
    reporter = Reporter(Console(file=out, force_terminal=True, width=80))
    found = Session(Cache(root), reporter).results(KERNELS, settings)
    figures = zip(*(found[kernel].results for kernel in KERNELS), strict=True)
    expected = [
        f"{old.title} {old.boots[1]:,.2f} {new.boots[1]:,.2f} {new.boots[1] - old.boots[1]:+,.2f} ?"
        for old, new in figures
    ]
    shown = Text.from_ansi(out.getvalue()).plain.splitlines()
    rows = [line for line in shown if line.rstrip().endswith(" ?")]
    assert [" ".join(row.split()) for row in rows] == expected
