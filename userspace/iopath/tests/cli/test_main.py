# SPDX-License-Identifier: GPL-2.0
"""Bad input to the command: one line, exit status 1 or 2, nothing left behind."""

import contextlib
import json
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from helpers.command import IOPATH, Command
from helpers.waiting import wait_for
from iopath.base.cache import Cache
from iopath.base.sources import source_root
from iopath.cli.parser import commands, parser
from iopath.kernels.apt import Package
from iopath.kernels.sources.debian import image_entry, list_debian, select
from iopath.rungs import builtin


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
        (["measure", "debian:6.1", "--op", "trim"], "invalid choice 'trim': must be one of read,"),
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
