# SPDX-License-Identifier: GPL-2.0
"""What a job's records depend on."""

from pathlib import Path

import pytest

from iopath.guest.image import Image, Start
from iopath.guest.machine import Machine, Qemu
from iopath.measure import jobs
from iopath.measure.jobs import Job


def test_records_kept_by_other_code_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code that keeps other records finds nothing under its key, and no incomplete records."""
    kernel = tmp_path / "vmlinuz"
    kernel.write_bytes(b"kernel")
    image = Image(Start(kernel), ["file /proc/version"], {})
    job = Job(Qemu("", "", ""), Machine(), image, kernel, "", "", tmp_path, tmp_path / "progress")
    before = job.inputs()
    assert job.inputs() == before
    other = tmp_path / "jobs.py"
    other.write_text(Path(jobs.__file__).read_text() + "# keeps other records\n")
    monkeypatch.setattr(jobs, "__file__", str(other))
    assert {name for name, value in job.inputs().items() if value != before[name]} == {"read_by"}
