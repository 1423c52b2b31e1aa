# SPDX-License-Identifier: GPL-2.0
"""What is said of the running machine."""

import platform

import pytest

from iopath.base.arch import ARCHES, this_machine
from iopath.base.errors import IopathError
from iopath.guest.machine import Qemu
from iopath.host import survey
from iopath.results import kernelinfo


def test_survey_reads_this_machine() -> None:
    machine = survey.survey(0)
    assert machine.cpu_model
    assert machine.cpus >= 1
    assert survey.describe().arch == platform.machine()


# /proc/cpuinfo of a machine with CPUs of two models, as arm64 kernels print it.
ARM64_CPUS = """\
processor\t: 0
BogoMIPS\t: 48.00
Features\t: fp asimd evtstrm aes crc32 atomics
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x2
CPU part\t: 0xd05
CPU revision\t: 0

processor\t: 1
BogoMIPS\t: 48.00
Features\t: fp asimd evtstrm aes crc32 atomics
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0b
CPU revision\t: 1
"""


@pytest.mark.parametrize(("cpu", "part"), [(0, "0xd05"), (1, "0xd0b")])
def test_the_model_is_that_of_the_cpu_measured_on(cpu: int, part: str) -> None:
    model = kernelinfo.cpu_model(survey.of_cpu(ARM64_CPUS, cpu))
    assert model == f"implementer 0x41, part {part}"


def test_machine_of_arm64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert this_machine().syscall_prefix == "__arm64_sys_"
    assert survey.describe().arch == "aarch64"
    warnings = survey.survey(0).warnings
    assert any("not arch_sys_counter: reading it is slow" in text for text in warnings)
    for arch in ARCHES:
        with pytest.raises(IopathError, match="aarch64: guests need x86_64; host can be measured"):
            Qemu.find(arch)


def test_machine_of_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(IopathError, match="this machine is riscv64: must be x86_64 or aarch64"):
        this_machine()
