# SPDX-License-Identifier: GPL-2.0
"""Rungs on several CPUs: the plan, which lines count as shared, and guests with two CPUs."""

import json
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.command import Command
from iopath.compare import sharing_changes
from iopath.results import result
from iopath.rungs import together

guest = pytest.mark.guest


def measured(iopath: Command, out: Path, *words: str) -> result.Result:
    done = iopath.run("measure", *words, "--cpus", "2", "--op=read", "--json", out, timeout=3600)
    assert done.returncode == 0, done.stderr
    result.parse(json.loads(out.read_text()))
    return result.load(out)


@guest
@pytest.mark.parametrize(
    ("kernel", "counter"),
    cases(
        [("debian:6.1", "f_count"), ("debian:6.1-rt", "f_count"), ("debian:7.2", "f_ref")],
        quick=[("debian:7.2", "f_ref")],
    ),
)
def test_threads_share_a_file(iopath: Command, tmp_path: Path, kernel: str, counter: str) -> None:
    """On each of two CPUs an I/O costs the same as on one. Processes share nothing; threads share
    the reference count of the file, by name; the loop itself shares nothing."""
    words = (kernel, "--rung=null", "--rung=dio.pread")
    null, pread = measured(iopath, tmp_path / "out.json", *words).results
    assert (null.cpus, pread.cpus) == (2, 2)
    assert null.sharing.lines == []
    by_name = {part.name: part for part in pread.sharing.arrangements}
    assert list(by_name) == list(together.ARRANGEMENTS)
    for part in (by_name["devices"], by_name["files"]):
        figures = [*part.instructions_per_io, pread.instructions_per_io]
        # The kernel folds its counters of pages less often on more CPUs.
        assert max(figures) - min(figures) < 1, figures
    lines = [line for line in pread.sharing.lines if counter in line.where]
    assert [(line.arrangement, line.kind) for line in lines] == [("threads", "true")]
    for cpu in (0, 1):
        locked = [row.per_io for row in lines[0].locked if row.cpu == cpu]
        assert sum(locked) == pytest.approx(2, abs=0.01)


@guest
@pytest.mark.long
@pytest.mark.parametrize(
    "rungs", ["syscall", "gen.*", "raw.*", "dio.*", "buf.pread", "mq.*", "remote.*"]
)
@pytest.mark.parametrize("kernel", ["5.10", "6.1", "6.12", "7.2", "7.3", "6.12-arm64", "7.2-arm64"])
def test_seeds(iopath: Command, tmp_path: Path, kernel: str, rungs: str) -> None:
    """Guests with other seeds share the same lines, equally often."""
    words = (f"debian:{kernel}", f"--rung={rungs}", "--op=write", "--boots=2", "--seed")
    one, other = (measured(iopath, tmp_path / f"{seed}.json", *words, seed) for seed in ("1", "11"))
    for before, after in zip(one.results, other.results, strict=True):
        differ = list(sharing_changes.differing(before.sharing, after.sharing))
        assert differ == [], before.title


@guest
@pytest.mark.long  # test_shared_lines finds planted false sharing
def test_false_sharing_of_a_reference_count(iopath: Command, tmp_path: Path) -> None:
    """If threads share a file, each I/O writes its reference count and reads its operations.
    6.12 has both in one line. Since 6.16 (e249056c91a2) the count, now called f_ref, is in another
    line than what is read."""
    names, out = ("debian:6.12", "debian:7.2"), tmp_path / "out.json"
    done = iopath.run(
        "compare", *names, "--rung=dio.pread", "--op=read", "--cpus=2", "--json", out, timeout=3600
    )
    assert done.returncode == 0, done.stderr
    whole = result.load(out)
    changes = [
        change for change in sharing_changes.changes(whole) if "struct file" in change.line.where
    ]
    (change,) = changes
    assert (change.what, change.line.arrangement) == ("renamed", "threads")
    # Counters of pages have another place on each kernel.
    counters = {
        line.where
        for record in whole.results
        for line in record.sharing.lines
        if "vm_" in line.where
    }
    assert counters == {
        "struct pglist_data.vm_stat[NR_FOLL_PIN_ACQUIRED].counter",
        "vm_node_stat[NR_FOLL_PIN_ACQUIRED]",
    }
    assert change.where == (
        "filp: struct file.f_count.counter, now filp: struct file.f_ref.refcnt.counter"
    )
    assert change.where.replace(" ", "") in "".join(done.stdout.split())
    before, after = (
        {row.at.partition("struct file.")[2] for row in line.reads}
        for line in (change.before, change.after)
    )
    assert {"f_mode", "f_op", "f_mapping"} <= before
    assert after == set()
    assert change.before.per_io(change.before.reads) > 10


@guest
@pytest.mark.parametrize("kernel", cases(["6.1", "7.2", "6.12-arm64"], quick=["7.2"]))
def test_ends_elsewhere(iopath: Command, tmp_path: Path, kernel: str) -> None:
    """The interrupt in which the other CPU ends an I/O is a part of the path. The lines that it
    shares have names: the queue of such calls, the stack that the bio is on, and the task that is
    woken up."""
    words = (f"debian:{kernel}", "--rung=remote.pread", "--boots=1")
    (record,) = measured(iopath, tmp_path / "out.json", *words).results
    for part in record.sharing.arrangements:
        # On one CPU, I/O ends where it is submitted, and nothing is waited for.
        assert min(part.instructions_per_io) > record.instructions_per_io
        assert min(part.called_per_io) > 1000
        lines = {line.where: line for line in record.sharing.lines if line.arrangement == part.name}
        for cpu in (0, 1):
            (queue,) = (line for where, line in lines.items() if f"queue of CPU {cpu}" in where)
            assert queue.kind == "true"
            assert sum(row.per_io for row in queue.locked if row.cpu != cpu) > 0.9
            stack = lines[f"stack of CPU {cpu}"]
            assert {row.cpu for row in stack.writes} == {1 - cpu}
            assert "blknull_bio_end" in {row.function for row in stack.writes}
            (woken,) = (
                row
                for line in lines.values()
                for row in line.writes
                if (row.function, row.cpu) == ("try_to_wake_up", cpu) and "__state" in row.at
            )
            assert woken.per_io == pytest.approx(1, abs=0.1)


@guest
@pytest.mark.parametrize(
    ("kernel", "free"),
    cases(
        [("debian:6.1", "__slab_free"), ("debian:7.2", "")], quick=[("debian:6.1", "__slab_free")]
    ),
)
def test_freed_elsewhere(iopath: Command, tmp_path: Path, kernel: str, free: str) -> None:
    """One CPU allocates bios and another frees them: 6.1 returns them to the slab one by one, 7.2
    in sheaves. Requests go back by the list of the CPU that submitted them."""
    words = (kernel, "--rung=remote.uring", "--rung=remote.mq.uring", "--boots=1")
    bios, requests = measured(iopath, tmp_path / "out.json", *words).results
    lines = [line for line in bios.sharing.lines if line.where.startswith("bio-")]
    assert lines
    writers = {row.function for line in lines for row in line.writes}
    assert ("__slab_free" in writers) == bool(free), writers
    assert [line for line in requests.sharing.lines if "blk_cpu_done of CPU" in line.where]
    fields = {row.at for line in requests.sharing.lines for row in line.writes}
    assert {"struct request.state", "struct request.bio"} <= fields, fields


@guest
@pytest.mark.long
def test_four_threads_and_each_scheduler(iopath: Command, tmp_path: Path) -> None:
    """They share the scheduler's data; each I/O still switches to a worker."""
    out = tmp_path / "out.json"
    words = ("debian:7.2", "--rung", "sched.*", "--op", "read", "--cpus", "4", "--json", out)
    done = iopath.run("measure", *words, timeout=3600)
    assert done.returncode == 0, done.stderr
    inserts = {"mq-deadline": "dd_insert", "kyber": "kyber_", "bfq": "bfq_insert_requests"}
    records = result.load(out).results
    assert [record.rung for record in records] == [f"sched.{name}" for name in inserts]
    for record, function in zip(records, inserts.values(), strict=True):
        names = [part.name for part in record.sharing.arrangements]
        assert (record.cpus, names) == (4, ["files", "threads"])
        by = {row.function for line in record.sharing.lines for row in line.writes}
        assert any(name.startswith(function) for name in by), by
        assert all(4000 < one < 14000 for one in record.sharing.arrangements[1].instructions_per_io)
