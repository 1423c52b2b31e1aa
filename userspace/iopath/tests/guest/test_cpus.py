# SPDX-License-Identifier: GPL-2.0
"""The CPUs of our own."""

import hashlib
import subprocess

import pytest

from iopath.base.arch import AARCH64, OWN_CPU, X86_64
from iopath.base.sources import source_root
from iopath.guest import cpus
from iopath.guest.machine import Machine, Qemu


def test_the_documentation_has_the_table() -> None:
    text = (source_root() / "Documentation/machine.rst").read_text()
    assert cpus.table() in text, f"machine.rst should have:\n{cpus.table()}"


def test_no_feature_is_named_twice() -> None:
    names = [name for row in cpus.FEATURES for name in row.names.split()]
    assert sorted(set(names)) == sorted(names)


def test_a_cpu_of_other_features_has_another_name() -> None:
    """Results name the CPU: when this fails, raise the number in OWN_CPU."""
    name = cpus.qemu_name(OWN_CPU, X86_64)
    assert (OWN_CPU, hashlib.sha256(name.encode()).hexdigest()[:16]) == (
        "iopath-1",
        "8257a223a5e0a0ed",
    )


def test_names() -> None:
    assert Machine("iopath-1", arch=AARCH64).qemu_cpu == "neoverse-n1,cntfrq=1000000000"
    assert Machine("Haswell").qemu_cpu == "Haswell"
    assert Machine("iopath-1").model == "iopath-1"


@pytest.mark.parametrize(("more", "starts"), [("", True), (",pcid=on", False)])
def test_qemu_has_all_of_it(more: str, starts: bool) -> None:
    """The installed QEMU has them. It does not start with a feature that it cannot emulate."""
    cpu = Machine("iopath-1").qemu_cpu
    words = [*Qemu.find().words, "-machine", "q35", "-accel", "tcg", "-cpu", f"{cpu}{more}"]
    words += ["-nodefaults", "-display", "none", "-S", "-monitor", "stdio"]
    done = subprocess.run(words, input="quit\n", capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == starts, done.stderr
