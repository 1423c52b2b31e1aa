# SPDX-License-Identifier: GPL-2.0
"""Bad input to the command: one line, exit status 1 or 2, nothing left behind."""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from helpers.command import IOPATH, Command
from helpers.examples import a_record, a_result
from helpers.waiting import wait_for
from iopath.base import files
from iopath.base.cache import Cache
from iopath.base.sources import source_root
from iopath.cli.parser import commands, parser
from iopath.commands.cache import KINDS
from iopath.compare import compare
from iopath.kernels.apt import Package
from iopath.kernels.sources.debian import image_entry, list_debian, select
from iopath.results.result import parse
from iopath.rungs import builtin
from iopath.show import charts


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["debian:9.9"], "debian:9.9: no such kernel; there are 5.10, 6.1, 6.12, 7.2, 7.3"),
        (["debian:6.1.0-999-amd64"], "debian:6.1.0-999-amd64: no such kernel"),
        (["debian:6.1", "debian:6.1"], "debian:6.1: a kernel may be named once"),
        (["debian:9.9-arm64"], "debian:9.9-arm64: no such kernel; there are 6.1, 6.12, 7.2"),
        (["debian:"], "debian:: not a kernel; ask for deb:FILES, debian:SERIES"),
        (["6.1"], "6.1: not a kernel; ask for deb:FILES, debian:SERIES"),
        (["host", "debian:6.1"], "host: must be measured alone; compare takes its result file"),
        (["host", "--boots", "3"], "--boots: cannot be used with host"),
        (["host", "--model"], "--model: cannot be used with host"),
        (["debian:6.1", "--accel", "kvm", "--model"], "--model: only emulated guests are modelled"),
        (["host", "--svg", "x.svg"], "--svg: only exact results of rungs can be drawn"),
        (["host", "--on-cpu", "9999"], "--on-cpu 9999: iopath may not run there: must be one of 0"),
        (["tree:/nonexistent"], "tree:/nonexistent: /nonexistent/arch/x86/boot/bzImage is missing"),
        (["debain:6.1"], "debain:6.1: not a kernel: did you mean 'debian'?"),
        (
            ["debian:6.1.0-65-amd64"],
            "debian:6.1.0-65-amd64: no such kernel: did you mean '6.1.0-56-amd64'?",
        ),
        (
            ["debian:6.1", "--rung", "dio.prad"],
            "unknown rung 'dio.prad': did you mean 'dio.pread'",
        ),
        (
            ["debian:6.1", "--rung", "raw"],
            "unknown rung 'raw': did you mean 'raw.*'? (iopath rungs",
        ),
        (["debian:6.1", "--json", "/nonexistent/x"], "cannot write /nonexistent/x: there is no"),
    ],
)
def test_measure(listed: Command, args: list[str], complaint: str) -> None:
    assert listed.fails("measure", *args, status=2).startswith(f"iopath: {complaint}")


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--fast"], "unknown argument '--fast'"),
        (["measure"], "the following arguments are required: KERNEL"),
        (["weigh"], "invalid choice 'weigh': must be one of kernels, rungs,"),
        (["measur", "debian:6.1"], "invalid choice 'measur': did you mean 'measure'?"),
        (
            ["measure", "debian:6.1", "--bs", "4000"],
            "invalid block size '4000': must be a multiple of 512, from 512 to 1m",
        ),
        (["measure", "debian:6.1", "--bs", "2m"], "invalid block size '2m'"),
        (["measure", "debian:6.1", "--bs", "0"], "invalid block size '0'"),
        (["measure", "debian:6.1", "--bs", "4kk"], "invalid block size '4kk'"),
        (
            ["measure", "debian:6.1", "--op", "trim"],
            "invalid choice 'trim': must be one of read,",
        ),
        (["measure", "debian:6.1", "--op", "raed"], "'raed': did you mean 'read'?"),
        (
            ["measure", "debian:6.1", "--memory", "1"],
            "invalid number of MiB '1': must be from 256 to 65536",
        ),
        (["measure", "debian:6.1", "--memory", "-1"], "invalid number of MiB '-1'"),
        (["measure", "debian:6.1", "--seed", "x"], "invalid number of seeds 'x'"),
        (["measure", "debian:6.1", "--time-limit", "0"], "invalid number of seconds '0'"),
        (["measure", "debian:6.1", "--arch", "arm64"], "like debian:6.12-arm64"),
        (["bisect", "debian:6.1", "debian:6.12", "--arch", "arm64"], "like debian:6.12-arm64"),
        (["measure", "debian:6.1", "--fast"], "unknown argument '--fast'"),
        (
            ["compare", "a.json", "b.json", "--fial-above=1"],
            "unknown argument '--fial-above=1': did you mean '--fail-above'?",
        ),
    ],
)
def test_arguments(listed: Command, args: list[str], complaint: str) -> None:
    done = listed.run(*args)
    assert done.returncode == 2
    assert complaint in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    listed.left_nothing()


def test_kernel_whose_dependency_is_gone(listed: Command) -> None:
    said = listed.fails("measure", "debian:6.19")
    assert said.startswith(
        "iopath: debian:6.19: 6.19.14+deb13-amd64 is unavailable: linux-modules-6.19.14+deb13-amd64"
        " (= 6.19.14-1~bpo13+1) is no longer on the mirror; there are 5.10, 6.1,"
    )


def test_no_network(empty: Command, tmp_path: Path) -> None:
    said = empty.fails("measure", "debian:6.1", "--json", tmp_path / "out.json")
    assert said.startswith("iopath: cannot fetch the lists of kernel packages: ")
    assert "127.0.0.1" in said
    assert not (tmp_path / "out.json").exists()


def test_no_network_for_a_listed_kernel(listed: Command) -> None:
    said = listed.fails("measure", "debian:6.1")
    assert said.startswith("iopath: debian:6.1: cannot download linux-image-6.1.0-56-amd64")


def test_lists_of_an_earlier_day_serve_without_network(listed: Command) -> None:
    os.utime(listed.cache / "apt/index.json", (0, 0))
    done = listed.run("kernels")
    assert done.returncode == 0
    assert "6.1.0-56-amd64" in done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.strip().endswith("using the package lists of an earlier day")


def test_asked_for_new_lists_old_ones_do_not_serve(listed: Command) -> None:
    assert "cannot fetch the lists" in listed.fails("kernels", "--update")
    assert listed.run("kernels").returncode == 0


def test_damaged_lists_are_fetched_anew(listed: Command) -> None:
    (listed.cache / "apt/index.json").write_text('[{"name": 1}]')
    assert "cannot fetch the lists" in listed.fails("kernels")


def test_kernels_by_series(listed: Command) -> None:
    """A line for each name of a series, with the release that it means; --all lists releases."""
    rows = [line.split() for line in listed.run("kernels").stdout.splitlines()]
    shown = {row[0]: row[1] for row in rows if row and row[0].startswith("debian:")}
    assert shown["debian:6.1"] == "6.1.0-56-amd64"
    assert shown["debian:6.1-rt"] == "6.1.0-56-rt-amd64"
    every = listed.run("kernels", "--all").stdout
    assert len(shown) < 20 < every.count("debian:")
    assert "debian:6.1.0-56-rt-amd64" in every


def test_a_profile_asks_for_a_rung(listed: Command) -> None:
    said = listed.fails("profile", "debian:6.1", status=2)
    assert re.match(r"iopath: profile: name a rung, e.g. --rung dio.pread: all 20 rungs are", said)


def test_a_rung_is_no_file_of_rungs(listed: Command) -> None:
    said = listed.fails("measure", "debian:6.1", "--rungs", "dio.pread", status=2)
    assert said == (
        "iopath: --rungs dio.pread: no such file; to measure a rung, use --rung dio.pread"
    )


def test_kinds_of_the_cache_are_explained() -> None:
    """Each kind of entry that the package makes."""
    package = source_root() / "userspace/iopath/iopath"
    text = "".join(path.read_text() for path in package.rglob("*.py"))
    calls = r'\.(?:entry|workspace)\(\s*"(\w+)"|return \(?"(\w+)", (?:\{|inputs\))|/ "(logs)"'
    kinds = {next(filter(None, found)) for found in re.findall(calls, text)}
    assert {"image", "kernel", "logs", "modules", "result", "workspace"} <= kinds
    assert kinds - KINDS.keys() == set()


def test_kernels_as_json(listed: Command, tmp_path: Path) -> None:
    done = listed.run("kernels", "--json", tmp_path / "kernels.json")
    assert (done.returncode, done.stderr) == (0, "")
    kernels = {k["release"]: k for k in json.loads((tmp_path / "kernels.json").read_text())}
    assert kernels["6.1.0-56-amd64"]["suite"] == "bookworm-security"
    assert not any(k["missing"] or k["cached"] for k in kernels.values())
    listed.run("kernels", "--all", "--json", tmp_path / "all.json")
    everything = json.loads((tmp_path / "all.json").read_text())
    assert any(k["missing"] for k in everything)


def test_rungs_are_listed_once(listed: Command, tmp_path: Path) -> None:
    """The list is the table, and no help repeats it."""
    listed.env["COLUMNS"] = "100"
    done = listed.run("rungs", "--json", tmp_path / "rungs.json")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("Rungs after mq.uring are "))
    rows = [line.split("  ")[0] for line in lines[2:at]]
    assert rows == [rung.name for rung in builtin.RUNGS]
    found = {rung["name"]: rung for rung in json.loads((tmp_path / "rungs.json").read_text())}
    assert found["splice"] == {
        "name": "splice", "about": "splice to a pipe and on to /dev/null, cached",
        "operations": ["read"], "needs": [], "ladder": True,
    }  # fmt: skip
    assert found["nullb.pread"]["needs"] == ["null_blk"]
    assert not found["nullb.pread"]["ladder"]
    assert "dio.aio.100" not in listed.run("measure", "--help").stdout


@pytest.mark.parametrize("command", ["", *commands()])
def test_help_begins_with_two_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They parse, and use that command."""
    with pytest.raises(SystemExit):
        parser().parse_args([*command.split(), "--help"])
    first, *examples = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert (first, len(examples)) == ("examples:", 2)
    for example in examples:
        program, *words = shlex.split(example)
        assert program == "iopath"
        assert parser().parse_args(words).command == (command or words[0])
        assert builtin.select(getattr(parser().parse_args(words), "rung", []))


def test_one_kernel_is_refused_before_it_is_measured(empty: Command) -> None:
    said = empty.fails("compare", "debian:6.1", status=2)
    assert said == f"iopath: {compare.NOTHING}"


def test_kernels_cannot_write_json(listed: Command) -> None:
    assert "cannot write /nonexistent/x: " in listed.fails(
        "kernels", "--json", "/nonexistent/x", status=2
    )


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("> /dev/full", "No space left on device"),
        ("| true", "Broken pipe"),
        (">&-", "it is closed"),
    ],
)
@pytest.mark.parametrize("words", ["kernels --all", "rungs --json -", "--help"])
def test_output_that_does_not_arrive(listed: Command, words: str, to: str, said: str) -> None:
    """One line says so, and the status is 1, also of a short text."""
    script = f"set -o pipefail; {{ trap '' PIPE; {IOPATH} {words}; }} {to}"
    done = subprocess.run(
        ["bash", "-c", script], env=listed.env, stderr=subprocess.PIPE, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, f"iopath: standard output: {said}\n")


def test_iopath_alone_prints_its_help(listed: Command) -> None:
    done = listed.run()
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout == listed.run("--help").stdout


def test_the_manual_page_has_each_command() -> None:
    page = (source_root() / "Documentation/man/iopath.1").read_text()
    synopsis = page[page.index(".Sh SYNOPSIS") : page.index(".Sh DESCRIPTION")]
    assert {*re.findall(r"(?:\.Cm|\| Ns Cm|Ns Cm) (\w+)", synopsis)} >= {*commands()}


# Files to write.


def test_a_file_on_the_standard_output(listed: Command) -> None:
    """Nothing else is there; what is printed goes to the standard error."""
    done = listed.run("kernels", "--json", "-")
    assert {"6.1.0-56-amd64"} < {kernel["release"] for kernel in json.loads(done.stdout)}
    assert "debian:6.1 " in done.stderr
    assert not Path("-").exists()


def test_one_file_is_on_the_standard_output(listed: Command) -> None:
    said = listed.fails("measure", "debian:6.1", "--json", "-", "--svg", "-", status=2)
    assert said == "iopath: --json and --svg: only one file can be the standard output"
    assert "must end in .svg or .png" in listed.fails(
        "measure", "debian:6.1", "--history", "-", status=2
    )


def test_a_link_is_followed(listed: Command, tmp_path: Path) -> None:
    target, link = tmp_path / "folder/target.json", tmp_path / "link.json"
    target.parent.mkdir()
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    assert listed.run("kernels", "--json", link).returncode == 0
    assert link.is_symlink()
    assert json.loads(target.read_text())
    assert target.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.glob("*/.*")) + list(tmp_path.glob(".*")) == []


def test_a_link_to_nothing_makes_its_target(listed: Command, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to("new.json")
    assert listed.run("kernels", "--json", tmp_path / "link.json").returncode == 0
    assert json.loads((tmp_path / "new.json").read_text())


def test_a_device_stays_a_device() -> None:
    """As root, a rename would put a file in the place of /dev/null."""
    files.write(Path("/dev/null"), b"x")
    assert Path("/dev/null").is_char_device()


def test_what_is_not_a_regular_file_is_written_in_place(listed: Command, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = listed.start("kernels", "--json", fifo)
    assert json.loads(fifo.read_text())
    assert process.communicate(timeout=600)[1] == ""
    assert fifo.is_fifo()
    done = listed.run("kernels", "--json", "/dev/stdout")
    text = done.stdout[: done.stdout.rindex("]") + 1]
    assert json.loads(text)
    assert done.returncode == 0


def test_a_chart_is_written_like_any_other_file(tmp_path: Path) -> None:
    figure = charts.ladder(parse(a_result([a_record("a", "x", "read", 512)])))
    for suffix in (".svg", ".png"):
        (tmp_path / f"link{suffix}").symlink_to(f"target{suffix}")
        charts.save(figure, tmp_path / f"link{suffix}")
        assert (tmp_path / f"link{suffix}").is_symlink()
        assert (tmp_path / f"target{suffix}").stat().st_size > 1000


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("", "it is a folder"), ("none/x", "there is no such folder"), ("link", "it is a link into")],
)
def test_what_cannot_be_written_is_said_at_once(
    listed: Command, tmp_path: Path, name: str, complaint: str
) -> None:
    (tmp_path / "link").symlink_to("none/x")
    said = listed.fails("measure", "debian:6.1", "--json", tmp_path / name, status=2)
    assert said.startswith(f"iopath: cannot write {tmp_path / name}: {complaint}")


# Ctrl-C.


def test_interrupted_while_it_starts(listed: Command) -> None:
    listed.env["PYTHONPROFILEIMPORTTIME"] = "1"
    process = listed.start("kernels")
    for line in iter(process.stderr.readline, ""):
        if line.endswith("iopath.base.errors\n"):
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    said = [line for line in err.splitlines() if not line.startswith("import time:")]
    assert (process.returncode, said) == (130, ["iopath: interrupted"])


def test_interrupted_while_another_has_the_lock(listed: Command, recorded: list[Package]) -> None:
    kernel, _ = select("6.1", list_debian(recorded))
    cache = Cache(listed.cache)
    name = f"image-{cache.path(*image_entry(kernel)).name}"
    with cache.lock(name):
        process = listed.start("measure", "debian:6.1", "--quiet")
        fds = Path(f"/proc/{process.pid}/fd")
        lock = str(listed.cache / "locks" / name)

        def waits() -> bool:
            with contextlib.suppress(FileNotFoundError):  # it opens and closes files
                return any(str(fd.readlink()) == lock for fd in fds.iterdir())
            return False

        wait_for(waits, "iopath, which opens the lock's file")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (130, "iopath: interrupted\n")


# As readline does it: the words of the line are divided at colons.
COMPLETION = """
PATH=$1:$PATH; source "$2"; compopt() { :; }
COMP_LINE="iopath $3" COMP_POINT=$((7 + ${#3})) COMP_WORDS=(iopath ${3//:/ : })
_iopath; echo "${COMPREPLY[*]}"
"""


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("comp", "compare"),
        ("measure --pas", "--passes"),
        ("profile --da", "--data"),
        ("measure --op w", "write"),
        ("profile --rung dio.aio.1", "dio.aio.1 dio.aio.100"),
        ("profile --rung dm-l", "dm-linear.pread"),
        ("profile --rung tcm_", "tcm_loop.pread"),
        ("features --feature io.", "io.max io.latency io.cost"),
        ("features --feature mq-", "mq-deadline"),
        ("compare deb", "debian:"),
        ("compare debian:6", "6.1 6.1-cloud 6.1-rt 6.12 6.12-cloud 6.12-rt"),
        ("compare debian:6.1 debian:7.2-", "7.2-cloud 7.2-rt"),
        (
            "profile --rung raw",
            "raw.pread raw.preadv raw.aio.1 raw.aio.100 raw.uring raw.uring.fixed"
            " raw.pread.reg raw.aio.1.reg raw.aio.100.reg raw.uring.reg",
        ),
    ],
)
def test_completion(listed: Command, line: str, wanted: str) -> None:
    script = source_root() / "userspace/iopath/iopath.bash-completion"
    done = subprocess.run(
        ["bash", "-c", COMPLETION, "bash", IOPATH.parent, script, line],
        env=listed.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout.strip(), done.stderr) == (wanted, "")
