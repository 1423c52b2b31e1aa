# SPDX-License-Identifier: GPL-2.0
"""Saved states: a resumed guest has the same counts as one that booted, and a figure does not
depend on what else was measured. With a damaged state, the guest boots."""

import gzip
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.command import FAST_START, FEW, KERNEL, Command
from iopath.base.cache import Cache
from iopath.base.programs import guest_program
from iopath.counts.longrun import LongRun
from iopath.counts.pathcount import BootProfile, CountedRound
from iopath.counts.plugin_output import read
from iopath.guest import guest
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import KALLSYMS, QUIET
from iopath.guest.states import States
from iopath.kernels import modules
from iopath.kernels.built import Built
from iopath.measure.assemble import symbols_of
from iopath.measure.plan import Image, guests, make_image, modules_of
from iopath.measure.rounds import RunCounts, figure
from iopath.measure.session import Session
from iopath.results.layers import Layers
from iopath.rungs import ioloop_report
from iopath.rungs.builtin import select
from iopath.rungs.runs import LINE_ROUNDS, Run, Settings, make_runs

pytestmark = pytest.mark.guest

KERNELS = ("debian:5.10", "debian:6.1", "debian:6.12", "debian:7.2", "debian:7.3")

# Up to 6.1 this one sleeps until kblockd has written. Then the scheduler brings its load averages
# up to date when 1,024 ns have passed, so that the figure depends on when the round begins.
SLEEPING = {("6.1", "mq.pread write"), ("5.10", "mq.pread write")}
SLEEPING_NOISE = 0.1  # instructions per I/O


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest, session: Session) -> Built:
    kernel = session.find(request.param)
    return kernel.prepare(session.cache, session.apt, lambda what, part: None)


# A guest without the plugin does not have these.
LONG_RUNS = ("run long.",)


def not_counted(rounds: int) -> RunCounts:
    """The result of a run without the plugin."""
    return RunCounts([CountedRound(0, 0, True, 0)] * rounds, LongRun(0.0, 0.0, []))


def without_long_runs(image: Image) -> Image:
    image.plan = [command for command in image.plan if not command.startswith(LONG_RUNS)]
    return image


def texts_of(records: Sequence[guest.Record]) -> dict[str, str]:
    return {record.name: record.data.decode() for record in records}


def figures_of(texts: dict[str, str], runs: Sequence[Run]) -> dict[str, float]:
    """Instructions per I/O by the title of the run, as the clock counts them."""
    found = {}
    for run in runs:
        said = ioloop_report.read(texts[f"run.{run.region}"])
        record = figure("", "", run, [said], [not_counted(len(said.rounds))])
        found[run.title] = record.instructions_per_io
    return found


def sleeps(built: Built, title: str) -> bool:
    return (".".join(built.release.split(".")[:2]), title) in SLEEPING


def different(
    built: Built, wanted: dict[str, float], found: dict[str, float], noise: float = 0
) -> dict[str, tuple[float, float]]:
    """The figures that differ by more than *noise*; those of a rung that sleeps may differ a
    little."""
    return {
        title: (wanted[title], count)
        for title, count in found.items()
        if abs(count - wanted[title]) > (SLEEPING_NOISE if sleeps(built, title) else noise)
    }


# In make check the guest starts quickly.
FAST_FEW = Settings(select(FEW), ["read"], machine=Machine(cmdline=FAST_START))


@pytest.mark.parametrize(
    ("built", "settings"),
    cases(
        [(KERNEL, FAST_FEW), *((kernel, Settings(select(()))) for kernel in KERNELS)],
        quick=[(KERNEL, FAST_FEW)],
    ),
    indirect=["built"],
    scope="module",
)
def test_resumed_as_booted(
    states: States, built: Built, settings: Settings, tmp_path: Path
) -> None:
    """Every figure and every profile of a resumed guest is the same, to the last digit, as of one
    that booted and went on. The figures are those of a guest without the plugin, too."""
    runs, _ = make_runs(settings)
    image = without_long_runs(make_image(built, runs, settings))
    qemu, log = Qemu.find(), tmp_path / "console.log"
    state = states.prepare(qemu, settings.machine, image.start, log)
    texts, profiles = [], []
    for given in (None, state):
        records, counts = guest.run(
            qemu, settings.machine, image, log,
            plugin=guest_program("pathcount.so"), options=f"lines={LINE_ROUNDS}", state=given,
        )  # fmt: skip
        texts.append(texts_of(records))
        kallsyms = gzip.compress(texts[-1].pop(KALLSYMS).encode())
        functions = symbols_of(kallsyms, texts[-1], image.files)
        found = BootProfile(read(counts.decode().splitlines()), functions, Layers())
        profiles.append({run.title: found.region(run.region, run.ios) for run in runs})
    texts.append(texts_of(guest.run(qemu, settings.machine, image, log, state=state)[0]))
    booted, resumed, without = (figures_of(one, runs) for one in texts)
    assert different(built, booted, resumed) == different(built, booted, without) == {}
    booted, resumed = profiles
    differ = {title for title in booted if booted[title] != resumed[title]}
    assert {title for title in differ if not sleeps(built, title)} == set()
    assert all(profile.kernel > 0 for title, profile in booted.items() if title != "null")


@pytest.mark.parametrize("built", ["debian:5.10", "debian:7.2"], indirect=True, scope="module")
def test_functions_of_modules(states: States, built: Built, tmp_path: Path) -> None:
    """The symbols computed from a module's file and sections are those of /proc/kallsyms; the
    kernel's own functions are read before the guest is saved."""
    settings = Settings(rungs=select(["raw.pread", "nullb.pread"]))
    image = make_image(built, make_runs(settings)[0], settings)
    loaded = [command for command in image.plan if command.startswith(("insmod ", "file /sys/mod"))]
    image.plan = [*loaded, f"file {KALLSYMS}"]
    records, _ = states.run(Qemu.find(), settings.machine, image, tmp_path / "console.log")
    started, now = (
        [line for line in record.data.decode().splitlines() if line.split()[1] in tuple("tTwW")]
        for record in records
        if record.name == KALLSYMS
    )
    assert started == [line for line in now if "[" not in line]
    said = {(*line.split()[2:], int(line.split()[0], 16)) for line in now if "[" in line}
    made = {
        (function, f"[{module}]", int(address, 16))
        for name, data in modules_of(image.files).items()
        for line in modules.kallsyms(name, data, texts_of(records))
        for address, _, function, module in [line.replace("[", "").replace("]", "").split()]
    }
    names = {name for name, _, _ in said}
    assert names >= {"biogen_read_iter", "blknull_bio_submit", "null_queue_rq"}
    assert made == {one for one in said if one[1].strip("[]") in modules_of(image.files)}


def figures(states: States, built: Built, settings: Settings, log: Path) -> dict[str, float]:
    found = {}
    for runs in guests(make_runs(settings)[0], settings):
        image = without_long_runs(make_image(built, runs, settings))
        texts = texts_of(states.run(Qemu.find(), settings.machine, image, log)[0])
        found |= figures_of(texts, runs)
    return found


# Rungs that are measured together, and those of them that are also measured alone.
ALONE = {
    "few": ([[*FEW, "nullb.pread"]], ["dio.aio.100", "mq.pread", "nullb.pread"]),
    "some": (
        [[], ["mq.aio.100", "nullb.pread"]],
        ["raw.aio.100", "dio.pread", "buf.*", "mq.*.100", "nullb.pread"],
    ),
    "all": ([["*"]], ["*"]),
}


@pytest.mark.parametrize(
    ("built", "alone"),
    cases(
        [(kernel, which) for kernel in ("debian:6.1", "debian:7.2") for which in ALONE],
        quick=[("debian:7.2", "few")],
    ),
    indirect=["built"],
    scope="module",
)
def test_any_order(states: States, built: Built, alone: str, tmp_path: Path) -> None:
    """A rung has the same figure among others, among them in reverse, and alone."""
    log = tmp_path / "console.log"
    among, single = ALONE[alone]
    ladder = Settings(rungs=[rung for names in among for rung in select(names)])
    wanted = figures(states, built, ladder, log)
    back = replace(ladder, rungs=ladder.rungs[::-1], ops=ladder.ops[::-1])
    others = [figures(states, built, back, log)]
    others += [
        figures(states, built, replace(ladder, rungs=[rung]), log) for rung in select(single)
    ]
    assert others[0].keys() == wanted.keys()
    assert [different(built, wanted, found, noise=0.01) for found in others] == [{}] * len(others)


def yielding(main: bool) -> Callable[[int], None]:
    """Make the main thread of our guests' QEMU run after its CPU's thread, or the reverse: both on
    one CPU, one of them only when the other is idle."""

    def arrange(records: int) -> None:
        for thread in Path("/proc/self/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                for path in Path(f"/proc/{child}/task").iterdir():
                    task = int(path.name)
                    os.sched_setaffinity(task, {min(os.sched_getaffinity(child))})
                    policy = os.SCHED_IDLE if (task == child) == main else os.SCHED_OTHER
                    os.sched_setscheduler(task, policy, os.sched_param(0))

    return arrange


@pytest.mark.long
@pytest.mark.parametrize("built", [KERNEL], indirect=True, scope="module")
def test_stops_in_one_state(built: Built, tmp_path: Path) -> None:
    """Everything that a guest records is the same, interrupted rounds included, whether QEMU's main
    thread or its CPU's thread runs first when the machine stops."""
    settings = Settings(rungs=select(["syscall"]), machine=Machine(cmdline=FAST_START))
    image = without_long_runs(make_image(built, make_runs(settings)[0], settings))
    image.start = replace(image.start, commands=(QUIET,))
    one, other = (
        guest.run(Qemu.find(), settings.machine, image, tmp_path / "console.log", yielding(main))[0]
        for main in (True, False)
    )
    assert texts_of(one) == texts_of(other)


SHORT = ("--rung", "syscall", "--cmdline", FAST_START)


def test_bad_state(resumable: Command, tmp_path: Path) -> None:
    """If a state cannot be loaded, one line says so, and the guest boots: the figure is
    the same."""
    first, again = tmp_path / "first.json", tmp_path / "again.json"
    assert resumable.run("measure", KERNEL, *SHORT, "--json", first).returncode == 0
    resumable.forget()
    cache = Cache(resumable.cache)
    for entry, inputs in [*cache.entries("state")]:
        shutil.rmtree(entry)
        cache.entry("state", inputs, lambda folder: bool((folder / guest.STATE).write_bytes(b"0")))
    done = resumable.run("measure", KERNEL, *SHORT, "--quiet", "--json", again)
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1), done.stderr
    assert "cannot load the guest's state" in done.stderr
    counts = [
        [record["instructions_per_io"] for record in json.loads(path.read_text())["results"]]
        for path in (first, again)
    ]
    assert counts[0] == counts[1] != []
    resumable.left_nothing()


def test_killed_while_loading(resumable: Command) -> None:
    """If iopath is killed while a guest is resumed or at work, the state stays and is used
    again."""

    def made() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in resumable.cache.glob("state/*/ram")}

    before = made()
    running = resumable.start("measure", KERNEL, *SHORT)
    while running.poll() is None and not any("-incoming" in line for line in resumable.programs()):
        time.sleep(0.005)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert running.returncode == -signal.SIGKILL
    assert list((resumable.cache / "result").glob("*/manifest.json")) == []
    done = resumable.run("measure", KERNEL, *SHORT)
    assert done.returncode == 0, done.stderr
    assert made() == before != {}
    assert resumable.programs() == []


@pytest.mark.long
def test_no_space_for_a_state(ready: Command, tmp_path: Path) -> None:
    """If the disk has no room for a state, nothing is left of it. With room, the next run works."""
    kept = tmp_path / "kept"
    ready.cache.rename(kept)
    ready.cache.mkdir()
    full = ready.cache / "full"
    script = f"""
mount -t tmpfs -o size=256m none {ready.cache} && cp -a {kept}/. {ready.cache} || exit 90
cat /dev/zero >{full} 2>&-
truncate -s -4M {full} || exit 91
"$0" "$@"
status=$?
find {ready.cache}/state -mindepth 1 >&2
rm {full}
"$0" "$@" >&2 || exit 92
exit $status"""
    wrap = ["unshare", "--map-root-user", "--mount", "sh", "-c", script]
    done = ready.run("measure", KERNEL, *SHORT, "--quiet", wrap=wrap)
    lines = done.stderr.splitlines()
    assert done.returncode == 1, done.stderr
    assert lines[0].startswith(f"iopath: {KERNEL}: cannot write {ready.cache}/state/")
    assert "No space left on device" in lines[0]
    assert [line for line in lines[1:] if str(ready.cache) in line] == []
    assert any(line.startswith("syscall ") for line in lines[1:])


@pytest.mark.long
def test_killed(ready: Command) -> None:
    """If iopath is killed while a guest boots, or is saved, an incomplete state is not used."""
    for pattern in ("*.part", "*.part/*"):
        running = ready.start("measure", KERNEL, *SHORT)
        while running.poll() is None and not any((ready.cache / "state").glob(pattern)):
            time.sleep(0.01)
        running.send_signal(signal.SIGKILL)
        running.communicate()
        assert running.returncode == -signal.SIGKILL
        assert list((ready.cache / "state").glob("*/manifest.json")) == []
    done = ready.run("measure", KERNEL, *SHORT)
    assert done.returncode == 0, done.stderr
    assert [path.suffix for path in (ready.cache / "state").iterdir()] == [""]
