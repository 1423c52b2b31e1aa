# SPDX-License-Identifier: GPL-2.0
"""Whole measurements in real guests: figures repeat, and failures have clear messages."""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.command import (
    FAST_START,
    FEW,
    KERNEL,
    Command,
    build_into,
    copy_cache,
    copy_states,
    write_index,
)
from helpers.waiting import wait_for
from iopath.base.process import need
from iopath.measure.session import Session

pytestmark = pytest.mark.guest

QUICK = ("--rung", "syscall", "--cmdline", FAST_START)

# The cost of a 4 KiB direct read on a driver that stays the same, measured by hand before.
PLAUSIBLE = {
    "debian:5.10": (2400, 2600),
    "debian:6.1": (2600, 2800),
    "debian:6.12": (2900, 3100),
    "debian:7.2": (2850, 3000),
    "debian:7.3": (2850, 3000),
}


Figures = dict[tuple[str, str, str], float]


def figures(path: Path) -> Figures:
    results = json.loads(path.read_text())["results"]
    return {(r["kernel"]["name"], r["rung"], r["op"]): r["instructions_per_io"] for r in results}


# Figures.


def measure(command: Command, *words: str | Path) -> Figures:
    out = command.temporary.parent / "figures.json"
    done = command.run("measure", *words, "--json", out)
    assert done.returncode == 0, done.stderr
    return figures(out)


@pytest.mark.parametrize(
    "kernels",
    [
        pytest.param(("debian:6.1", "debian:7.2"), id="two"),
        pytest.param(("debian:5.10", "debian:6.12", "debian:7.3"), id="others"),
    ],
)
def test_figures_are_plausible(iopath: Command, kernels: Sequence[str]) -> None:
    rungs = [f"--rung={name}" for name in ("syscall", "dio.pread", "dio.aio.1", "dio.aio.100")]
    found = measure(iopath, *kernels, *rungs, "--op=read")
    for kernel in kernels:
        low, high = PLAUSIBLE[kernel]
        assert low < found[kernel, "dio.pread", "read"] < high
        ladder = [found[kernel, rung, "read"] for rung in ("dio.pread", "dio.aio.1")]
        assert found[kernel, "syscall", "none"] < ladder[0] < ladder[1]
        # An I/O of a batch is cheaper, because the batch shares the system calls.
        assert found[kernel, "dio.aio.100", "read"] < ladder[1]


@pytest.mark.long
@pytest.mark.parametrize("kernel", PLAUSIBLE)
def test_functions_have_a_layer(kernel: str, iopath: Command, tmp_path: Path) -> None:
    """Those without one have less than 3 % of an I/O."""
    out = tmp_path / "out.json"
    rungs = [f"--rung={name}" for name in ("gen.*", "raw.*", "dio.*", "mq.*", "buf.*", "splice")]
    done = iopath.run("profile", kernel, *rungs, "--quiet", "--json", out)
    assert done.returncode == 0, done.stderr
    records = json.loads(out.read_text())["results"]
    assert len(records) > 30
    for record in records:
        others = record["profile"]["layers"].get("other", 0)
        assert others < 0.03 * record["instructions_per_io"], (record["rung"], record["op"])


# make check runs only one of them.
KERNELS = cases(("debian:6.1", "debian:7.2"), quick=["debian:7.2"])


# In make check it starts quickly.
FAST_FEW = ("--cmdline", FAST_START, "--op=read", *(f"--rung={name}" for name in FEW))


@pytest.mark.parametrize(
    ("kernel", "words"),
    cases(
        [("debian:7.2", FAST_FEW), ("debian:6.1", ()), ("debian:7.2", ())],
        quick=[("debian:7.2", FAST_FEW)],
    ),
)
def test_same_seed_same_figures(
    kernel: str,
    words: Sequence[str],
    iopath: Command,
    session: Session,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A guest that runs now agrees to the last digit with the known result of the same inputs. In
    make check it is resumed."""
    folder = tmp_path_factory.mktemp("fresh")
    build_into(session, kernel, folder / "cache")
    if words:
        copy_states(session, folder / "cache", [1], FAST_START, kernel)
    fresh = Command(folder / "cache", folder)
    again = measure(fresh, kernel, *words)
    fresh.left_nothing()
    assert again == measure(iopath, kernel, *words) != {}


@pytest.mark.parametrize("kernel", KERNELS)
def test_other_seed_same_figures(kernel: str, iopath: Command) -> None:
    """Two boots with different seeds agree within 0.1 on every rung."""
    one, other = (measure(iopath, kernel, "--seed", str(seed)) for seed in (1, 2))
    assert other.keys() == one.keys() != set()
    assert {key: (one[key], other[key]) for key in one if abs(one[key] - other[key]) > 0.1} == {}


@pytest.fixture(scope="module")
def answered(started: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A cache with one result, beside it the JSON; and what was printed."""
    folder = tmp_path_factory.mktemp("answered")
    copy_cache(started, folder / "cache")
    done = Command(folder / "cache", folder).run(
        "measure", KERNEL, *QUICK, "--json", folder / "json"
    )
    assert done.returncode == 0, done.stderr
    assert "boot 1, syscall: counted, 1 of 1 guests done" in done.stderr
    return folder, done.stdout


@pytest.fixture
def known(answered: tuple[Path, str], make_command: Callable, tmp_path: Path) -> Command:
    """iopath with the result in a cache of the test's own."""
    copy_cache(answered[0] / "cache", tmp_path / "cache")
    return make_command(tmp_path / "cache")


def test_result_from_the_cache(known: Command, answered: tuple[Path, str], tmp_path: Path) -> None:
    """The same command again boots nothing and prints the same."""
    folder, printed = answered
    done = known.run("measure", KERNEL, *QUICK, "--json", tmp_path / "json")
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    assert (tmp_path / "json").read_bytes() == (folder / "json").read_bytes()
    assert "measured" not in done.stderr
    assert len(list((known.cache / "result").iterdir())) == 1


def test_json_is_written_whole_or_not_at_all(known: Command, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/json").mkdir()
    said = known.fails("measure", KERNEL, *QUICK, "--json", tmp_path / "out/json", status=2)
    assert said.endswith("it is a folder")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["json"]


# Guests that fail.


def fails_in_guest(command: Command, tmp_path: Path, *args: str) -> str:
    out = tmp_path / "out.json"
    said = command.fails("measure", KERNEL, "--json", out, *args)
    assert said.startswith(f"iopath: {KERNEL}: ")
    assert not out.exists()
    assert list((command.cache / "result").glob("*")) == []
    log = Path(said.rsplit("(console: ", 1)[1].removesuffix(")"))
    assert log.parent == command.cache / "logs"
    assert log.exists()
    return said.removeprefix(f"iopath: {KERNEL}: ")


def test_panic(ready: Command, tmp_path: Path) -> None:
    words = f"{FAST_START} rdinit=/nonexistent"
    said = fails_in_guest(ready, tmp_path, "--cmdline", words, "--rung", "syscall")
    assert said.startswith("the guest crashed: Kernel panic - not syncing: ")


def test_time_limit(ready: Command, tmp_path: Path) -> None:
    said = fails_in_guest(ready, tmp_path, "--time-limit", "2", "--rung", "syscall")
    assert said.startswith("the guest did not end within 2 s (console: ")


@pytest.mark.long  # test_time_limit is the same with a guest that works
def test_hang(ready: Command, tmp_path: Path) -> None:
    """The kernel waits for a root device that never comes."""
    words = "nokaslr rdinit=/nonexistent root=/dev/none rootwait"
    said = fails_in_guest(ready, tmp_path, "--cmdline", words, "--time-limit", "15")
    assert said.startswith("the guest did not end within 15 s")


def test_error_of_the_loop(resumable: Command, tmp_path: Path) -> None:
    """The guest's kernel allows fewer asynchronous requests than the loop asks for."""
    rungs = tmp_path / "rungs.toml"
    rungs.write_text("""
[[rung]]
name = "few"
target = "/dev/blknull0"
ops = ["read"]
options = ["--ioengine=libaio", "--iodepth=100", "--direct=1"]
modules = {blknull = {}}
setup = ["write /proc/sys/fs/aio-max-nr 1"]
""")
    words = ("--cmdline", FAST_START, "--rungs", str(rungs), "--op", "read")
    said = fails_in_guest(resumable, tmp_path, *words)
    assert said.startswith("the guest failed: run.1: /bin/ioloop ended with status 1: ")
    assert "Resource temporarily unavailable" in said


def test_unknown_cpu(ready: Command, tmp_path: Path) -> None:
    said = fails_in_guest(ready, tmp_path, "--cpu", "z80")
    assert said.startswith("QEMU ended with status 1: ")
    assert "unable to find CPU model 'z80'" in said


# Programs and space that are missing.


def test_no_qemu(ready: Command, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for path in Path(folder).iterdir():
            if not path.name.startswith("qemu") and not (programs / path.name).exists():
                (programs / path.name).symlink_to(path)
    ready.env["PATH"] = str(programs)
    said = ready.fails("measure", KERNEL)
    assert said == ("iopath: qemu-system-x86_64 is not installed: apt-get install qemu-system-x86")


def small_disk(folder: Path, size: str, *, keep: Path | None = None) -> list[str]:
    """A command that runs another one with a small file system at *folder*, which holds a copy of
    *keep*. The file system ends with the command."""
    script = f"mount -t tmpfs -o size={size} none {folder}"
    if keep:
        script += f" && cp -a {keep}/. {folder}"
    return [need("unshare", "util-linux"), "--map-root-user", "--mount",
            "sh", "-c", f'{script} && exec "$0" "$@"']  # fmt: skip


def test_no_space_for_a_guest(ready: Command) -> None:
    said = ready.fails("measure", KERNEL, wrap=small_disk(ready.temporary, "16m"))
    assert said.startswith(f"iopath: {KERNEL}: cannot run a guest in {ready.temporary}: No space")


def test_no_space_for_downloads(empty: Command, tmp_path: Path) -> None:
    del empty.env["IOPATH_MIRROR"], empty.env["IOPATH_SECURITY_MIRROR"]
    empty.cache.mkdir()
    said = empty.fails("measure", KERNEL, wrap=small_disk(empty.cache, "4m"))
    assert said.startswith(f"iopath: no space in the cache {empty.cache}: ")


def test_no_space_for_a_result(resumable: Command, tmp_path: Path) -> None:
    """All but four pages of the cache's file system are taken."""
    kept = tmp_path / "kept"
    resumable.cache.rename(kept)
    resumable.cache.mkdir()
    full = resumable.cache / "full"
    wrap = small_disk(resumable.cache, "512m", keep=kept)
    fill = f"(cat /dev/zero >{full}; truncate -s -16K {full}) 2>&- &&"
    wrap[-1] = wrap[-1].replace("exec", f"{fill} exec")
    said = resumable.fails("measure", KERNEL, *QUICK, wrap=wrap)
    assert "No space left on device" in said


def test_read_only_cache(ready: Command) -> None:
    bind = f"mount --bind {ready.cache} {ready.cache} && mount -o remount,bind,ro {ready.cache}"
    wrap = ["unshare", "--map-root-user", "--mount", "sh", "-c", f'{bind} && exec "$0" "$@"']
    said = ready.fails("measure", KERNEL, *QUICK, wrap=wrap)
    assert "Read-only file system" in said


# Damage.


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("kind", "name"), [("result", "records.json"), ("measured", "measured.pickle.gz")]
)
def test_damaged_result_is_made_again(
    known: Command, answered: tuple[Path, str], tmp_path: Path, kind: str, name: str
) -> None:
    entry = next((known.cache / kind).iterdir())
    flip(entry / name)
    if kind == "result":
        shutil.rmtree(known.cache / "measured")
    done = known.run("measure", KERNEL, *QUICK, "--quiet", "--json", tmp_path / "json")
    assert done.returncode == 0
    assert done.stderr == (
        f"iopath: cache entry {entry} is damaged ({name} has changed): making it again\n"
    )
    assert (tmp_path / "json").read_bytes() == (answered[0] / "json").read_bytes()


@pytest.mark.parametrize(("kind", "name"), [("image", "vmlinuz"), ("modules", "blknull.ko")])
def test_damage_without_network(ready: Command, kind: str, name: str) -> None:
    """Damage is noticed before anything is booted. Damaged files are not used even if they cannot
    be fetched again."""
    entry = next((ready.cache / kind).iterdir())
    flip(entry / name)
    ready.env |= {"IOPATH_MIRROR": "http://127.0.0.1:9/"}
    ready.env |= {"IOPATH_SECURITY_MIRROR": "http://127.0.0.1:9/"}
    done = ready.run("measure", KERNEL, *QUICK, "--quiet")
    said = done.stderr.splitlines()
    assert done.returncode == 1
    assert len(said) == 2
    assert (
        said[0] == f"iopath: cache entry {entry} is damaged ({name} has changed): making it again"
    )
    assert said[1].startswith(f"iopath: {KERNEL}: cannot ")
    ready.left_nothing()


# Interruption.


def guests(command: Command) -> list[str]:
    return [line for line in command.programs() if "qemu-system" in line.split(" ")[0]]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_a_guest_runs(
    ready: Command, tmp_path: Path, number: signal.Signals
) -> None:
    process = ready.start("measure", KERNEL, "--json", tmp_path / "out.json", "--quiet")
    wait_for(lambda: guests(ready), "a guest")
    time.sleep(1)
    process.send_signal(number)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, out, err) == (130, "", "iopath: interrupted\n")
    ready.left_nothing()
    assert list((ready.cache / "result").iterdir()) == []
    assert not (tmp_path / "out.json").exists()


def test_killed_while_a_guest_runs(resumable: Command) -> None:
    """The guest dies, too. The remains in the cache are not used as a result."""
    process = resumable.start("measure", KERNEL, *QUICK)
    wait_for(lambda: guests(resumable), "a guest")
    process.kill()
    process.communicate()
    wait_for(lambda: not guests(resumable), "its end")
    assert resumable.run("measure", KERNEL, *QUICK).returncode == 0
    assert list(resumable.cache.rglob("*.part")) == []


# From nothing but downloaded packages.


@pytest.fixture
def downloaded(session: Session, prepared: Path, make_command: Callable, tmp_path: Path) -> Command:
    """iopath with package lists and packages, but nothing unpacked or built from them. Its guest
    need not boot."""
    apt = tmp_path / "cache/apt"
    shutil.copytree(
        session.cache.root / "apt", apt,
        ignore=shutil.ignore_patterns("*.deb", "pkgcache*.bin", "log"),
    )  # fmt: skip
    for deb in (session.cache.root / "apt/archives").glob("*.deb"):
        os.link(deb, apt / "archives" / deb.name)
    write_index(tmp_path / "cache", session.apt.packages())
    copy_states(session, tmp_path / "cache", [1])
    return make_command(tmp_path / "cache")


def count(outputs: Sequence[str], what: str) -> int:
    return sum(
        line.startswith(KERNEL) and line.endswith(f": {what}")
        for output in outputs
        for line in output.splitlines()
    )


@pytest.mark.long
def test_build_is_interrupted_and_then_done_once_by_two(
    downloaded: Command, tmp_path: Path
) -> None:
    process = downloaded.start("measure", KERNEL, *QUICK)
    lines = iter(process.stderr.readline, "")
    assert any("unpacking headers" in line for line in lines)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "iopath: interrupted"
    downloaded.left_nothing()
    assert list((downloaded.cache / "root").iterdir()) == []

    both = [
        downloaded.start("measure", KERNEL, *QUICK, "--json", tmp_path / name)
        for name in ("one", "two")
    ]
    outputs = [process.communicate(timeout=3600) for process in both]
    said = [err for _, err in outputs]
    assert [process.returncode for process in both] == [0, 0], said
    for what in ("unpacking headers and compiler", "building modules"):
        assert count(said, what) == 1, said
    assert count(said, "counted, 1 of 1 guests done") == 1, said
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    for kind in ("root", "image", "modules", "result"):
        assert len(list((downloaded.cache / kind).iterdir())) == 1
    downloaded.left_nothing()
