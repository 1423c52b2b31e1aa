# SPDX-License-Identifier: GPL-2.0
"""The key of a job's records, and the records that are refused."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from iopath.base.errors import IopathError
from iopath.guest import channel
from iopath.guest.guest import Record
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import KALLSYMS, Image, Start
from iopath.guest.states import States
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


@pytest.mark.parametrize(
    ("options", "quiet", "refused"),
    [
        ("interrupts=1:1,waits=1", [True, False, False, False], False),
        ("interrupts=1:1,waits=1", [True, False, False, False, False], True),
        ("interrupts=1:1", [False] * 4, False),
    ],
    ids=["a quarter slept", "fewer slept", "of another run"],
)
def test_a_guest_that_a_busy_host_spoiled_is_not_kept(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: str,
    quiet: Sequence[bool],
    refused: bool,
) -> None:
    lines = [{"type": "round", "region": 1, "quiet": calm} for calm in quiet]
    counts = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines).encode()
    symbols = [Record(KALLSYMS, 0, b"")]
    monkeypatch.setattr(States, "run", lambda self, *args: (symbols, counts))
    if not refused:
        assert jobs.run(job_with(tmp_path, options)).texts == {}
        return
    with pytest.raises(IopathError, match="in only 1 of 5 rounds the task slept until the device"):
        jobs.run(job_with(tmp_path, options))
