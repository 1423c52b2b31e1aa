# SPDX-License-Identifier: GPL-2.0
"""Programs that are compared on one kernel."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from helpers.command import Command
from helpers.counted import a_boot, a_program
from helpers.examples import a_record, a_result
from iopath.base.arch import X86_64
from iopath.base.errors import IopathError, UsageError
from iopath.compare import limits
from iopath.measure.commandline import CommandLine
from iopath.measure.session import Session
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import ExactResult
from iopath.studies import onekernel

BOOTS = 7


def of_reads(read: int, command: Sequence[str] = ("dd", "bs=4k")) -> ExactResult:
    """A program, each of whose reads takes so many instructions."""
    return a_program({"debian:7.2": [a_boot(read)] * BOOTS}, command)


def judged(kept: ExactResult, now: ExactResult) -> list[str]:
    found = onekernel.with_baseline("base.json", kept, now, Layers())
    assert found.measured is now
    assert found.whole.names == ["baseline", "now"]
    grown, unknown = limits.regressions(found.comparison, 1, [])
    assert unknown == []
    return grown


def test_a_baseline() -> None:
    assert judged(of_reads(1000), of_reads(1000)) == []
    assert judged(of_reads(1000), of_reads(900)) == []
    assert any(
        one.startswith("read: now takes more") for one in judged(*map(of_reads, (1000, 1100)))
    )


def test_a_baseline_of_something_else() -> None:
    """The arguments must be the same, and it must be of a program."""
    other = of_reads(1000, ("dd", "bs=8k"))
    with pytest.raises(IopathError, match=r"bs=8k.*: remove base\.json and write it by --update"):
        onekernel.with_baseline("base.json", of_reads(1000), other, Layers())
    rung = result.parse(a_result([a_record("a", "dio.pread", "read", 4096)]))
    with pytest.raises(UsageError, match=re.escape("--baseline base.json: not of a program")):
        onekernel.with_baseline("base.json", rung, of_reads(1000), Layers())


def test_builds_are_at_one_place(tmp_path: Path, session: Session) -> None:
    """In the guest, the second build and what it has of its own folder are where the first one
    is."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "prog").write_bytes(Path("/bin/true").read_bytes())
    with (tmp_path / "new/prog").open("ab") as file:
        file.write(b"another build")
    line = CommandLine(["a", "b"])
    before, after = (str(tmp_path / name / "prog") for name in ("old", "new"))
    found = line.builds(session, X86_64, before, after)
    assert [*found] == [before, after]
    one, two = found.values()
    assert one.path == two.path == before
    assert one.files.keys() == two.files.keys()
    differing = [path for path in one.files if one.files[path] != two.files[path]]
    assert differing == [before.lstrip("/")]
    assert one.command == two.command == ["prog", "a", "b"]
    assert one.inputs != two.inputs


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--before", "a"], "--before and --after: give both"),
        (["--before", "a", "--after", "a"], "--after a: the same file as --before"),
        (["--before", "a", "--after", "b", "--package", "fio"], "leave --package out"),
        (["--update-baseline", "--", "ls"], "--update-baseline: name the file by --baseline"),
        (["--baseline", "no.json", "--", "ls"], "--baseline no.json: no such file: --update-"),
        (["--baseline", "/no/x", "--update-baseline", "--", "ls"], "cannot write /no/x: "),
        (["debian:6.1", "--before", "a", "--after", "b"], "compare programs: give one kernel"),
    ],
)
def test_wrong_options(listed: Command, words: list[str], said: str) -> None:
    assert said in listed.fails("run", "debian:7.2", *words, status=2)
