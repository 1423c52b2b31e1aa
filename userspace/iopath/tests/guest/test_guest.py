# SPDX-License-Identifier: GPL-2.0
"""The state of a machine, without a guest."""

import subprocess
from pathlib import Path

import pytest

from iopath.guest import channel, guest
from iopath.guest.guest import StateError
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import Start

CHANNEL = b"\x0eregion/channel" + channel.SIZE.to_bytes(8, "big")


def test_the_channel_is_mapped_nowhere() -> None:
    """The address of the channel in a saved state becomes 0, and nothing else changes."""
    state = b"before" + CHANNEL + bytes(range(8)) + b"after"
    assert guest._unmapped(state) == b"before" + CHANNEL + bytes(8) + b"after"


@pytest.mark.parametrize("state", [b"", b"channel", (CHANNEL + bytes(8)) * 2])
def test_a_state_without_the_channel_is_refused(state: bytes) -> None:
    with pytest.raises(StateError, match="in another way"):
        guest._unmapped(state)


CLOCK = b"\x0ctimer/icount" + (1).to_bytes(4, "big")


def clock(ahead: int, executed: int) -> bytes:
    return CLOCK + ahead.to_bytes(8, "big", signed=True) + executed.to_bytes(8, "big")


@pytest.mark.parametrize(("shift", "ahead"), [(0, -5), (3, 7 * 1000 - 5)])
def test_the_clock_of_a_saved_state_goes_on(shift: int, ahead: int) -> None:
    """It has the same time when each instruction takes 1 ns."""
    state = b'before "timer/icount"' + clock(-5, 1000) + b"after"
    wanted = b'before "timer/icount"' + clock(ahead, 1000) + b"after"
    assert guest._with_usual_clock(state, shift) == wanted


@pytest.mark.parametrize("state", [b"", b"timer/icount", clock(0, 0) * 2])
def test_a_state_with_another_clock_is_refused(state: bytes) -> None:
    with pytest.raises(StateError, match="in another way"):
        guest._with_usual_clock(state, 3)


PATTERN = b"\xaa" * (32 << 20)  # a debug kernel fills its free memory with it
AT = 8 << 20


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_machine_goes_on_with_its_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpus: int
) -> None:
    """A machine that has mapped the channel, and has no kernel, is saved and loaded. What it then
    writes is not in the saved memory. That of several CPUs is compressed."""
    words = guest.command

    def without_kernel(*args: object, **options: object) -> list[str]:
        found = words(*args, **options)
        return found[: found.index("-kernel")]

    def machine(state: Path | None = None) -> guest._Guest:
        start, log = Start(Path("/dev/null")), tmp_path / "log"
        return guest._Guest(
            Qemu.find(), Machine(memory=64, cpus=cpus), start, log,
            lambda records: None, state=state, saved=not state,
        )  # fmt: skip

    monkeypatch.setattr(guest, "command", without_kernel)
    state = tmp_path / "state"
    with machine() as one:
        one._started = b"said"
        while one._qmp.execute("query-status")["running"] and not _mapped(one):
            pass
        one._qmp.execute("stop")
        with one.ram.open("r+b") as file:
            file.seek(AT)
            file.write(PATTERN)
        one.save(state)
    kept = tmp_path / ("ram" if cpus == 1 else "ram.zst")
    assert kept.stat().st_blocks * 512 < (64 << 20 if cpus == 1 else 1 << 20)
    read = ["cat"] if cpus == 1 else ["zstd", "-dc"]
    saved = subprocess.check_output([*read, kept])
    assert (len(saved), saved[AT : AT + len(PATTERN)]) == (64 << 20, PATTERN)
    stored = kept.read_bytes()
    with machine(state) as other:
        other.wait_started()
        assert other._started == b"said"
        assert _mapped(other)
        path = tmp_path / "again"
        other._qmp.execute("pmemsave", val=0, size=64 << 20, filename=str(path))
        again = path.read_bytes()
        assert (again[: 640 << 10], again[1 << 20 :]) == (saved[: 640 << 10], saved[1 << 20 :])
        other._qmp.execute("cont")
        assert other._qmp.execute("query-status")["running"]
    assert kept.read_bytes() == stored


def _mapped(machine: guest._Guest) -> bool:
    """Whether the channel has an address."""
    return any(
        region["bar"] == 2 and region["size"] == channel.SIZE and region["address"] > 0
        for bus in machine._qmp.execute("query-pci")
        for device in bus["devices"]
        for region in device["regions"]
    )
