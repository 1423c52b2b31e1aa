# SPDX-License-Identifier: GPL-2.0
"""The emulator."""

from dataclasses import replace
from pathlib import Path

import pytest

from iopath.base.arch import X86_64
from iopath.base.cache import Cache
from iopath.base.errors import IopathError
from iopath.guest.guest import command
from iopath.guest.machine import Machine, Qemu, _digest, _Said
from iopath.rungs.builtin import RUNGS
from iopath.rungs.runs import Settings


def test_one_that_is_too_old_is_refused(tmp_path: Path) -> None:
    """It lacks the machines that guests run on."""
    program = tmp_path / "qemu"
    program.write_text("#!/bin/sh\necho QEMU emulator version 7.1.0\n")
    program.chmod(0o755)
    with pytest.raises(IopathError, match=r"is version 7\.1\.0: 7\.2 or newer is needed"):
        Qemu.started_by((str(program),), program, X86_64)


def test_what_it_says_is_kept_while_it_is_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / X86_64.qemu
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")

    def write(version: str) -> None:
        program.write_text(
            f'#!/bin/sh\necho >>{tmp_path}/started\n[ "$1" = -L ] || echo version {version}\n'
        )
        program.chmod(0o755)

    digests = []

    def find() -> tuple[str, int]:
        (tmp_path / "started").write_text("")
        found = Qemu.find(X86_64, Cache(tmp_path / "cache"))
        digests.append(found.digest)
        return found.version, len((tmp_path / "started").read_text())

    write("8.0.0")
    version, started = find()
    assert (version, started > 0) == ("8.0.0", True)
    assert find() == ("8.0.0", 0)
    write("10.0.0")
    version, started = find()
    assert (version, started > 0) == ("10.0.0", True)
    assert digests[0] == digests[1] != digests[2]
    # A cache that cannot be written is no reason to fail.
    (tmp_path / "cache" / "qemu").rename(tmp_path / "cache" / "other")
    (tmp_path / "cache" / "qemu").touch()
    assert find()[0] == "10.0.0"


# QEMU.


def test_qemu_is_known_by_its_firmware(tmp_path: Path) -> None:
    """It is identified by firmware and program, wherever they are."""
    program = tmp_path / "bin/qemu"
    program.parent.mkdir()
    firmware = tmp_path / "share"
    firmware.mkdir()

    def digest(text: str) -> str:
        said = _Said("8.0.0", (), [str(firmware)], text)
        return _digest(said, program, X86_64)

    seen = {digest("one"), digest("two")}
    for path in (firmware / "bios-256k.bin", firmware / "kvmvapic.bin",
                 tmp_path / "lib/x/qemu/accel-tcg-x86_64.so"):  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        for text in ("one", "two"):
            path.write_text(text)
            seen.add(digest("one"))
    assert len(seen) == 8


def test_qemu_forbids_itself_what_it_does_not_need() -> None:
    qemu = Qemu.find()
    words = command(qemu, Machine(), Path("vmlinuz"), Path("folder"))
    assert ("-sandbox" in words) == bool(qemu.sandbox)
    without = command(replace(qemu, sandbox=()), Machine(), Path("vmlinuz"), Path("folder"))
    assert "-sandbox" not in without


def test_boots_differ_in_the_seed_alone() -> None:
    asked = Machine(cmdline="nokaslr mitigations=off", seed=5)
    machines = Settings(RUNGS, machine=asked, boots=3).machines()
    assert [machine.seed for machine in machines] == [5, 6, 7]
    assert [replace(machine, seed=5) for machine in machines] == [asked] * 3
