# SPDX-License-Identifier: GPL-2.0
"""Programs are counted by their system calls: what they do is known, so their counts are, too."""

import csv
import itertools
import json
import shlex
from collections import Counter
from pathlib import Path

import pytest

from helpers import fio
from helpers.command import KERNEL, Command
from helpers.compiled import LOG, READS, compiled
from iopath.base.arch import AARCH64
from iopath.base.programs import cross_compiler, guest_program
from iopath.measure.session import Session
from iopath.results import result
from iopath.results.result import ExactRecord
from iopath.results.syscalls import BESIDE, CALL, EVERY, FAULT, LATER, WHOLE

pytestmark = pytest.mark.guest

FORKS = """
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 10; i++) {
        if (fork() == 0) {
            if (fork() == 0)
                _exit(getppid() == 0);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}
"""
STOPPED = """
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 30; i++) {
        int status, child = fork();

        if (child == 0) {
            for (int n = 0; n < 10; n++)
                getppid();
            _exit(0);
        }
        kill(child, SIGSTOP);
        waitpid(child, &status, WUNTRACED);
        if (WIFSTOPPED(status)) {
            kill(child, SIGCONT);
            waitpid(child, &status, 0);
        }
    }
    return 0;
}
"""
CRASHES = "int main(void) { *(volatile int *)0 = 1; }"
NEVER_ENDS = 'int main(void) { for (;;) __asm__ volatile(""); }'
PRINTS = """
#include <unistd.h>
static char data[1 << 20];
int main(void)
{
    for (int i = 0; i < 1024; i++)
        if (write(1, data, sizeof(data)) < 0)
            return 3;
    return 0;
}
"""
FAILS = """
#include <stdio.h>
int main(void) { fputs("no luck\\n", stderr); return 7; }
"""


class Part:
    """A part of a program in the first boot."""

    def __init__(self, record: ExactRecord) -> None:
        assert record.calls
        assert record.profile
        (self.times, *_), (self.instructions, *_) = record.calls.times, record.calls.instructions
        self.before, self.each = record.calls.before[0], record.instructions_per_io
        self.functions = {
            one.symbol.text: round(one.instructions * max(self.times, 1))
            for one in record.profile.functions
        }


class Counted:
    """The parts of a program in one boot, by kind and name."""

    def __init__(self, path: Path) -> None:
        self.records = [*result.load(path).results]
        self._by_name = {(one.calls.kind, one.op): one for one in self.records}
        self.whole = self.find(EVERY, WHOLE).instructions

    def find(self, kind: str, name: str) -> Part:
        return Part(self._by_name[kind, name])

    @property
    def functions(self) -> set[str]:
        return {one.symbol.text for record in self.records for one in record.profile.functions}


def counted(
    iopath: Command, folder: Path, *words: str | Path, options: str = "", kernel: str = KERNEL
) -> Counted:
    """The one boot of a program on a kernel."""
    made = folder / "result.json"
    done = iopath.run("run", kernel, *options.split(), "--json", made, "--", *words)
    assert done.returncode == 0, done.stderr
    return Counted(made)


DD = ("dd", "if=/dev/blknull0", "of=/dev/null", "bs=4k", "count=1000", "iflag=direct")


def test_reads(iopath: Command, tmp_path: Path) -> None:
    boot = counted(iopath, tmp_path, *DD)
    read = boot.find(CALL, "read")
    # The loader reads the header of the C library.
    assert read.times == 1001
    assert read.each == pytest.approx(2647.47, rel=0.01)  # the rung dio.pread
    assert boot.find(CALL, "exit_group").times == 1
    assert boot.find(CALL, "execve").times == 1
    assert boot.find(FAULT, "page fault").times > 10


def test_a_rung(iopath: Command, tmp_path: Path) -> None:
    """A read of the loop takes as much as in the rung of the same options: the same in the kernel,
    function by function, and the instructions of the program before each call. The rung also counts
    what the loop executes once in each round of 100 reads."""
    made = tmp_path / "rung.json"
    done = iopath.run("profile", KERNEL, "--rung", "dio.pread", "--op", "read", "--json", made)
    assert done.returncode == 0, done.stderr
    (rung,) = result.load(made).results
    words = (
        guest_program("ioloop"), "--ioengine=sync", "--direct=1", "--rw=read", "--pattern=fixed",
        "--filename=/dev/blknull0", "--rounds=10", "--cpus_allowed=0",
    )  # fmt: skip
    few, many = (
        counted(iopath, tmp_path, *words, f"--number_ios={number}").find(CALL, "pread64")
        for number in (100, 1100)
    )
    reads = many.times - few.times
    assert reads >= 10_000
    difference: Counter[str] = Counter()
    for part, sign in ((many, 1), (few, -1)):
        for name, instructions in part.functions.items():
            difference[name.partition(" ")[0]] += sign * instructions
    in_rung = {one.name: one.instructions for one in rung.profile.functions if one.layer != "user"}
    each = {name: difference[name] / reads for name in in_rung}
    assert each == pytest.approx(in_rung, abs=0.01)
    assert sum(each.values()) == pytest.approx(sum(in_rung.values()), abs=0.01)
    before = (many.before - few.before) / reads
    assert before == pytest.approx(12, abs=0.01)
    of_round = 100 * (rung.instructions_per_io - sum(in_rung.values()) - before)
    assert of_round == pytest.approx(47, abs=1)


@pytest.mark.long
def test_a_device_that_interrupts(iopath: Command, tmp_path: Path) -> None:
    """Each read ends by an interrupt of the disk, for which the guest waits."""
    words = [word.replace("blknull0", "nvme0n1") for word in DD]
    boot = counted(iopath, tmp_path, *words, options="--device nvme")
    assert boot.find(CALL, "read").times == 1001
    assert 5500 < boot.find(CALL, "read").each < 7000
    (interrupts,) = (one for one in boot.records if "irq entries start" in one.op)
    assert interrupts.calls.times == [1000]


def test_the_same_twice(iopath: Command, tmp_path: Path) -> None:
    """Another limit is another guest, which counts the same."""
    one = counted(iopath, tmp_path, *DD)
    two = counted(iopath, tmp_path, *DD, options="--max-instructions 19999999999")
    assert one.records == two.records


def test_processes(iopath: Command, tmp_path: Path) -> None:
    boot = counted(iopath, tmp_path, compiled(tmp_path, FORKS))
    assert boot.find(CALL, "clone").times == 20
    assert boot.find(CALL, "exit_group").times == 21
    assert boot.find(CALL, "getppid").times == 10


def test_processes_that_are_switched_out_early(iopath: Command, tmp_path: Path) -> None:
    """Each child is stopped before it is in user mode for the first time."""
    boot = counted(iopath, tmp_path, compiled(tmp_path, STOPPED))
    assert boot.find(CALL, "clone").times == 30
    assert boot.find(CALL, "getppid").times == 300
    assert boot.find(CALL, "exit_group").times == 31
    assert boot.find(LATER, "start of processes").times == 30
    # Nor are the faults of the children counted for their reaper.
    assert boot.find(BESIDE, "iopath's own process").instructions < 10_000


@pytest.mark.long
def test_arm64(iopath: Command, tmp_path: Path) -> None:
    """What enters the kernel, and how tasks are switched, is not that of x86-64; counts are as
    exact."""
    compiler = cross_compiler(AARCH64).name
    kernel = "debian:6.12-arm64"
    boot = counted(iopath, tmp_path, compiled(tmp_path, READS, compiler), kernel=kernel)
    assert boot.find(CALL, "pread64").times == 1000
    assert boot.find(CALL, "pread64").before == pytest.approx(27_000, abs=100)
    assert boot.find(FAULT, "exception").times > 10
    boot = counted(iopath, tmp_path, compiled(tmp_path, STOPPED, compiler), kernel=kernel)
    assert boot.find(CALL, "getppid").times == 300
    assert boot.find(LATER, "start of processes").times == 30
    assert boot.find(BESIDE, "iopath's own process").instructions < 20_000


@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        (CRASHES, "", "program was ended by signal SIGSEGV"),
        (FAILS, "", "program ended with status 7: no luck"),
        (
            NEVER_ENDS,
            "--max-instructions 100000000",
            "program had not ended after 100,000,000 instructions",
        ),
        (PRINTS, "", "program wrote more than 256 MiB to a file"),
    ],
    ids=["crashes", "fails", "never ends", "prints"],
)
def test_a_program_that_fails(
    iopath: Command, tmp_path: Path, source: str, options: str, said: str
) -> None:
    words = (*options.split(), "--", compiled(tmp_path, source))
    done = iopath.run("run", "--quiet", KERNEL, *words)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert line.startswith(f"iopath: {KERNEL}: {said}")


def test_files_and_output(iopath: Command, tmp_path: Path) -> None:
    (tmp_path / "given").write_bytes(b"one\0\xfftwo\n")
    out = tmp_path / "out"
    done = iopath.run(
        "run", KERNEL, "--file", f"{tmp_path}/given:/data/there", "--output", out, "--",
        "cat", "/data/there",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == b"one\0\xfftwo\n"


def test_a_file_system(iopath: Command, tmp_path: Path) -> None:
    (tmp_path / "given").write_bytes(b"x" * 100_000)
    boot = counted(
        iopath, tmp_path, "cp", "/mnt/a", "/mnt/b",
        options=f"--mount ext4 --file {tmp_path}/given:/mnt/a",
    )  # fmt: skip
    assert any(name.endswith("[ext4]") for name in boot.functions)


def test_a_package(iopath: Command, tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text(
        "[job]\nfilename=/dev/blknull0\ndirect=1\nbs=4k\nrw=read\nioengine=psync\n"
        "size=40m\nnumber_ios=10000\n"
    )
    boot = counted(
        iopath, tmp_path, "fio", "job.fio", options=f"--package fio --file {job}:job.fio"
    )
    # The C library reads headers in the same way.
    assert 10_000 <= boot.find(CALL, "pread64").times <= 10_010
    assert boot.find(CALL, "pread64").each == pytest.approx(2494.71, rel=0.001)


SCRIPT = """\
#!/bin/sh
set -e
for i in 1 2 3; do
	dd if=/dev/blknull0 of=/dev/null bs=4k count=100 iflag=direct
done
seq 7 | wc -l
no-such-tool || sqlite3 t.db "create table t (a)"
fio --thread --name=a --filename=/dev/blknull0 --direct=1 --size=1m --number_ios=50 --ioengine=psync
"""


def test_a_script(iopath: Command, tmp_path: Path) -> None:
    """Its commands are busybox's, and those of two packages. What is nowhere is named."""
    script, made, out = (tmp_path / name for name in ("work.sh", "result.json", "out"))
    script.write_text(SCRIPT)
    done = iopath.run(
        "run", KERNEL, "--package", "fio", "--package", "sqlite3", "--json", made, "--output", out,
        "--", script,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "the script calls no-such-tool: no-such-tool: no such program in PATH" in done.stderr
    assert done.stderr.count("the script calls") == 1
    boot = Counted(made)
    assert 300 <= boot.find(CALL, "read").times < 400
    assert 50 <= boot.find(CALL, "pread64").times < 100
    assert boot.find(CALL, "unlink").times == 1  # the journal
    assert out.read_text().startswith("7\na: (g=0)")


def test_a_database(iopath: Command, tmp_path: Path) -> None:
    """Each insert is a transaction: a journal is written, flushed and removed."""
    inserts = tmp_path / "inserts.sql"
    inserts.write_text("create table t (a);\n" + "insert into t values (1);\n" * 100)
    boot = counted(
        iopath, tmp_path, "sqlite3", "test.db", ".read inserts.sql",
        options=f"--mount ext4 --package sqlite3 --file {inserts}",
    )  # fmt: skip
    assert boot.find(CALL, "unlink").times == 101
    assert boot.find(CALL, "fdatasync").times == 404
    assert boot.find(LATER, "jbd2").instructions > 1_000_000


@pytest.mark.long
def test_t_io_uring(session: Session, iopath: Command, tmp_path: Path) -> None:
    """It reads for a second of the guest's time, one read at a time."""
    path = tmp_path / "t_io_uring"
    path.write_bytes(fio.t_io_uring(session, fio.program(session)[0]))
    path.chmod(0o755)
    boot = counted(
        iopath,
        tmp_path,
        path,
        *["-r1", "-d1", "-c1", "-s1", "-p0", "-B0", "-F0", "-n1", "/dev/blknull0"],
    )
    enter = boot.find(CALL, "io_uring_enter")
    assert enter.times > 200_000
    assert enter.each == pytest.approx(3849, rel=0.001)
    assert boot.whole == pytest.approx(1e9, rel=0.05)


def test_two_kernels(iopath: Command, tmp_path: Path) -> None:
    """A limit is judged, of as many boots as a verdict takes; the comparison adds up. Files are
    compared as kernels are."""
    made = tmp_path / "result.json"
    files = {"--json": made, "--csv": tmp_path / "csv", "--svg": tmp_path / "result.svg"}
    views = itertools.chain.from_iterable(files.items())
    done = iopath.run("run", KERNEL, "debian:7.2", *views, "--fail-above", "1", "--", *DD)
    assert done.returncode == 1
    figures = list(csv.DictReader((tmp_path / "csv").open()))
    assert {(one["kernel"], one["name"]) for one in figures} == {
        (name, shlex.join(DD)) for name in (KERNEL, "debian:7.2")
    }
    assert "the whole" not in files["--svg"].read_text()  # it is the sum of what is drawn
    assert ">page fault<" in files["--svg"].read_text()
    assert f"read: debian:7.2 takes more than {KERNEL}: instructions " in done.stderr
    whole, *parts = json.loads(made.read_text())["comparison"]["rungs"]
    of = [rung["differences"]["debian:7.2"]["calls"] for rung in parts]
    changes = [(part, part["instructions"][1] - part["instructions"][0]) for part in of]
    single = [change for part, change in changes if part["kind"] not in ("io", "start")]
    assert sum(single) == pytest.approx(whole["differences"]["debian:7.2"]["difference"])
    for group in ("io", "start"):
        (in_all,) = [change for part, change in changes if part["kind"] == group]
        members = [change for part, change in changes if part["part_of"] == group]
        assert len(members) > 1
        assert sum(members) == pytest.approx(in_all)
    files = []
    for kernel in (KERNEL, "debian:7.2"):
        files.append(tmp_path / f"{kernel}.json")
        options = ("--boots", "5", "--json", files[-1])
        assert iopath.run("run", kernel, *options, "--", *DD).returncode == 0
    again = iopath.run("compare", *files, "--fail-above", "1")
    assert (again.returncode, again.stderr) == (1, done.stderr.splitlines()[-1] + "\n")
    assert again.stdout == done.stdout
    assert iopath.run("compare", *files, "--fail-above", "500").returncode == 0


def test_too_few_boots(iopath: Command) -> None:
    words = ("run", KERNEL, "debian:7.2", "--boots", "1", "--fail-above", "1", "--", *DD)
    done = iopath.run(*words)
    assert done.returncode == 125
    assert "the whole" in done.stderr
    assert "1 boot is too few" in done.stderr


def test_another_program(iopath: Command, tmp_path: Path) -> None:
    """Two programs are not compared."""
    files = [tmp_path / name for name in ("one.json", "two.json")]
    for file, words in zip(files, (DD, DD[:-1]), strict=True):
        assert iopath.run("run", KERNEL, "--json", file, "--", *words).returncode == 0
    done = iopath.run("compare", *files)
    said = done.stderr
    assert (done.returncode, done.stdout) == (1, "")
    assert "more than the kernel differs: the whole" in said
    assert "iflag=direct" in said


@pytest.fixture
def logs(tmp_path: Path) -> dict[str, Path]:
    """Builds of a program in folders of their own."""
    found = {}
    for name in ("plain", "SYNC", "UNBUFFERED"):
        folder = tmp_path / name
        folder.mkdir()
        found[name] = compiled(folder, f"#define {name} 1\n{LOG}")
    return found


@pytest.mark.long
def test_two_builds_on_one_kernel(iopath: Command, logs: dict[str, Path], tmp_path: Path) -> None:
    """The first line names the system call that one build adds, and how often. The same build at
    another place has no difference."""
    out = tmp_path / "out.json"

    def changes(name: str, status: int = 0) -> tuple[str, dict[str, list[int]]]:
        words = ("run", KERNEL, "--before", logs["plain"], "--after", logs[name], "--json", out)
        done = iopath.run(*words, "--fail-above", "1", "--", "/dev/blknull0")
        assert done.returncode == status, done.stderr
        whole = result.load(out)
        assert whole.names == [str(logs["plain"]), str(logs[name])]
        calls: dict[str, list[int]] = {}
        for one in whole.results:
            if one.calls.kind == CALL:
                calls.setdefault(one.op, [0, 0])[whole.names.index(one.kernel.name)] = (
                    one.calls.times[0]
                )
        said = " ".join(done.stdout.split("\n\n")[0].split())
        return said, {name: both for name, both in calls.items() if both[0] != both[1]}

    said, calls = changes("SYNC", 1)
    assert calls == {"fsync": [0, 100]}
    assert "fsync" in said
    said, calls = changes("UNBUFFERED", 1)
    assert calls == {"write": [100, 1600]}
    assert "write" in said
    logs["again"] = tmp_path / "again"
    logs["again"].write_bytes(logs["plain"].read_bytes())
    logs["again"].chmod(0o755)
    said, calls = changes("again")
    assert calls == {}


@pytest.mark.long
@pytest.mark.parametrize(
    ("build", "calls"),
    [("SYNC", {"fsync": 100, "write": 100}), ("UNBUFFERED", {"write": 1600})],
    ids=["fsync", "unbuffered"],
)
def test_the_same_in_each_emulator(
    iopath: Command, logs: dict[str, Path], tmp_path: Path, build: str, calls: dict[str, int]
) -> None:
    """Calls and requests are equal, and so are the instructions in each call and in all: neither a
    tick nor a period of the scheduler's load averages falls in another one."""
    found = []
    for suite in ("bookworm", "trixie", "trixie-backports"):
        options = f"--device mq --cpu Haswell-noTSX --emulator {suite}"
        boot = counted(iopath, tmp_path, logs[build], "/dev/blknull2", options=options)
        found.append(boot)
    first, *others = found
    assert {name: first.find(CALL, name).times for name in calls} == calls
    for other in others:
        assert other.records[0].counts == first.records[0].counts
        assert other.whole == pytest.approx(first.whole, rel=2e-5)
        for name in calls:
            one, two = (boot.find(CALL, name) for boot in (first, other))
            assert two.times == one.times
            assert two.each == pytest.approx(one.each, abs=0.1)


@pytest.mark.long
def test_a_baseline(iopath: Command, logs: dict[str, Path], tmp_path: Path) -> None:
    """A program is compared with the result that was kept, until that is written again."""
    file, program = tmp_path / "baseline.json", tmp_path / "program"
    program.symlink_to(logs["plain"])
    words = ("run", KERNEL, "--baseline", file, "--fail-above", "1")
    said = iopath.fails(*words, "--", program, "/dev/blknull0", status=2)
    assert said == f"iopath: --baseline {file}: no such file: --update-baseline writes it"
    done = iopath.run(*words[:4], "--update-baseline", "--", program, "/dev/blknull0")
    assert done.returncode == 0, done.stderr
    kept = file.read_text()
    done = iopath.run(*words, "--", program, "/dev/blknull0")
    assert done.returncode == 0, done.stderr
    program.unlink()
    program.symlink_to(logs["SYNC"])
    done = iopath.run(*words, "--", program, "/dev/blknull0")
    assert (done.returncode, file.read_text()) == (1, kept), done.stderr
    assert "fsync" in done.stdout
    done = iopath.run(*words, "--update-baseline", "--", program, "/dev/blknull0")
    assert done.returncode == 1, done.stderr
    done = iopath.run(*words, "--", program, "/dev/blknull0")
    assert done.returncode == 0, done.stderr
