# SPDX-License-Identifier: GPL-2.0
"""Requests: two ways of counting them agree, and a change of them is what compare says first."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from helpers.command import Command
from helpers.planted import differences
from helpers.repositories import changed_repository
from iopath.measure.session import Session
from iopath.results import result

guest = pytest.mark.guest


@guest
@pytest.mark.parametrize("kernel", ["debian:6.1", "debian:7.2"])
def test_two_ways_of_counting_agree(kernel: str, iopath: Command, tmp_path: Path) -> None:
    """The functions that the kernel enters, and what blknull counts: to the last digit."""
    out = tmp_path / "out.json"
    rungs = [f"--rung={name}" for name in ("seq.uring", "flush.pwrite", "seq.buf")]
    done = iopath.run("measure", kernel, *rungs, "--boots=1", "--json", out, timeout=3600)
    assert done.returncode == 0, done.stderr
    counts = {
        (record.rung, record.op): {name: boots[0] for name, boots in record.counts.items()}
        for record in result.load(out).results
    }
    for found in counts.values():
        assert found["requests"] == found["device requests"] + found["device flushes"]
        assert found["cache flushes"] == found["device flushes"]
    for op in ("read", "write"):
        merged = counts["seq.uring", op]
        assert merged["bios"] == merged["completions"] == 1
        assert merged["plug merges"] == merged["merged bios"] == pytest.approx(31 / 32, abs=1e-4)
        assert merged["sectors"] == 32 * 8
    # The device has no FUA: the write is followed by a flush, and RWF_DSYNC asks for another one.
    assert counts["flush.pwrite", "write"]["cache flushes"] == 2
    assert counts["flush.pwrite", "write"]["requests"] == 3
    read = counts["seq.buf", "read"]
    assert 0 < read["readaheads"] < read["folios"] < 1.1
    # What is read ahead of the last call is more.
    assert read["sectors"] * read["device requests"] == pytest.approx(8, rel=0.05)


@guest
def test_fio_counts_the_same(iopath: Command, tmp_path: Path) -> None:
    """10,000 neighbours in batches of 32: what fio reports, what blknull counts, and the functions
    that the kernel enters."""
    job, said, out = (tmp_path / name for name in ("job.fio", "said", "out.json"))
    job.write_text(
        "[job]\nfilename=/dev/blknull0\ndirect=1\nbs=4k\nrw=read\nioengine=libaio\niodepth=32\n"
        "iodepth_batch_submit=32\niodepth_batch_complete_min=32\nsize=64m\nnumber_ios=10000\n"
    )
    done = iopath.run(
        "run", "debian:7.2", "--device", "counted", "--package", "fio", "--file", f"{job}:job.fio",
        "--output", said, "--json", out, "--", "fio", "--output-format=json", "job.fio",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    whole, *_ = result.load(out).results
    counts = {name: boots[0] for name, boots in whole.counts.items()}
    assert json.loads(said.read_text())["jobs"][0]["read"]["total_ios"] == 10_000
    assert counts["bios"] == counts["completions"] == 10_000
    assert counts["requests"] == counts["device requests"] == sum(whole.requests.sizes)
    assert counts["plug merges"] == counts["merged bios"] == 10_000 - counts["requests"] > 9_000


@guest
@pytest.mark.long
@pytest.mark.parametrize(("rung", "splits"), [("raid0.pread", 3), ("dm-stripe.pread", 0)])
def test_an_io_of_several_devices(rung: str, splits: int, iopath: Command, tmp_path: Path) -> None:
    """Four chunks of 64 KiB, and what is left before each of them. device mapper clones bios."""
    out = tmp_path / "out.json"
    words = [f"--rung={rung}", "--op=read", "--bs=256k", "--json", out]
    done = iopath.run("measure", "debian:7.2", *words, timeout=3600)
    assert done.returncode == 0, done.stderr
    (record,) = result.load(out).results
    assert record.counts["bios"] == record.counts["completions"] == [8]
    assert record.counts["splits"] == [splits]


@guest
@pytest.mark.long
def test_a_snapshot_is_copied_to_first(iopath: Command, tmp_path: Path) -> None:
    """Five bios: the volume's, two that copy the chunk, one for the table, with a flush before and
    after it, and the write. A few chunks were copied in the rounds before."""
    out = tmp_path / "out.json"
    words = ["--rung=dm-snapshot.pwrite", "--json", out]
    done = iopath.run("measure", "debian:7.2", *words, timeout=3600)
    assert done.returncode == 0, done.stderr
    (record,) = result.load(out).results
    counts = {name: boots[0] for name, boots in record.counts.items()}
    assert 4.9 < counts["bios"] == counts["completions"] <= 5
    assert 1.9 < counts["cache flushes"] <= 2
    assert record.requests.who["requests"]["other tasks"] > 5.8


@guest
@pytest.mark.long
@pytest.mark.parametrize("kernel", ["debian:6.12", "debian:7.2"])
def test_a_file_of_nfs(kernel: str, iopath: Command, tmp_path: Path) -> None:
    """The server's thread does a part of each I/O. It reads from its page cache, and writes."""
    out = tmp_path / "out.json"
    done = iopath.run("measure", kernel, "--rung=nfs.pread", "--json", out, timeout=3600)
    assert done.returncode == 0, done.stderr
    read, write = result.load(out).results
    assert (read.op, write.op) == ("read", "write")
    for record in (read, write):
        assert record.counts["system calls"][0] == pytest.approx(1, abs=0.01)
        assert record.counts["wake-ups"][0] > 4
        assert record.all_parts["thread nfsd"] > 20_000
        assert record.all_parts["softirq net_rx_action"] > 10_000
    assert read.counts["bios"][0] < 0.01
    assert write.counts["bios"][0] >= 1


@dataclass(frozen=True)
class Planted:
    """A change of a kernel's source: in *file*, *old* becomes *new*; and what is *said* of a rung,
    first of all."""

    file: str
    old: str
    new: str
    rung: str
    said: str
    op: str = "read"
    size: str = "4k"


TWICE = """\tsubmit_bio_wait(&bio);

\tbio_release_pages(&bio, should_dirty);
"""
SPLIT = """\tbio = __bio_split_to_limits(bio, &q->limits, &nr_segs);
\tif (!bio)
\t\tgoto queue_exit;

\tif (!bio_integrity_prep(bio))
"""
PLANTS = {
    "unplugged": Planted(
        "block/blk-merge.c", "if (!plug || rq_list_empty(&plug->mq_list))", "if (nr_segs)",
        "seq.uring", "requests 0.03 to 1.00 per I/O",
    ),
    "halved": Planted(
        "block/blk-merge.c", "\t\tmax_sectors = lim->max_sectors;\n",
        "\t\tmax_sectors = lim->max_sectors / 2;\n",
        "limit128.pread", "bios 8.00 to 16.00 per I/O, splits 7.00 to 15.00", size="1m",
    ),
    "split": Planted(
        "block/blk-mq.c", SPLIT,
        """\tif (bio_sectors(bio) == 8) {
\t\tstruct bio *half = bio_split(bio, 4, GFP_NOIO,
\t\t\t\t\t     &bio->bi_bdev->bd_disk->bio_split);

\t\tbio_chain(half, bio);
\t\tsubmit_bio_noacct(bio);
\t\tbio = half;
\t}
""" + SPLIT,
        "mq.pread", "bios 1.00 to 2.00 per I/O, splits 0.00 to 1.00, requests 1.00 to 2.00",
    ),
    "window": Planted(
        "mm/readahead.c", "ra->ra_pages = inode_to_bdi(mapping->host)->ra_pages;",
        "ra->ra_pages = inode_to_bdi(mapping->host)->ra_pages / 2;",
        "seq.buf", "bios 0.03 to 0.06",
    ),
    "woken": Planted(
        "block/bio.c", "again:\n\tif (!bio_remaining_done(bio))\n",
        "\twake_up_process(current);\nagain:\n\tif (!bio_remaining_done(bio))\n",
        "dio.uring", "wake-ups 0.03 to 1.03 per I/O",
    ),
    "twice": Planted(
        "block/fops.c", TWICE,
        "\tstruct bvec_iter first = bio.bi_iter;\n\n\tsubmit_bio_wait(&bio);\n"
        "\tbio.bi_iter = first;\n" + TWICE,
        "dio.pread", "bios 1.00 to 2.00 per I/O, completions 1.00 to 2.00",
    ),
    "flushed": Planted(
        "block/fops.c", "\terror = blkdev_issue_flush(bdev);\n",
        "\tblkdev_issue_flush(bdev);\n\terror = blkdev_issue_flush(bdev);\n",
        "flush.pwrite", "cache flushes 2.00 to 3.00", op="write",
    ),
    "reversed": Planted(
        "block/blk-mq.c", "\trq_list_add_tail(&plug->mq_list, rq);\n\tplug->rq_count++;",
        "\trq_list_add_head(&plug->mq_list, rq);\n\tplug->rq_count++;",
        "seq.uring.nomerges", "out of order 0.00 to 0.97 per I/O",
    ),
}  # fmt: skip


# Those of which the length of the path alone does not tell. Smaller windows even shorten it: fewer
# rounds have a large one.
HIDDEN = {"window", "reversed"}


@pytest.fixture(scope="module")
def repository(session: Session) -> Path:
    changes = {name: (one.file, one.old, one.new) for name, one in PLANTS.items()}
    return changed_repository(session, changes)


@guest
@pytest.mark.long
@pytest.mark.parametrize("name", PLANTS)
def test_a_change_of_requests_is_said_first(
    name: str, iopath: Command, repository: Path, tmp_path: Path
) -> None:
    """compare names it in its first line, and fails the gate."""
    planted = PLANTS[name]
    out = tmp_path / "out.json"
    done = iopath.run(
        "compare", f"git:{repository}@before", f"git:{repository}@{name}",
        f"--rung={planted.rung}", f"--op={planted.op}", f"--bs={planted.size}", "--boots=1",
        "--fail-above=1", "--json", out, timeout=3600,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    first = " ".join(done.stdout.partition("\n\n")[0].split())
    assert planted.said in first, done.stdout
    change = differences(out)[planted.rung]
    metric = re.split(r" [\d.]+ to ", planted.said.split(", ")[0])[0]
    assert change["metrics"][metric]["verdict"] == "more"
    assert (change["verdict"] == "longer") == (name not in HIDDEN), change["percent"]
