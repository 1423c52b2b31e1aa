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


@pytest.mark.guest
@pytest.mark.parametrize("suite", ["trixie", "trixie-backports"])
def test_it_measures(session: Session, suite: str) -> None:
    """The clock and the plugin agree there, and the result says which emulator it was."""
    settings = Settings(rungs=select(["syscall"]), machine=Machine(emulator=suite), profile=True)
    result = session.measure(["debian:6.1"], settings)
    assert result.qemu.version == fetched(session, suite).version
    (record,) = result.results
    assert record.profile.instructions == pytest.approx(record.instructions_per_io, abs=0.1)
