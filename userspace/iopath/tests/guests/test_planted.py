# SPDX-License-Identifier: GPL-2.0
"""A change that was planted in a kernel is found: by compare, and by bisect among commits.

The kernels are built from the source of one of Debian's with iopath's minimal.config, once: they
stay in the user's cache, as do the results of measuring them.
"""

import json
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from helpers.command import Command
from helpers.linux_source import LinuxSource, build_command
from helpers.planted import (
    FUNCTION,
    IMAGE,
    NOPS,
    PLACE,
    PLANTED,
    commit,
    differences,
    git,
    plant,
    replace,
)
from iopath.base import process
from iopath.base.errors import IopathError
from iopath.base.sources import source_root
from iopath.measure.session import Session
from iopath.results import result
from iopath.rungs import builtin, together

guest = pytest.mark.guest

# The same number of instructions, of which two read the time stamp, and one is locked, in a cache
# line of its own.
COSTLY = """\tstatic unsigned long planted[16] __aligned(128);
\tasm volatile("rdtsc\\n\\tnop\\n\\tlock incq %0\\n\\tnop\\n\\trdtsc"
\t\t     : "+m" (planted[0]) :: "eax", "edx");
"""

TOUCHED = {"dio.pread", "dio.aio.1"}
UNTOUCHED = {"null", "syscall", "buf.pread"}
RUNGS = [f"--rung={name}" for name in sorted(TOUCHED | UNTOUCHED)] + ["--op=read"]


# Costs that the median of short rounds does not show: a rare one, and a deferred one. Each planted
# function executes so many instructions, and a few more. No two are alike: the compiler would merge
# equal functions.
SELDOM = {"planted_thousandth": (1000, 50_000), "planted_150th": (150, 50_002)}
LATER = ("planted_callback", 1000)
COSTS = """
static noinline void planted_thousandth(void)
{
	unsigned long n = 25000;

	asm volatile("1: dec %0; jnz 1b" : "+r" (n));
}

static noinline void planted_150th(void)
{
	unsigned long n = 25001;

	asm volatile("1: dec %0; jnz 1b" : "+r" (n));
}

static void planted_callback(struct rcu_head *head)
{
	unsigned long n = 500;

	asm volatile("1: dec %0; jnz 1b" : "+r" (n));
	kfree(head);
}

static noinline void planted(void)
{
	static unsigned long bios;
	struct rcu_head *head = kmalloc(sizeof(*head), GFP_ATOMIC);

	if (++bios % 1000 == 0)
		planted_thousandth();
	if (bios % 150 == 0)
		planted_150th();
	if (head)
		call_rcu(head, planted_callback);
}

"""


class Trees:
    """Kernels built from one source, in the cache."""

    def __init__(self, session: Session, series: str = "6.12") -> None:
        self._cache = session.cache
        self._source = LinuxSource(session, series)

    def plain(self, *fragments: str) -> Path:
        """The kernel as it is, with *fragments* of a configuration besides."""
        return self._source.tree("minimal.config", *fragments)

    def copy(
        self, name: str, what: str = "", functions: str = "",
        replaced: Sequence[tuple[str, str, str]] = (), fragments: Sequence[str] = (),
    ) -> Path:  # fmt: skip
        """The same with *what* planted: the text in a file that is *replaced*. It is built under
        *name*, so that no two share a file."""
        plain = self.plain(*fragments)
        build = build_command().replace("BUILD_USER=iopath", f"BUILD_USER={name}")

        def make(folder: Path) -> None:
            shutil.copytree(plain, folder / "linux", symlinks=True)
            if what:
                plant(folder / "linux", what, functions)
            for file, old, new in replaced:
                replace(folder / "linux" / file, old, new)
            log = folder / "log"
            if process.run(["sh", "-ec", build], output=log, cwd=folder / "linux"):
                raise IopathError(f"no kernel: {log.read_text(errors='replace')[-2000:]}")

        inputs = {"of": plain.parent.name, "planted": functions + what, "build": build}
        if replaced:
            inputs["replaced"] = list(replaced)
        return self._cache.entry("tree", inputs, make) / "linux"


@pytest.fixture(scope="module")
def trees(session: Session) -> Trees:
    return Trees(session)


@pytest.fixture(scope="module")
def recent(session: Session) -> Trees:
    return Trees(session, "7.2")


@pytest.fixture
def named(trees: Trees, tmp_path: Path) -> Callable[[str, Path], str]:
    """The name of a tree on the command line, short enough for a table."""

    def name(name: str, tree: Path) -> str:
        (tmp_path / name).symlink_to(tree)
        return f"tree:{tmp_path / name}"

    return name


@guest
def test_compare(iopath: Command, trees: Trees, named: Callable, tmp_path: Path) -> None:
    """The function is named with the exact number; rungs that do not pass there are the same."""
    before, after = named("before", trees.plain()), named("after", trees.copy("planted", COSTLY))
    out = tmp_path / "out.json"
    limit = ("--fail-above", "0.05")
    done = iopath.run(
        "compare", before, after, *RUNGS, "--json", out, "--all", *limit, timeout=3600
    )
    assert done.returncode == 1, done.stderr
    said = done.stderr.splitlines()[-1]
    assert said.startswith("iopath: dio.")
    assert said.count(f": {after} takes more than {before}: instructions ") == len(TOUCHED)
    found = differences(out)
    assert {rung: change["verdict"] for rung, change in found.items()} == {
        **dict.fromkeys(TOUCHED, "longer"),
        **dict.fromkeys(UNTOUCHED, "same"),
    }
    for rung, change in found.items():
        functions = {row["name"]: row["difference"] for row in change["functions"]}
        moved = {name: by for name, by in functions.items() if by}
        assert moved == ({FUNCTION: PLANTED} if rung in TOUCHED else {}), rung
        assert change["difference"] == pytest.approx(sum(moved.values()), abs=0.01)
        metrics = {
            name: (part["difference"], part["verdict"])
            for name, part in change["metrics"].items()
            if not name.endswith("lines") and part["verdict"] != "same"
        }
        mean, verdict = metrics.pop("mean", (0.0, "same"))
        assert verdict == ("more" if rung in TOUCHED else "same"), rung
        assert mean == pytest.approx(change["difference"], abs=0.05), rung
        # The planted difference equals the resolution of this metric.
        deferred, _ = metrics.pop("total", (change["difference"], "same"))
        assert deferred == pytest.approx(change["difference"], abs=0.5), rung
        more = dict.fromkeys(("locked", "reads", "writes"), (1.0, "more"))
        more |= {"timestamps": (2.0, "more")}
        assert metrics == (more if rung in TOUCHED else {}), rung
    for rung in TOUCHED:
        lines = found[rung]["metrics"]["data lines"]
        assert abs(lines["difference"] - 1) <= 3, rung
    line = rf"{FUNCTION} .*\+{PLANTED}\.00 +timestamps \+2\.00, locked \+1\.00, reads \+1\.00, w"
    assert len(re.findall(line, done.stdout)) == len(TOUCHED)


@guest
def test_costs_that_the_median_does_not_show(
    iopath: Command, trees: Trees, named: Callable, tmp_path: Path
) -> None:
    """They are reported within 1 %, by the function, and fail the gate."""
    before = named("before", trees.plain())
    after = named("costs", trees.copy("costs", "\tplanted();\n", COSTS))
    out = tmp_path / "out.json"
    words = ("--rung=dio.pread", "--op=read", "--json", out, "--all")
    done = iopath.run("compare", before, after, *words, "--fail-above", "1", timeout=3600)
    assert done.returncode == 1, done.stderr
    said = done.stderr.splitlines()[-1]
    assert ", mean " in said
    assert ", total " in said
    change = differences(out)["dio.pread"]
    seldom = sum(count / each for each, count in SELDOM.values())
    # Two of three rounds of 100 I/Os have the 150th bio, and so has the median. The rest is what
    # each bio executes at once.
    at_once = change["difference"] - SELDOM["planted_150th"][1] / 100
    assert 0 < at_once < 300
    mean, deferred = (change["metrics"][name] for name in ("mean", "total"))
    assert mean["telling"]
    assert deferred["telling"]
    # Allocating memory is rarely expensive, too.
    assert seldom < mean["difference"] - at_once < 1.05 * seldom
    assert deferred["difference"] - mean["difference"] > LATER[1]
    rows = {row["name"]: row["difference"] for row in mean["functions"]}
    for function, (each, count) in SELDOM.items():
        assert rows[function] == pytest.approx(count / each, rel=0.01)
    assert LATER[0] not in rows
    rows = {row["name"]: row["difference"] for row in deferred["functions"]}
    assert rows[LATER[0]] == pytest.approx(LATER[1], rel=0.01)
    assert "happens less often than once per round" in "".join(change["findings"])
    for function in (*SELDOM, LATER[0]):
        assert re.search(rf"{function} +\+", done.stdout)


# Costs of some shapes only: the function of each, and its instructions. No two are alike: the
# compiler would merge equal functions.
OF_SHAPES = {
    "planted_unaligned": 800,
    "planted_segments": 350,
    "planted_group": 400,
    "planted_fua": 450,
    "planted_hole": 500,
    "planted_hugetlb": 550,
    "planted_depth": 9000,
}
COST = """
static noinline void {}(void)
{{
	unsigned long n = {};

	asm volatile("1: dec %0; jnz 1b" : "+r" (n));
}}
"""
WHERE = """
static void planted(struct bio *bio)
{
	if (bio_op(bio) == REQ_OP_READ && bio->bi_iter.bi_size >= 65536 &&
		bio->bi_io_vec->bv_offset)
		planted_unaligned();
	if (bio->bi_vcnt > 16 && !bio_flagged(bio, BIO_CLONED))
		planted_segments();
	if (IOPRIO_PRIO_CLASS(bio->bi_ioprio) && bio->bi_blkg && bio->bi_blkg->parent)
		planted_group();
	if ((bio->bi_opf & REQ_FUA) && bdev_get_queue(bio->bi_bdev)->elevator)
		planted_fua();
	if (bio->bi_vcnt && folio_test_hugetlb(page_folio(bio->bi_io_vec->bv_page)))
		planted_hugetlb();
	if (bio_sectors(bio) & 1)
		bio_associate_blkg(bio);
}

"""
PLUG = "	struct task_struct *tsk = current;\n\n	/*\n	 * If this is a nested plug"
HOLE = (
    "fs/iomap/direct-io.c",
    "static int iomap_dio_hole_iter(struct iomap_iter *iter, struct iomap_dio *dio)\n",
    "	loff_t length = iov_iter_zero(iomap_length(iter), dio->submit.iter);\n\n",
)


def costs(*names: str) -> str:
    return "".join(COST.format(name, OF_SHAPES[name] // 2) for name in names)


def costly_shapes(trees: Trees) -> Path:
    """A kernel in which some shapes cost more."""
    file, function, body = HOLE
    own = ("planted_hole", "planted_depth")
    others = [name for name in OF_SHAPES if name not in own]
    depth = PLUG.replace("\n\n", "\n\n	if (nr_ios == 33)\n		planted_depth();\n")
    plug = "void blk_start_plug_nr_ios(struct blk_plug *plug, unsigned short nr_ios)\n{\n"
    return trees.copy(
        "shapes", "	planted(bio);\n", costs(*others) + WHERE, fragments=["search.config"],
        replaced=[
            (PLACE, plug + PLUG, costs("planted_depth") + plug + depth),
            (file, function, costs("planted_hole") + function),
            (file, body, body + "	planted_hole();\n"),
        ],
    )  # fmt: skip


# A shape on which the kernel dies, and one on which it hangs.
DEADLY = """
static void planted(struct bio *bio)
{
	if (IOPRIO_PRIO_CLASS(bio->bi_ioprio) == IOPRIO_CLASS_IDLE)
		panic("planted");
	while (bio_sectors(bio) == 9)
		cpu_relax();
}

"""


def deadly_shapes(trees: Trees) -> Path:
    """A kernel that dies on some shapes."""
    return trees.copy("deadly", "	planted(bio);\n", DEADLY, fragments=["search.config"])


# What the smallest shape of each has, and the numbers below and from which on it shows. Pages of
# a buffer are no neighbours, so 17 of them are segments, too.
SMALLEST = {
    "planted_unaligned": [
        ({"size": 65536, "place": 512}, {"size": [65024, 65536], "place": [0, 512]})
    ],
    "planted_segments": [
        ({"size": 66048}, {"size": [65536, 66048]}), ({"segments": 17}, {"segments": [16, 17]}),
        *(({"size": 66048 - place, "place": place}, {"size": [65536 - place, 66048 - place]})
          for place in range(512, 4096, 512)),
    ],
    "planted_group": [({"group": "cgroup"}, {})],
    "planted_fua": [({"op": "write"}, {})],
    "planted_hole": [({"target": "ext4.hole"}, {})],
    "planted_hugetlb": [({"memory": "hugetlb"}, {})],
    "planted_depth": [({"depth": 33}, {})],
    "bio_associate_blkg": [({"size": 512}, {})],
}  # fmt: skip
OF_DIO = {*SMALLEST} - {"planted_fua", "planted_hole", "planted_depth"}
# What each bio executes to find its cost, and what the second call of bio_associate_blkg() calls.
CALLED = {FUNCTION, "bio_associate_blkg_from_css", "__radix_tree_lookup"}


def searched(
    iopath: Command, kernels: Sequence[str], tmp_path: Path, *words: str
) -> dict[str, dict[str, Any]]:
    """The findings of a search, by the function that grew most; rungs of all are in found.toml."""
    out = tmp_path / "out.json"
    files = ("--json", out, "--toml", tmp_path / "found.toml")
    done = iopath.run("search", *kernels, "--boots", "1", "--quiet", *files, *words, timeout=7200)
    assert done.returncode == 0, done.stderr
    findings = json.loads(out.read_text())["search"]["findings"]
    assert not [one for one in findings if not one["functions"]], done.stdout
    return {function: one for one in findings for function in one["functions"]}


@guest
def test_search(iopath: Command, recent: Trees, named: Callable, tmp_path: Path) -> None:
    """Costs of a size, an alignment, a number of segments and an odd number of blocks are found
    without a hint, each by its function, and shrunk to the condition; two kernels that are one
    differ in nothing. A finding's file has the rungs for compare."""
    plain = recent.plain("search.config")
    kernels = named("before", plain), named("shapes", costly_shapes(recent))
    words = ("--rung", "dio.*", "--shapes", "256")
    found = searched(iopath, kernels, tmp_path, *words)
    assert {*found} - CALLED == OF_DIO
    check_smallest({name: found[name] for name in OF_DIO})
    names = {rung.name for rung in builtin.load(tmp_path / "found.toml")}
    assert names == {one["rung"] for one in found.values()}
    done = iopath.run("search", kernels[0], named("same", plain), *words, timeout=3600)
    assert ", 0 causes." in done.stdout


def check_smallest(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Each finding is of the smallest shape, and says from where on."""
    for name, one in found.items():
        assert any(
            shape.items() <= one["shape"].items() and needs.items() <= one["needs"].items()
            for shape, needs in SMALLEST[name]
        ), (name, one)


@guest
@pytest.mark.long
@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_search_everywhere(
    seed: str, iopath: Command, recent: Trees, named: Callable, tmp_path: Path
) -> None:
    """All of the costs are found within 60 CPU minutes, and shrunk."""
    kernels = (
        named("before", recent.plain("search.config")), named("shapes", costly_shapes(recent))
    )  # fmt: skip
    words = ("--shapes", "1536", "--findings", "20", "--seed", seed)
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = searched(iopath, kernels, tmp_path, *words)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert {*found} >= {*SMALLEST}
    check_smallest({name: found[name] for name in SMALLEST})
    assert end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime < 3600


@guest
@pytest.mark.long
def test_search_of_deadly_shapes(
    iopath: Command, recent: Trees, named: Callable, tmp_path: Path
) -> None:
    """A shape on which the kernel dies or hangs is a finding, with the console."""
    kernels = (
        named("before", recent.plain("search.config")), named("deadly", deadly_shapes(recent))
    )  # fmt: skip
    out = tmp_path / "out.json"
    words = ("--rung", "dio.pread", "--shapes", "64", "--boots", "1", "--json", out)
    done = iopath.run("search", *kernels, *words, timeout=7200)
    assert done.returncode == 0, done.stderr
    findings = json.loads(out.read_text())["search"]["findings"]
    answers = {one["answer"]: one["shape"] for one in findings if not one["functions"]}
    assert answers["done / the guest hung"]["size"] == 4608
    (crash,) = (text for text in answers if "the guest crashed: Kernel panic" in text)
    assert answers[crash]["priority"] == "idle"


# Work that is deferred by six seconds: a loop for each bio since the last time.
PUT_OFF = """
static unsigned long planted_bios;

static noinline void planted_work(struct work_struct *work)
{
	unsigned long n = 500 * planted_bios;

	planted_bios = 0;
	if (n)
		asm volatile("1: dec %0; jnz 1b" : "+r" (n));
}

static DECLARE_DELAYED_WORK(planted_later, planted_work);

static noinline void planted(void)
{
	if (!planted_bios++)
		schedule_delayed_work(&planted_later, 6 * HZ);
}

"""


@guest
def test_work_that_is_put_off(
    iopath: Command, trees: Trees, named: Callable, tmp_path: Path
) -> None:
    """It is a part of all, named by its function, and fails the gate. The path is as long as
    before, except for the code that defers it."""
    before = named("before", trees.plain())
    after = named("later", trees.copy("later", "\tplanted();\n", PUT_OFF))
    out = tmp_path / "out.json"
    words = ("--rung=dio.pread", "--op=read", "--json", out, "--all")
    done = iopath.run("compare", before, after, *words, "--fail-above", "1", timeout=3600)
    assert done.returncode == 1, done.stderr
    one, two = result.load(out).results
    assert 0 < two.path - one.path < 20
    assert two.total - one.total == pytest.approx(two.path - one.path + 1000, rel=0.01)
    (row,) = [row for row in two.profile.long_run if row.name == "planted_work"]
    assert row.deferred == pytest.approx(1000, rel=0.01)


# Small costs, and costs that chance decides: by the number of the thread, which is another one in
# each layout, and by whether the pages of the buffer are one segment.
LOOP = 'unsigned long n = {}; asm volatile("1: dec %0; jnz 1b" : "+r" (n));'
SMALL = {
    "one": ("", '\tasm volatile("nop");\n', "--bs=4k", "instructions"),
    "locked": (
        "static unsigned long planted;\n",
        '\tasm volatile("lock incq %0" : "+m" (planted));\n', "--bs=4k", "locked",
    ),
    "later": (PUT_OFF.replace("500 *", "6 *"), "\tplanted();\n", "--bs=4k", "total"),
    "half": ("", f"\tif (current->pid & 1) {{ {LOOP.format(75)} }}\n", "--bs=4k", "instructions"),
    "seldom": (
        "", f"\tif (!(current->pid % 20)) {{ {LOOP.format(30)} }}\n", "--bs=4k", "instructions",
    ),
    "scattered": ("", f"\tif (bio->bi_vcnt > 1) {{ {LOOP.format(30)} }}\n", "--bs=64k",
                  "instructions"),
}  # fmt: skip


@guest
@pytest.mark.long
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("series", ["trees", "recent"], ids=["6.12", "7.2"])
def test_small_costs_and_those_of_some_layouts(
    name: str, series: str, iopath: Command, named: Callable, request: pytest.FixtureRequest
) -> None:
    """One comparison finds each, and says so in its first line and its status."""
    trees: Trees = request.getfixturevalue(series)
    functions, what, size, metric = SMALL[name]
    before = named("before", trees.plain())
    after = named(name, trees.copy(name, what, functions))
    words = ("--rung=dio.pread", "--rung=dio.aio.1", "--op=read", size, "--fail-above", "0")
    done = iopath.run("compare", before, after, *words, timeout=3600)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(rf"dio\.pread read.*\b{metric} [\d.]+ %", done.stderr), done.stderr
    assert "dio." in done.stdout.splitlines()[0], done.stdout


# Work that others do for each bio, and its instructions: a callback after a grace period, a work
# item that comes later for all bios since the last time, and a thread that is woken for each 32.
OTHERS = {
    "RCU callback planted_callback": 20_000,
    "kworker planted_work": 2000,
    "thread planted_thread": 3000,
}
BY_OTHERS = """
#include <linux/kthread.h>

static unsigned long planted_for_work, planted_for_thread;
static struct task_struct *planted_task;

static void planted_callback(struct rcu_head *head)
{
	unsigned long n = 10000;

	asm volatile("1: dec %0; jnz 1b" : "+r" (n));
	kfree(head);
}

static noinline void planted_work(struct work_struct *work)
{
	unsigned long n = 1000 * xchg(&planted_for_work, 0);

	if (n)
		asm volatile("1: dec %0; jnz 1b" : "+r" (n));
}

static DECLARE_DELAYED_WORK(planted_later, planted_work);

static int planted_thread(void *data)
{
	unsigned long n;

	for (;;) {
		set_current_state(TASK_IDLE);
		n = 1500 * xchg(&planted_for_thread, 0);
		if (!n) {
			schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);
		asm volatile("1: dec %0; jnz 1b" : "+r" (n));
	}
}

static int __init planted_start(void)
{
	planted_task = kthread_run(planted_thread, NULL, "planted");
	return 0;
}
late_initcall(planted_start);

static noinline void planted(void)
{
	struct rcu_head *head = kmalloc(sizeof(*head), GFP_ATOMIC);

	if (head)
		call_rcu(head, planted_callback);
	if (!planted_for_work++)
		schedule_delayed_work(&planted_later, HZ / 10);
	if (planted_task && !(++planted_for_thread % 32))
		wake_up_process(planted_task);
}

"""


@guest
def test_who_works_for_the_io(
    iopath: Command, trees: Trees, named: Callable, tmp_path: Path
) -> None:
    """A callback, a work item and a thread are parts of all by their names, within 1 %."""
    before = named("before", trees.plain())
    after = named("others", trees.copy("others", "\tplanted();\n", BY_OTHERS))
    out = tmp_path / "out.json"
    words = ("--rung=dio.pread", "--op=read", "--boots=1", "--json", out)
    done = iopath.run("measure", before, after, *words, timeout=3600)
    assert done.returncode == 0, done.stderr
    one, two = result.load(out).results
    for record in (one, two):
        assert sum(record.all_parts.values()) == pytest.approx(record.total, abs=1e-6)
    for name, count in OTHERS.items():
        assert two.all_parts[name] == pytest.approx(count, rel=0.01), name
        assert name not in one.all_parts
        assert f"{name} {two.all_parts[name]:,.2f}" in " ".join(done.stdout.split())
    # They also cost the task and others a little: allocating, queueing and switching.
    rest = two.total - one.total - sum(two.all_parts[name] for name in OTHERS)
    assert 0 < rest < 1000


@guest
def test_compare_the_same(iopath: Command, trees: Trees, named: Callable, tmp_path: Path) -> None:
    """Another build of the same source, with boots of its own, has no difference."""
    one, other = trees.plain(), trees.copy("again")
    assert (one / IMAGE).read_bytes() != (other / IMAGE).read_bytes()
    out = tmp_path / "out.json"
    names = (named("one", one), named("other", other))
    done = iopath.run("compare", *names, *RUNGS, "--json", out, "--fail-above", "0", timeout=3600)
    assert (done.returncode, "iopath: " in done.stderr) == (0, False), done.stderr
    found = differences(out)
    assert found.keys() == TOUCHED | UNTOUCHED
    assert {change["verdict"] for change in found.values()} == {"same"}
    moved = [row for change in found.values() for row in change["functions"] if row["difference"]]
    assert moved == []


@guest
@pytest.mark.long
def test_a_driver(iopath: Command, trees: Trees, named: Callable, tmp_path: Path) -> None:
    """Nine instructions in a driver's submission, and forty in its interrupt handler, are found
    exactly, each in its part. A request that comes from a plug passes nvme_queue_rqs, others pass
    nvme_queue_rq; both call nvme_prep_rq."""
    file = "drivers/nvme/host/pci.c"
    prepare = "static blk_status_t nvme_prep_rq(struct nvme_dev *dev, struct request *req)\n{\n"
    handler = "static irqreturn_t nvme_irq(int irq, void *data)\n{\n"
    nops = '\tasm_inline volatile("{}");\n'  # the compiler takes it for one instruction
    more = trees.copy(
        "driver",
        fragments=["nvme.config"],
        replaced=[
            (file, prepare, prepare + nops.format("nop\\n" * 9)),
            (file, handler, handler + nops.format("nop\\n" * 40)),
        ],
    )
    tree = trees.plain("nvme.config")
    out = tmp_path / "out.json"
    words = ("--rung=nvme.pread", "--op=read", "--json", out)
    done = iopath.run("profile", named("before", tree), named("after", more), *words, timeout=3600)
    assert done.returncode == 0, done.stderr
    one, two = result.load(out).results
    functions = [
        {row.name: row.instructions for row in found.profile.functions} for found in (one, two)
    ]
    grown = {name: functions[1][name] - functions[0][name] for name in ("nvme_prep_rq", "nvme_irq")}
    assert grown == {"nvme_prep_rq": 9, "nvme_irq": 40}
    # In the long run, the task executes the one, and interrupts the other.
    means, later = (
        [{row.name: getattr(row, name) for row in found.profile.long_run} for found in (one, two)]
        for name in ("mean", "deferred")
    )
    assert means[1]["nvme_prep_rq"] - means[0]["nvme_prep_rq"] == pytest.approx(9, abs=0.2)
    assert later[1]["nvme_irq"] - later[0]["nvme_irq"] == pytest.approx(40, abs=1)
    assert two.path - one.path == pytest.approx(49, rel=0.1)


# Shared lines: a counter that all CPUs increment, counters of CPUs that are packed into a line, and
# a per-CPU counter.
SHARED = """
static struct {
	atomic_t counter;
	char rest[60];
} planted_counter __aligned(64);

static unsigned long planted_packed[8] __aligned(64);
static DEFINE_PER_CPU(unsigned long, planted_own);

static noinline void planted_sharing(void)
{
	atomic_inc(&planted_counter.counter);
	planted_packed[raw_smp_processor_id()]++;
	this_cpu_inc(planted_own);
}

"""


@guest
def test_shared_lines(iopath: Command, trees: Trees, named: Callable, tmp_path: Path) -> None:
    """A common counter is true sharing, packed counters are false sharing, and per-CPU counters are
    no sharing. The plain kernel has none of these lines, so they fail the gate."""
    trees_ = {
        "before": trees.plain(),
        "after": trees.copy("sharing", "\tplanted_sharing();\n", SHARED),
    }
    names = [named(name, tree) for name, tree in trees_.items()]
    out = tmp_path / "out.json"
    words = ("--rung=dio.pread", "--op=read", "--cpus=2", "--json", out, "--fail-above", "1")
    done = iopath.run("compare", *names, *words, timeout=3600)
    assert done.returncode == 1, done.stderr
    for arrangement in together.ARRANGEMENTS:
        assert f"{arrangement}, planted_counter, locked writes 1.00" in done.stderr
        assert f"{arrangement}, planted_packed, writes 1.00" in done.stderr
    before, after = (record.sharing for record in result.load(out).results)
    assert not [line for line in before.lines if "planted" in line.where]
    planted = [line for line in after.lines if "planted" in line.where]
    assert sorted((line.arrangement, line.kind, line.where) for line in planted) == sorted(
        (arrangement, kind, where)
        for arrangement in together.ARRANGEMENTS
        for kind, where in (("true", "planted_counter"), ("false", "planted_packed{+0x0, +0x8}"))
    )
    for line in planted:
        rows = [(row.function, row.cpu, row.locked, row.per_io, row.bytes) for row in line.writes]
        locked = line.kind == "true"
        touched = [[(0, 3)], [(0, 3)]] if locked else [[(0, 7)], [(8, 15)]]
        assert rows == [("planted_sharing", cpu, locked, 1.0, touched[cpu]) for cpu in (0, 1)]


# Each block device counts its bios, in a line of its own behind its inode. Kernels differ in where
# that counter is, in where the next device begins, and in a lock that each bio takes.
BDEV = "block/bdev.c"
INODE = """\
struct bdev_inode {
	struct block_device bdev;
	struct inode vfs_inode;
"""
COUNT = (
    BDEV,
    "static struct kmem_cache *bdev_cachep",
    """\
void planted(struct block_device *bdev);
void planted(struct block_device *bdev)
{
	struct bdev_inode *ei = container_of(bdev, struct bdev_inode, bdev);

	ei->bios++;
}

static struct kmem_cache *bdev_cachep""",
)
COUNTER = "\tunsigned long bios;\n"
BEHIND = (BDEV, INODE, INODE + COUNTER)
BESIDE = (BDEV, INODE, INODE.replace("\tstruct block_device", COUNTER + "\tstruct block_device"))
PACKED = (BDEV, "(SLAB_HWCACHE_ALIGN|SLAB_RECLAIM_ACCOUNT|", "(SLAB_RECLAIM_ACCOUNT|")
LOCKED = (
    BDEV,
    "\tei->bios++;\n",
    "\tei->bios++;\n\tspin_lock(&bdev->bd_size_lock);\n\tspin_unlock(&bdev->bd_size_lock);\n",
)


@guest
@pytest.mark.long
def test_shared_structures(iopath: Command, trees: Trees, named: Callable, tmp_path: Path) -> None:
    """A field that moves beside those that each I/O reads, objects that no longer begin in a line
    of their own, and a lock in a structure that is shared: each fails the gate, by what accesses it
    and how often, in the arrangements that share it. A kernel without types has no other name."""
    kernels = {
        "base": (COUNT, BEHIND),
        "moved": (COUNT, BESIDE),
        "packed": (COUNT, BEHIND, PACKED),
        "locked": (COUNT, BEHIND, LOCKED),
    }
    call = ("\tplanted(bio->bi_bdev);\n", "void planted(struct block_device *bdev);\n\n")
    names = [named(name, trees.copy(name, *call, replaced)) for name, replaced in kernels.items()]
    out = tmp_path / "out.json"
    words = ("--rung=dio.pread", "--op=read", "--cpus=2", "--json", out, "--fail-above", "1")
    done = iopath.run("compare", *names, *words, timeout=7200)
    assert done.returncode == 1, done.stderr
    records = result.load(out).results
    figures = [
        {(one.arrangement, one.of, one.metric): one.boots for one in record.sharing.figures}
        for record in records
    ]
    reads = {("page: submit_bio_noacct", "accesses"): 3}
    more = {
        "moved": (reads, ("files", "threads")),
        "packed": ({("page: planted", "writes"): 1}, ("devices",)),
        "locked": ({("page: _raw_spin_lock", "locked writes"): 1}, ("files", "threads")),
    }
    for name, found, (what, arrangements) in zip(
        names[1:], figures[1:], more.values(), strict=True
    ):
        said = done.stderr.partition(f"{name} shares more than {names[0]}: ")[2].partition(";")[0]
        assert set(re.findall(r"(\w+), page: ", said)) == set(arrangements)
        for (of, metric), times in what.items():
            for arrangement in together.ARRANGEMENTS:
                key = (arrangement, of, metric)
                by = times if arrangement in arrangements else 0
                assert (f"{', '.join(key)} {times:.2f} (1 % allowed)" in said) == bool(by), key
                before, after = (set(side.get(key, (0.0,))) for side in (figures[0], found))
                assert after == {one + by for one in before}, key


# For git bisect run, a commit that cannot be measured is not bad.


@guest
@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        (IMAGE, "no kernel", "QEMU ended with status 1: "),
        ("include/linux/bio.h", "no header", "the modules do not build for 6.12."),
    ],
)
def test_damaged_tree(
    iopath: Command, trees: Trees, tmp_path: Path, file: str, content: str, complaint: str
) -> None:
    """A tree that does not boot, and one in which our modules do not build."""
    plain, damaged = trees.plain(), tmp_path / "damaged"
    subprocess.run(["cp", "-as", plain, damaged], check=True)
    (damaged / file).unlink()
    (damaged / file).write_text(content)
    names = (f"tree:{plain}", f"tree:{damaged}")
    done = iopath.run("compare", *names, "--rung", "syscall", "--fail-above", "1", "--quiet")
    said = done.stderr.splitlines()
    assert (done.returncode, done.stdout, len(said)) == (125, "", 1), done.stderr
    assert said[0].startswith(f"iopath: {names[1]}: {complaint}")


def commits(trees: Trees, tree: Path) -> tuple[str, str, str, str]:
    """Make a repository of a kernel. The commits: a good one, one that does not compile, which is
    in the middle, the last good one, and one with five more instructions, which is checked out."""
    shutil.copytree(trees.plain(), tree, symlinks=True)
    shutil.rmtree(tree / ".git", ignore_errors=True)
    git(tree, "init", "--quiet")
    place = tree / PLACE
    good = commit(tree, PLACE, "as it is")
    plain = place.read_text()
    place.write_text(plain + "/* one */\n")
    commit(tree, PLACE, "a comment")
    plant(tree, "\tno C;\n")
    broken = commit(tree, PLACE, "what does not compile")
    place.write_text(plain)
    last_good = commit(tree, PLACE, "what compiles again")
    plant(tree, NOPS)
    return good, broken, last_good, commit(tree, PLACE, "five more instructions")


@pytest.mark.long
@guest
def test_git_bisect_run(trees: Trees, session: Session, tmp_path: Path) -> None:
    """The recipe of kernels.rst finds the commit, and skips the one that does not compile."""
    tree = tmp_path / "linux"
    good, broken, _, planted = commits(trees, tree)
    git(tree, "tag", "v6.12", good)
    git(tree, "tag", "v6.13", planted)
    text = (source_root() / "Documentation/kernels.rst").read_text()
    (recipe,) = re.findall(r"^    git checkout .*\n(?:    .*\n|\n)+", text, re.MULTILINE)
    (search,) = re.findall(r"^    git bisect start .*\n(?:    .*\n)+", text, re.MULTILINE)
    (tmp_path / "recipe").write_text(recipe + search)
    surroundings = {
        **os.environ,
        "IOPATH_CACHE": str(session.cache.root),
        "PATH": f"{source_root()}/build/bin:{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["sh", "-ex", tmp_path / "recipe"], cwd=tree, env=surroundings, timeout=3600,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert f"{planted} is the first bad commit" in done.stdout, done.stdout
    assert f"git bisect skip {broken}" in git(tree, "bisect", "log")
