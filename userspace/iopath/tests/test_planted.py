# SPDX-License-Identifier: GPL-2.0
"""A change that was planted in a kernel is found: by compare, and by bisect among commits.

The kernels are built from the source of one of Debian's with iopath's minimal.config, once: they
stay in the user's cache, as do the results of measuring them.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import IOPATH, Command
from linux_source import LinuxSource, build_command
from test_charts import a_record, a_result

from iopath import bisection, compare, comparison, kernels, process, result, rungs, sharing
from iopath.arch import X86_64
from iopath.cache import Cache
from iopath.errors import IopathError, UsageError
from iopath.layers import Layers
from iopath.measure import Session
from iopath.plan import Settings
from iopath.result import Result
from iopath.sources import source_root

guest = pytest.mark.guest

# Every bio passes here once.
FUNCTION = "submit_bio_noacct"
PLACE = "block/blk-core.c"
IMAGE = "arch/x86/boot/bzImage"
PLANTED = 5
NOPS = '\tasm volatile("' + "nop\\n\\t" * PLANTED + '");\n'

# As many instructions, of which two read the time stamp, and one is locked, in a cache line that
# nothing else is in.
COSTLY = """\tstatic unsigned long planted[16] __aligned(128);
\tasm volatile("rdtsc\\n\\tnop\\n\\tlock incq %0\\n\\tnop\\n\\trdtsc"
\t\t     : "+m" (planted[0]) :: "eax", "edx");
"""

TOUCHED = {"dio.pread", "dio.aio.1"}
UNTOUCHED = {"null", "syscall", "buf.pread"}
RUNGS = [f"--rung={name}" for name in sorted(TOUCHED | UNTOUCHED)] + ["--op=read"]


# Costs that the median of short rounds does not show: something seldom, and something later. Each
# function that is planted executes so many instructions, and a few more. No two are alike: of
# functions that are, the compiler makes one.
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


def plant(source: Path, what: str = NOPS, functions: str = "") -> None:
    """Add a statement to FUNCTION in a kernel's source, and *functions* before it."""
    text = (source / PLACE).read_text()
    head, body = re.split(rf"(?=^void {FUNCTION}\()", text, maxsplit=1, flags=re.MULTILINE)
    declarations, rest = re.match(r"(.*?\n\n)(.*)", body, re.DOTALL).groups()
    (source / PLACE).write_text(f"{head}{functions}{declarations}{what}{rest}")


class Trees:
    """Kernels built from one source, in the cache."""

    def __init__(self, session: Session) -> None:
        self._cache = session.cache
        self._source = LinuxSource(session)

    def plain(self) -> Path:
        """The kernel as it is."""
        return self._source.tree("minimal.config")

    def copy(self, name: str, what: str = "", functions: str = "") -> Path:
        """The same, with *what* planted and built by *name*, so that no two are one file."""
        plain = self.plain()
        build = build_command().replace("BUILD_USER=iopath", f"BUILD_USER={name}")

        def make(folder: Path) -> None:
            shutil.copytree(plain, folder / "linux", symlinks=True)
            if what:
                plant(folder / "linux", what, functions)
            log = folder / "log"
            if process.run(["sh", "-ec", build], output=log, cwd=folder / "linux"):
                raise IopathError(f"no kernel: {log.read_text(errors='replace')[-2000:]}")

        inputs = {"of": plain.parent.name, "planted": functions + what, "build": build}
        return self._cache.entry("tree", inputs, make) / "linux"


@pytest.fixture(scope="module")
def trees(session: Session) -> Trees:
    return Trees(session)


@pytest.fixture
def iopath(session: Session, tmp_path: Path) -> Iterator[Command]:
    """The command with the user's cache, in which the results are kept, too."""
    command = Command(session.cache.root, tmp_path)
    yield command
    command.stop()


@pytest.fixture
def named(trees: Trees, tmp_path: Path) -> Callable[[str, Path], str]:
    """What a tree is called on the command line, by a name that a table has room for."""

    def name(name: str, tree: Path) -> str:
        (tmp_path / name).symlink_to(tree)
        return f"tree:{tmp_path / name}"

    return name


def differences(measured: Path) -> dict[str, dict[str, Any]]:
    """How the second kernel of a result file differs from the first, by rung."""
    whole = compare.compare(result.load(measured), Layers())
    (other,) = whole.others
    return {rung.rung: result.dump(rung.differences[other]) for rung in whole.rungs}


@guest
def test_compare(iopath: Command, trees: Trees, named: Callable, tmp_path: Path) -> None:
    """The function is named with the exact number; rungs that do not pass there are the same."""
    before, after = named("before", trees.plain()), named("after", trees.copy("planted", COSTLY))
    out = tmp_path / "out.json"
    limit = ("--fail-above", "0.05")
    done = iopath.run(
        "compare", before, after, *RUNGS, "--json", out, "--all", *limit, timeout=1200
    )
    assert done.returncode == 1, done.stderr
    said = done.stderr.splitlines()[-1]
    assert said.startswith("iopath: dio.")
    assert said.count(" % more than ") == len(TOUCHED)
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
        # What is planted is as much as the resolution of this metric.
        deferred, _ = metrics.pop("with deferred work", (change["difference"], "same"))
        assert deferred == pytest.approx(change["difference"], abs=0.5), rung
        more = dict.fromkeys(("locked", "reads", "writes"), (1.0, "more"))
        more |= dict.fromkeys(("costly", "timestamps"), (2.0, "more"))
        assert metrics == (more if rung in TOUCHED else {}), rung
    for rung in TOUCHED:
        lines = found[rung]["metrics"]["data lines"]
        assert abs(lines["difference"] - 1) <= lines["noise"], rung
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
    done = iopath.run("compare", before, after, *words, "--fail-above", "1", timeout=1200)
    assert done.returncode == 1, done.stderr
    said = done.stderr.splitlines()[-1]
    assert "dio.pread read mean: " in said
    assert "dio.pread read with deferred work: " in said
    change = differences(out)["dio.pread"]
    seldom = sum(count / each for each, count in SELDOM.values())
    # Two of three rounds of 100 I/Os have the 150th bio, and so has the median. What is left of it
    # is what each bio executes at once.
    at_once = change["difference"] - SELDOM["planted_150th"][1] / 100
    assert 0 < at_once < 300
    mean, deferred = (change["metrics"][name] for name in comparison.LONG_RUN)
    assert mean["telling"]
    assert deferred["telling"]
    # To allocate memory is seldom dear, too.
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


@guest
def test_compare_the_same(iopath: Command, trees: Trees, named: Callable, tmp_path: Path) -> None:
    """Another build of the same source, which boots for itself, differs in nothing."""
    one, other = trees.plain(), trees.copy("again")
    assert (one / IMAGE).read_bytes() != (other / IMAGE).read_bytes()
    out = tmp_path / "out.json"
    names = (named("one", one), named("other", other))
    done = iopath.run("compare", *names, *RUNGS, "--json", out, "--fail-above", "0", timeout=1200)
    assert (done.returncode, "iopath: " in done.stderr) == (0, False), done.stderr
    found = differences(out)
    assert found.keys() == TOUCHED | UNTOUCHED
    assert {change["verdict"] for change in found.values()} == {"same"}
    moved = [row for change in found.values() for row in change["functions"] if row["difference"]]
    assert moved == []


# What CPUs share: a counter that all increment, counters of CPUs that are packed into a line, and a
# counter of which each CPU has its own.
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
    """A counter is true sharing, packed counters are false sharing, and counters of CPUs are none.
    The plain kernel has none of them."""
    trees_ = {
        "before": trees.plain(),
        "after": trees.copy("sharing", "\tplanted_sharing();\n", SHARED),
    }
    names = [named(name, tree) for name, tree in trees_.items()]
    out = tmp_path / "out.json"
    words = ("--rung=dio.pread", "--op=read", "--cpus=2", "--json", out)
    done = iopath.run("measure", *names, *words, timeout=1200)
    assert done.returncode == 0, done.stderr
    before, after = (record.sharing for record in result.load(out).results)
    assert not [line for line in before.lines if "planted" in line.where]
    planted = [line for line in after.lines if "planted" in line.where]
    assert sorted((line.arrangement, line.kind, line.where) for line in planted) == sorted(
        (arrangement, kind, where)
        for arrangement in sharing.ARRANGEMENTS
        for kind, where in (
            ("true", "planted_counter"),
            ("false", "planted_packed{+0x0, +0x8}"),
        )
    )
    for line in planted:
        rows = [(row.function, row.cpu, row.locked, row.per_io, row.bytes) for row in line.writes]
        locked = line.kind == "true"
        touched = [[(0, 3)], [(0, 3)]] if locked else [[(0, 7)], [(8, 15)]]
        assert rows == [("planted_sharing", cpu, locked, 1.0, touched[cpu]) for cpu in (0, 1)]


# What cannot be measured is not bad, for git bisect run.


@guest
@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        (IMAGE, "no kernel", "QEMU ended with status 1: "),
        ("Module.symvers", "no symbols", "the modules do not build for 6.12."),
    ],
)
def test_damaged_tree(
    iopath: Command, trees: Trees, tmp_path: Path, file: str, content: str, complaint: str
) -> None:
    """One that does not boot, and one that our modules do not build in."""
    plain, damaged = trees.plain(), tmp_path / "damaged"
    subprocess.run(["cp", "-as", plain, damaged], check=True)
    (damaged / file).unlink()
    (damaged / file).write_text(content)
    names = (f"tree:{plain}", f"tree:{damaged}")
    done = iopath.run("compare", *names, "--rung", "syscall", "--fail-above", "1", "--quiet")
    said = done.stderr.splitlines()
    assert (done.returncode, done.stdout, len(said)) == (125, "", 1), done.stderr
    assert said[0].startswith(f"iopath: {names[1]}: {complaint}")


def make_tree(folder: Path) -> Path:
    """What a built tree is recognised by."""
    options = [f"CONFIG_{name}=y" for name in (X86_64.option, *X86_64.options, *kernels.NEEDED)]
    for name, text in {
        IMAGE: "",
        "include/config/kernel.release": "6.12.0\n",
        ".config": "\n".join(options),
        "Module.symvers": "",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("lacks", "complaint"),
    [
        (IMAGE, "/arch/x86/boot/bzImage is missing: build the kernel there first"),
        (".config", "/.config is missing: build the kernel there first"),
        ("Module.symvers", "Module.symvers is missing: run `make modules` there"),
    ],
)
def test_tree_that_is_not_built(
    listed: Command, tmp_path: Path, lacks: str, complaint: str
) -> None:
    tree = make_tree(tmp_path / "tree")
    (tree / lacks).unlink()
    said = listed.fails("measure", f"tree:{tree}", status=2)
    assert said.startswith(f"iopath: tree:{tree}: ")
    assert said.endswith(complaint)
    judged = listed.run("compare", f"tree:{tree}", "debian:6.1", "--fail-above", "1")
    assert judged.returncode == 125


def test_tree_without_what_a_guest_needs(listed: Command, tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    config = (tree / ".config").read_text()
    (tree / ".config").write_text(
        config.replace("CONFIG_MODULES=y\n", "").replace("CONFIG_PCI=y", "CONFIG_PCI=n")
    )
    assert listed.fails("measure", f"tree:{tree}", status=2) == (
        f"iopath: tree:{tree}: its kernel cannot be measured: build it with CONFIG_MODULES=y,"
        " CONFIG_PCI=y"
    )


# Bisect.


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=iopath", "-c", "user.email=iopath@localhost")
    return subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder: Path, file: str, subject: str) -> str:
    git(folder, "add", "--force", file)
    git(folder, "commit", "--quiet", "--message", subject)
    return git(folder, "rev-parse", "HEAD")


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


@guest
def test_bisect(iopath: Command, trees: Trees, tmp_path: Path) -> None:
    """Among commits of which one, where the search goes first, does not compile."""
    tree = tmp_path / "linux"
    good, broken, last_good, planted = commits(trees, tree)
    git(tree, "branch", "--force", "work")
    git(tree, "checkout", "--quiet", "work")
    out = tmp_path / "out.json"
    done = iopath.run(
        "bisect", "--tree", tree, good, "HEAD", "--build", build_command(), "--rung", "dio.pread",
        "--op", "read", "--json", out, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    said = done.stdout.splitlines()
    assert any(line.startswith(f"skipped: {broken[:12]} does not build") for line in said)
    assert any(
        line.startswith(f"first bad commit: {planted[:7]}") and "five more instructions" in line
        for line in said
    )
    assert f"first bad: {planted[:12]}" in said
    kernels = result.load(out).names
    assert kernels == [last_good[:12], planted[:12]]
    change = differences(out)["dio.pread"]
    assert [row["name"] for row in change["functions"] if row["difference"]] == [FUNCTION]
    assert change["functions"][0]["difference"] == PLANTED
    # The tree is left as it was.
    assert git(tree, "rev-parse", "--abbrev-ref", "HEAD") == "work"
    assert git(tree, "status", "--porcelain", "--untracked-files=no") == ""


@pytest.mark.long
@guest
def test_git_bisect_run(trees: Trees, session: Session, tmp_path: Path) -> None:
    """The tutorial's recipe finds the commit, and skips the one that does not compile."""
    tree = tmp_path / "linux"
    good, broken, _, planted = commits(trees, tree)
    git(tree, "tag", "v6.12", good)
    git(tree, "tag", "v6.13", planted)
    text = (source_root() / "Documentation/tutorial.rst").read_text().partition("Which commit?")[2]
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


def test_git_bisect_run_with_results(history: Path, listed: Command, tmp_path: Path) -> None:
    """The exit status of compare is what git expects: good, bad, or not to be judged."""
    for name, by in {"2000": 0.0, "2007": 7.0}.items():
        record = a_record("k", "dio.pread", "read", 4096, stacks=None)
        for figure in ("instructions_per_io", "mean", "with_deferred"):
            record[figure] += by
        for boots in ("boots", "mean_boots", "with_deferred_boots"):
            record[boots] = [figure + by for figure in record[boots]]
        (tmp_path / name).write_text(json.dumps(a_result([record])))
    (tmp_path / "broken").write_text("{}")
    shutil.copy(tmp_path / "2000", tmp_path / "good.json")
    step = (
        "cp ../$(cut -d' ' -f1 figure) ../now.json;"
        f" {IOPATH} compare ../good.json ../now.json --rung dio.pread --op read --fail-above 0.1"
    )
    git(history, "bisect", "start", "HEAD", "HEAD~6")
    done = subprocess.run(
        ["git", "bisect", "run", "sh", "-c", step], cwd=history, env=listed.env,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "commit 5" in git(history, "show", "--no-patch", "refs/bisect/bad")
    assert re.search(r"^git bisect skip \w+", git(history, "bisect", "log"), re.MULTILINE)


class Figures:
    """What stands for a session: kernels take what a function says, or cannot be measured."""

    def __init__(
        self, figure: Callable[[str], float | None], noise: tuple[float, ...] = (0.0,) * 4
    ) -> None:
        self._figure = figure
        self._noise = noise
        self.mean: Callable[[str], float] = lambda name: 2000.0
        self.measured: list[str] = []

    def measure(self, names: list[str], settings: Settings) -> Result:
        (name,) = names
        self.measured.append(name)
        figure = self._figure(name)
        if figure is None:
            raise IopathError("it crashed")
        record = a_record(name, "dio.pread", "read", 4096, stacks=None)
        record |= {"instructions_per_io": figure, "boots": [figure + by for by in self._noise]}
        record["mean_boots"] = [self.mean(name)] * len(self._noise)
        return result.parse(a_result([record]))


def search(
    figure: Callable[[str], float | None], noise: tuple[float, ...] = (0.0,) * 4
) -> tuple[bisection.Search, Figures, list[str]]:
    session, said = Figures(figure, noise), []
    settings = Settings(rungs=rungs.select(["dio.pread"]), ops=["read"])
    return bisection.Search(session, settings, said.append), session, said  # type: ignore[arg-type]


def found(ends: list[Result]) -> list[str]:
    return [end.names[0] for end in ends]


PACKAGES = [SimpleNamespace(release=f"6.12.{number}") for number in range(9)]


@pytest.mark.parametrize("first_bad", range(1, 9))
@pytest.mark.parametrize("by", [+7.0, -7.0])
def test_bisect_packages(first_bad: int, by: float) -> None:
    """Each place is found, with few kernels measured, whether the path grew or shrank."""
    looked, session, _ = search(lambda name: 2000 + by * (int(name.rsplit(".", 1)[1]) >= first_bad))
    ends = bisection.packages(looked, PACKAGES, print)
    assert found(ends) == [f"debian:6.12.{number}" for number in (first_bad - 1, first_bad)]
    assert len(session.measured) <= 2 + 3
    assert len(set(session.measured)) == len(session.measured)


def test_bisect_packages_backwards() -> None:
    looked, _, _ = search(lambda name: 2007.0 if name >= "debian:6.12.3" else 2000.0)
    ends = bisection.packages(looked, PACKAGES[::-1], print)
    assert found(ends) == ["debian:6.12.3", "debian:6.12.2"]


@pytest.mark.parametrize(
    ("skipped", "ends", "left"),
    [
        ({4}, (5, 6), ""),
        ({3, 4}, (5, 6), ""),
        ({5}, (4, 6), "or one of the skipped kernels: debian:6.12.5"),
        (set(range(1, 8)), (0, 8), "or one of the skipped kernels: debian:6.12.1, "),
    ],
)
def test_bisect_packages_skips(skipped: set[int], ends: tuple[int, int], left: str) -> None:
    def figure(name: str) -> float | None:
        number = int(name.rsplit(".", 1)[1])
        return None if number in skipped else 2000.0 + 7 * (number >= 6)

    looked, session, said = search(figure)
    assert found(bisection.packages(looked, PACKAGES, said.append)) == [
        f"debian:6.12.{number}" for number in ends
    ]
    for number in skipped & {int(name.rsplit(".", 1)[1]) for name in session.measured}:
        assert f"debian:6.12.{number}: skipped: it crashed" in said
    assert [line for line in said if line.startswith("or one of")] == [
        line for line in said if left and line.startswith(left)
    ]
    assert bool(left) == any(line.startswith("or one of") for line in said)


@pytest.mark.parametrize(("by", "found_in"), [(0.3, None), (4.0, (3, 4))])
def test_bisect_judges_as_compare_does(by: float, found_in: tuple[int, int] | None) -> None:
    """A difference within the noise of the boots is none; kernels in between may vary, too."""
    looked, _, _ = search(
        lambda name: 2000 + by * (int(name.rsplit(".", 1)[1]) >= 4), noise=(0.0, 0.2, 0.1, 0.4)
    )
    if found_in is None:
        with pytest.raises(IopathError, match="both ends take the same"):
            bisection.packages(looked, PACKAGES, print)
    else:
        ends = found(bisection.packages(looked, PACKAGES, print))
        assert ends == [f"debian:6.12.{number}" for number in found_in]


def test_bisect_sees_what_the_median_does_not_show() -> None:
    """The median is the same; from the fifth kernel on, something comes seldom."""
    looked, session, _ = search(lambda name: 2000.0)
    session.mean = lambda name: 2000.0 + 50 * (int(name.rsplit(".", 1)[1]) >= 5)
    ends = found(bisection.packages(looked, PACKAGES, print))
    assert ends == ["debian:6.12.4", "debian:6.12.5"]


def test_bisect_takes_as_many_boots_as_a_verdict() -> None:
    looked, _, _ = search(lambda name: 2000.0 + 7 * name.endswith("8"), noise=(0.0, 0.0))
    with pytest.raises(IopathError, match="the noise is not known: measure with --boots 4 or more"):
        bisection.packages(looked, PACKAGES, print)


def test_bisect_ends_that_agree() -> None:
    looked, session, _ = search(lambda name: 2000.0)
    with pytest.raises(IopathError, match=r"both ends take the same: 2,000.00 and 2,000.00"):
        bisection.packages(looked, PACKAGES, print)
    assert len(session.measured) == 2


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Seven commits; in each the file "figure" says what the kernel takes."""
    folder = tmp_path / "linux"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for name in ("Kbuild", "Kconfig", "Makefile"):
        (folder / name).touch()
        git(folder, "add", name)
    for number, figure in enumerate(["2000", "2000", "2000", "broken", "2000", "2007", "2007"]):
        (folder / "figure").write_text(f"{figure} {number}\n")
        commit(folder, "figure", f"commit {number}")
    return folder


def bisect_tree(folder: Path, good: str, bad: str, cache: Path) -> tuple[list[str], list[str]]:
    looked, _, said = search(lambda name: float((folder / "figure").read_text().split()[0]))
    ends = bisection.tree(
        looked, folder, good, bad, "! grep -q broken figure", Cache(cache), said.append
    )
    subjects = [git(folder, "log", "-1", "--format=%s", name) for name in found(ends)]
    return subjects, said


def test_bisect_tree(history: Path, tmp_path: Path) -> None:
    """Names are those that git knows, also if they say how far back from here."""
    before = git(history, "rev-parse", "--abbrev-ref", "HEAD")
    subjects, said = bisect_tree(history, "HEAD~6", "HEAD", tmp_path / "cache")
    assert subjects == ["commit 4", "commit 5"]
    assert any("first bad commit: " in line and "commit 5 (iopath, " in line for line in said)
    assert len([line for line in said if line.startswith("skipped: ")]) == 1
    assert git(history, "rev-parse", "--abbrev-ref", "HEAD") == before
    assert not (history / ".git/BISECT_START").exists()


def test_bisect_tree_cannot_decide(history: Path, tmp_path: Path) -> None:
    """Where what was skipped comes just before a bad commit, it may be either."""
    (history / "figure").write_text("broken\n")
    commit(history, "figure", "commit 7")
    (history / "figure").write_text("2020\n")
    commit(history, "figure", "commit 8")
    with pytest.raises(IopathError, match=r"it is one of \w+ \(commit 7\), \w+ \(commit 8\)$"):
        bisect_tree(history, "HEAD~2", "HEAD", tmp_path / "cache")
    assert git(history, "log", "-1", "--format=%s") == "commit 8"


def test_bisect_tree_is_left_alone(history: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no-such: .* has no such commit"):
        bisect_tree(history, "no-such", "HEAD", tmp_path / "cache")
    git(history, "bisect", "start")
    with pytest.raises(UsageError, match="is being bisected: end that with git bisect reset"):
        bisect_tree(history, "HEAD~6", "HEAD", tmp_path / "cache")
    git(history, "bisect", "reset")
    (history / "figure").write_text("1\n")
    with pytest.raises(UsageError, match="has uncommitted changes: commit or stash them first"):
        bisect_tree(history, "HEAD~6", "HEAD", tmp_path / "cache")
    assert (history / "figure").read_text() == "1\n"


def test_bisect_tree_with_a_bad_merge_base(history: Path, tmp_path: Path) -> None:
    """The good end is not an ancestor of the bad one, and where they part is bad, too: git says
    what that means."""
    git(history, "checkout", "--quiet", "-b", "fixed", "HEAD~1")
    (history / "figure").write_text("2000 fixed\n")
    good = commit(history, "figure", "what mends it")
    git(history, "checkout", "--quiet", "-b", "other", "HEAD~1")
    (history / "figure").write_text("2007 other\n")
    commit(history, "figure", "one more bad one")
    with pytest.raises(IopathError) as told:
        bisect_tree(history, good, "HEAD", tmp_path / "cache")
    said = str(told.value)
    assert re.match(r"git bisect bad: The merge base [0-9a-f]{40} is bad\. This means", said)
    assert "\n" not in said
    assert git(history, "rev-parse", "--abbrev-ref", "HEAD") == "other"
    assert not (history / ".git/BISECT_START").exists()


def test_bisect_tree_is_the_top_of_a_kernel(history: Path, tmp_path: Path) -> None:
    """git would find the repository above, and check out that one's commits."""
    inside = history / "drivers"
    inside.mkdir()
    with pytest.raises(UsageError, match=r"drivers is not the top of a git repository: that is "):
        bisect_tree(inside, "HEAD~6", "HEAD", tmp_path / "cache")
    with pytest.raises(UsageError, match="is no git repository with a work tree"):
        bisect_tree(tmp_path, "HEAD~6", "HEAD", tmp_path / "cache")
    (tmp_path / "link").symlink_to(history)
    assert bisect_tree(tmp_path / "link", "HEAD~6", "HEAD", tmp_path / "cache")[0]
    (history / "Kconfig").unlink()
    with pytest.raises(UsageError, match="is not a kernel: it lacks Kbuild, Kconfig or Makefile"):
        bisect_tree(history, "HEAD~6", "HEAD", tmp_path / "cache")
