# SPDX-License-Identifier: GPL-2.0
"""A program after --, with options that are not for it."""

import pytest

from helpers.command import Command

ENDS = ("debian:6.1", "debian:7.2")


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["bisect", *ENDS, "--rung", "x", "--", "ls"], "--rung: is for rungs: leave it out with"),
        (["bisect", *ENDS, "--cpus", "2", "--", "ls"], "--cpus: is for rungs: "),
        (["bisect", *ENDS, "--package", "fio"], "--package: is for a program: give the"),
        (["bisect", *ENDS, "--metric", "loked"], "--metric loked: no such metric: did you mean"),
        (["series", "A..B", "--no-fill", "--", "ls"], "--no-fill: is for rungs: "),
        (["series", "A..B", "--drain", "3"], "--drain: is for a program: give the"),
        (["compare", *ENDS, "--time", "x", "--", "ls"], "--time: is for rungs: "),
        (["compare", "a.json", "b.json", "--", "ls"], "compare: files have their program: "),
        (["run", "debian:6.1", "--on-cpu", "0", "--", "ls"], "--on-cpu: is for rungs: "),
        (["run", "debian:6.1", "--", "no-such"], "no-such: "),
        (
            ["run", "debian:6.1", "--", "dd", "if=/dev/nvme0n1"],
            "/dev/nvme0n1: the guest has /dev/blknull0: add --device nvme",
        ),
        (["run", "debian:6.1"], "run: no program: give it after --"),
        (["run", "host", "--mount", "ext4"], "--mount: cannot be used with host"),
    ],
)
def test_options(listed: Command, args: list[str], complaint: str) -> None:
    at = args.index("--") if "--" in args else len(args)
    words = (*args[:at], "--quiet", *args[at:])
    done = listed.run(*words)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line.startswith(f"iopath: {complaint}")
