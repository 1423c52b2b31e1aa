# SPDX-License-Identifier: GPL-2.0
"""The key of a job's records, and the records that are refused."""

from pathlib import Path
from types import ModuleType

import pytest

from iopath.guest import channel
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import Image, Start
from iopath.measure import jobs
from iopath.measure.jobs import Job


def job_with(folder: Path, options: str) -> Job:
    kernel, progress = folder / "vmlinuz", folder / "progress"
    kernel.write_bytes(b"kernel")
    progress.touch()
    image = Image(Start(kernel), ["file /proc/version"], {})
    return Job(Qemu("", "", ""), Machine(), image, kernel, options, "", folder, progress)


@pytest.mark.parametrize("module", [jobs, channel], ids=lambda module: module.__name__)
def test_records_kept_by_other_code_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType
) -> None:
    """Code that keeps or reads records in another way finds nothing under its key."""
    job = job_with(tmp_path, "")
    before = job.inputs()
    assert job.inputs() == before
    other = tmp_path / "other.py"
    other.write_text(Path(module.__file__).read_text() + "# keeps other records\n")
    monkeypatch.setattr(module, "__file__", str(other))
    assert {name for name, value in job.inputs().items() if value != before[name]} == {"read_by"}
