# SPDX-License-Identifier: GPL-2.0
"""Saved states: a resumed guest counts what one that booted counts, and a figure does not depend on
what else was measured. With a damaged state, the guest boots."""

import json
import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from cases import cases
from conftest import FAST_START, KERNEL, Command

from iopath import guest, modules
from iopath.build import Built, build
from iopath.cache import Cache
from iopath.figures import figure
from iopath.jobs import take_symbols
from iopath.layers import Layers
from iopath.machine import Qemu
from iopath.measure import Session
from iopath.pathcount import BootProfile
from iopath.plan import LINE_ROUNDS, Image, Run, Settings, guests, make_image, make_runs, modules_of
from iopath.programs import guest_program
from iopath.rungs import select
from iopath.states import States
from iopath.symbols import Symbols

pytestmark = pytest.mark.guest

KERNELS = ("debian:5.10", "debian:6.1", "debian:6.12", "debian:7.2", "debian:7.3")

# Up to 6.1 this one sleeps until kblockd has written. Then the scheduler brings its load averages
# up to date when 1,024 ns have passed, so that the figure depends on when the round begins.
SLEEPING = {("6.1", "mq.pread write"), ("5.10", "mq.pread write")}
SLEEPING_NOISE = 0.1  # instructions per I/O


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest, session: Session) -> Built:
    kernel = session.find(request.param)
    return build(kernel, session.cache, session.apt, lambda what, part: None)


# Of a guest without the plugin nothing is known of these.
LONG_RUNS = ("run background ", "run idle.", "run long.")
NO_LONG_RUN = {"mean": 0.0, "with_deferred": 0.0}


def without_long_runs(image: Image) -> Image:
    image.plan = [command for command in image.plan if not command.startswith(LONG_RUNS)]
    return image


def texts_of(records: Sequence[guest.Record]) -> dict[str, str]:
    return {record.name: record.data.decode() for record in records}


def figures_of(texts: dict[str, str], runs: Sequence[Run]) -> dict[str, float]:
    """Instructions per I/O by the title of the run."""
    found = {}
    for run in runs:
        record = figure("", "", run, [json.loads(texts[f"run.{run.region}"])], [NO_LONG_RUN])
        found[run.title] = record["instructions_per_io"]
    return found


def sleeps(built: Built, title: str) -> bool:
    return (".".join(built.release.split(".")[:2]), title) in SLEEPING


def different(
    built: Built, wanted: dict[str, float], found: dict[str, float], noise: float = 0
) -> dict[str, tuple[float, float]]:
    """The figures that differ by more than *noise*; those of a rung that sleeps may a little."""
    return {
        title: (wanted[title], count)
        for title, count in found.items()
        if abs(count - wanted[title]) > (SLEEPING_NOISE if sleeps(built, title) else noise)
    }


@pytest.mark.parametrize("built", cases(KERNELS, quick=[KERNEL]), indirect=True, scope="module")
def test_resumed_as_booted(states: States, built: Built, tmp_path: Path) -> None:
    """Every figure and every profile of a resumed guest is the same, to the last digit, as of one
    that booted and went on. The figures are those of a guest without the plugin, too."""
    settings = Settings(rungs=select(()))
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
        functions = Symbols(take_symbols(texts[-1], image), "")
        found = BootProfile(counts.decode().splitlines(), functions, Layers())
        profiles.append({run.title: found.region(run.region, run.ios) for run in runs})
    texts.append(texts_of(guest.run(qemu, settings.machine, image, log, state=state)[0]))
    booted, resumed, without = (figures_of(one, runs) for one in texts)
    assert different(built, booted, resumed) == different(built, booted, without) == {}
    booted, resumed = profiles
    differ = {title for title in booted if booted[title] != resumed[title]}
    assert {title for title in differ if not sleeps(built, title)} == set()
    assert all(profile["kernel"] > 0 for title, profile in booted.items() if title != "null")


@pytest.mark.parametrize("built", ["debian:5.10", "debian:7.2"], indirect=True, scope="module")
def test_functions_of_modules(states: States, built: Built, tmp_path: Path) -> None:
    """What is made of a module's file and its sections is what /proc/kallsyms says of it; the
    kernel's own functions are read before the guest is saved."""
    settings = Settings(rungs=select(["raw.pread", "nullb.pread"]))
    image = make_image(built, make_runs(settings)[0], settings)
    loaded = [command for command in image.plan if command.startswith(("insmod ", "file /sys/mod"))]
    image.plan = [*loaded, f"file {guest.KALLSYMS}"]
    records, _ = states.run(Qemu.find(), settings.machine, image, tmp_path / "console.log")
    started, now = (
        [line for line in record.data.decode().splitlines() if line.split()[1] in tuple("tTwW")]
        for record in records
        if record.name == guest.KALLSYMS
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


@pytest.mark.parametrize(
    ("built", "alone"),
    cases(
        [(kernel, some) for kernel in ("debian:6.1", "debian:7.2") for some in ("some", "all")],
        quick=[("debian:6.1", "some"), ("debian:7.2", "some")],
    ),
    indirect=["built"],
    scope="module",
)
def test_any_order(states: States, built: Built, alone: str, tmp_path: Path) -> None:
    """A rung has the same figure among others, among them in reverse, and alone."""
    log = tmp_path / "console.log"
    some = [*select([]), *select(["mq.aio.100", "nullb.pread"])]
    ladder = Settings(rungs=select(["*"]) if alone == "all" else some)
    wanted = figures(states, built, ladder, log)
    back = replace(ladder, rungs=ladder.rungs[::-1], ops=ladder.ops[::-1])
    others = [figures(states, built, back, log)]
    single = (
        ladder.rungs
        if alone == "all"
        else select(["raw.aio.100", "dio.pread", "buf.*", "mq.*.100", "nullb.pread"])
    )
    others += [figures(states, built, replace(ladder, rungs=[rung]), log) for rung in single]
    assert others[0].keys() == wanted.keys()
    assert [different(built, wanted, found, noise=0.01) for found in others] == [{}] * len(others)


SHORT = ("--rung", "syscall", "--cmdline", FAST_START)


def test_bad_state(ready: Command, tmp_path: Path) -> None:
    """A state that cannot be loaded is said to be, on one line, and the guest boots: the figure is
    the same."""
    first, again = tmp_path / "first.json", tmp_path / "again.json"
    assert ready.run("measure", KERNEL, *SHORT, "--json", first).returncode == 0
    (entry,) = (ready.cache / "state").iterdir()
    inputs = json.loads((entry / "manifest.json").read_text())["inputs"]
    for path in (entry, ready.cache / "result"):
        shutil.rmtree(path)
    cache = Cache(ready.cache)
    cache.entry("state", inputs, lambda folder: bool((folder / guest.STATE).write_bytes(b"0")))
    done = ready.run("measure", KERNEL, *SHORT, "--quiet", "--json", again)
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1), done.stderr
    assert "cannot load the guest's state" in done.stderr
    counts = [
        [record["instructions_per_io"] for record in json.loads(path.read_text())["results"]]
        for path in (first, again)
    ]
    assert counts[0] == counts[1] != []
    ready.left_nothing()


def test_killed_while_loading(ready: Command) -> None:
    """If iopath is killed while a guest is resumed or at work, the state stays, and is used."""
    assert ready.run("measure", KERNEL, *SHORT).returncode == 0
    (state,) = (ready.cache / "state").glob("*/state.zst")
    made = state.stat().st_mtime_ns
    shutil.rmtree(ready.cache / "result")
    running = ready.start("measure", KERNEL, *SHORT)
    while running.poll() is None and not any("-incoming" in line for line in ready.programs()):
        time.sleep(0.005)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert running.returncode == -signal.SIGKILL
    assert list((ready.cache / "result").glob("*/manifest.json")) == []
    done = ready.run("measure", KERNEL, *SHORT)
    assert done.returncode == 0, done.stderr
    assert [path.stat().st_mtime_ns for path in (ready.cache / "state").glob("*/state.zst")] == [
        made
    ]
    assert ready.programs() == []


def test_no_space_for_a_state(ready: Command, tmp_path: Path) -> None:
    """Nothing is left of a state that the disk has no room for. With room, the next run works."""
    kept = tmp_path / "kept"
    ready.cache.rename(kept)
    ready.cache.mkdir()
    full = ready.cache / "full"
    script = f"""
mount -t tmpfs -o size=128m none {ready.cache} && cp -a {kept}/. {ready.cache} || exit 90
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


@pytest.mark.parametrize("what", ["booting", "saving"])
def test_killed(what: str, ready: Command) -> None:
    """If iopath is killed, no half-made state is taken for a whole one."""
    running = ready.start("measure", KERNEL, *SHORT)
    part = None
    while running.poll() is None and part is None:
        part = next(
            (ready.cache / "state").glob("*.part/*" if what == "saving" else "*.part"), None
        )
        time.sleep(0.01)
    assert part, running.communicate()
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert list((ready.cache / "state").glob("*/manifest.json")) == []
    done = ready.run("measure", KERNEL, *SHORT)
    assert done.returncode == 0, done.stderr
    assert [path.suffix for path in (ready.cache / "state").iterdir()] == [""]
