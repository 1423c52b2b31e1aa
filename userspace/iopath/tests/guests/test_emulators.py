# SPDX-License-Identifier: GPL-2.0
"""QEMU of another Debian suite: it is fetched, and runs without being installed."""

import pytest

from iopath.base.arch import X86_64
from iopath.base.errors import UsageError
from iopath.guest.machine import Machine, Qemu
from iopath.kernels import emulators
from iopath.measure.session import Session
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings

EQUAL = 0.01  # instructions per I/O


def fetched(session: Session, suite: str) -> Qemu:
    return emulators.emulator(suite, X86_64, session.cache, session.apt, lambda what, part: None)


def test_an_unknown_suite_is_refused(session: Session) -> None:
    with pytest.raises(UsageError, match="trixi: not a suite of Debian: did you mean 'trixie'"):
        fetched(session, "trixi")


@pytest.mark.guest
@pytest.mark.parametrize(
    ("suite", "version"), [("bookworm", "7.2."), ("trixie", "10.0."), ("trixie-backports", "11.")]
)
def test_it_runs(session: Session, suite: str, version: str) -> None:
    qemu = fetched(session, suite)
    assert qemu.version.startswith(version)
    assert qemu.sandbox


def figures(session: Session, kernel: str, suite: str, *names: str) -> dict[str, float]:
    """The figures of rungs with the QEMU of a suite; without names, of the whole ladder."""
    settings = Settings(rungs=select(names), machine=Machine(emulator=suite))
    result = session.measure([kernel], settings)
    assert result.qemu.version == fetched(session, suite).version
    return {record.title: record.instructions_per_io for record in result.results}


def different(one: dict[str, float], other: dict[str, float]) -> dict[str, tuple[float, float]]:
    assert one.keys() == other.keys()
    return {
        title: (one[title], other[title])
        for title in one
        if other[title] != pytest.approx(one[title], abs=EQUAL)
    }


@pytest.mark.guest
@pytest.mark.parametrize("kernel", ["debian:6.1", "debian:6.12-arm64"])
def test_one_figure(session: Session, kernel: str) -> None:
    """A system call, a batch, string instructions, which depend on the CPU, and memory that is
    filled on the stack, whose place may be random."""
    rungs = ("syscall", "raw.pread", "dio.aio.100", "dio.uring", "buf.pread")
    first = figures(session, kernel, "bookworm", *rungs)
    assert len(first) == 9
    for suite in ("trixie", "trixie-backports"):
        assert different(first, figures(session, kernel, suite, *rungs)) == {}


@pytest.mark.guest
@pytest.mark.long
@pytest.mark.parametrize("suite", ["trixie", "trixie-backports"])
@pytest.mark.parametrize("kernel", ["debian:6.1", "debian:7.2", "debian:6.12-arm64"])
def test_one_ladder(session: Session, kernel: str, suite: str) -> None:
    """Documentation/machine.rst has the command that shows the figures side by side."""
    first = figures(session, kernel, "bookworm")
    assert len(first) > 30
    assert different(first, figures(session, kernel, suite)) == {}
