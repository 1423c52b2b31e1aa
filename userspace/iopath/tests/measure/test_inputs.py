# SPDX-License-Identifier: GPL-2.0
"""What a guest cannot do is said before it runs."""

import pytest

from iopath.base.errors import UsageError
from iopath.measure import inputs

JOB = b"[global]\ntime_based\nruntime=10\n[a]\nfilename=/dev/blknull0\n"


def said(*words: str, given: bytes = b"", device: str = "null", mount: str = "") -> list[str]:
    warnings: list[str] = []
    inputs.check(words, {"job.fio": given}, device, mount, 20_000_000_000, warnings.append)
    return warnings


def test_a_time() -> None:
    (warning,) = said("fio", "job.fio", given=JOB)
    assert warning == (
        "fio: runtime=10 with time_based executes 10,000,000,000 instructions, which takes about"
        " 9 min of emulation: number_ios=N without time_based ends it by count"
    )
    assert "about 2 min" in said("/usr/bin/fio", "--time_based=1", "--runtime=2000ms")[0]
    with pytest.raises(UsageError, match="--max-instructions allows 20,000,000,000"):
        said("fio", "--time_based", "--runtime=1m")
    assert said("fio", "--runtime=10") == said("fio", "--time_based=0", "--runtime=1") == []
    assert said("dd", "time_based", "runtime=10") == []


def test_a_disk_of_another_device() -> None:
    with pytest.raises(UsageError, match=r"^/dev/nvme0n1: the guest has /dev/blknull0: add --dev"):
        said("fio", "--filename=/dev/nvme0n1")
    with pytest.raises(UsageError, match=r"add --device mq$"):
        said("fio", "job.fio", given=b"filename=/dev/blknull2\n")
    with pytest.raises(UsageError, match=r"^/dev/sda1: the guest has /dev/nvme0n1, or another"):
        said("dd", "if=/dev/sda1", device="nvme")
    assert said("dd", "if=/dev/blknull0", "of=/dev/null") == []
    assert said("dd", "if=/dev/nvme0n1", device="nvme") == []
    assert said("cat", "/dev/sda", mount="ext4") == []
