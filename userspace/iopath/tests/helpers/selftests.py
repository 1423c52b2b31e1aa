# SPDX-License-Identifier: GPL-2.0
"""The modules' selftests in a guest of two CPUs, and the verdict on them."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from helpers.linux_source import LinuxSource, compiler
from helpers.two_cpus import START, TwoCpus
from iopath.base import process
from iopath.base.arch import AARCH64, X86_64, Arch
from iopath.base.cache import digest_file
from iopath.base.programs import cross_compiler
from iopath.base.sources import source_digest, source_root
from iopath.guest.guest import GuestError, Record
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import Image, Start
from iopath.guest.states import States
from iopath.kernels.modules import uncompressed
from iopath.kernels.sources.tree import Tree
from iopath.measure import packages
from iopath.measure.session import Session

SELFTESTS = source_root() / "selftests"
SCRIPTS = ("biogen", "stacked")  # the folders whose scripts run in guests

# Kernels that are built for the tests: the series of their source, the last of the fragments of
# their configuration in selftests/config, and their architecture. All but the last look for faults.
OURS = {
    "debug": ("6.12", "debug.config", X86_64),
    "debug-7.2": ("7.2", "debug.config", X86_64),
    "debug-arm64": ("6.12", "debug.config", AARCH64),
    "kcsan": ("6.12", "kcsan.config", X86_64),
    "6.12-arm64-64k": ("6.12", "pages-64k.config", AARCH64),
}
ALL = "5.10 6.1 6.12 6.12-arm64 7.2 7.3 debug"
KERNELS = os.environ.get("KERNEL", ALL).replace("debian:", "").split()

# Choices of the tests, which the guest's programs get in their environment.
VARIABLES = [f"env {name} {os.environ[name]}" for name in ("SEED", "RUNS") if name in os.environ]
# "make check" runs these: each engine that it does not run in test_stacked.py, and some kinds of
# disks. The rest is run by "make check-all".
FIRST = ("brd_fixed", "timer_uring", "polled", "bad_vector")
# Tests on disks that must be made first, as test_stacked.py does.
GIVEN = ("given_sync", "given_vector", "given_aio", "given_uring", "given_fixed")
# Tests with another name than that of their program.
COMMANDS = {
    "biogen_io": f"biogen_io {' '.join(f'-v {variant}' for variant in FIRST)}",
    # The tests that start and stop threads, and that release memory and devices. Disks that
    # complete later take a debug kernel a minute.
    "biogen_run_few": "biogen_run -V slow -t waits -t writes -t signal -t close -t dirtied"
    " -t coherent -t error -t removed",
    "biogen_io_rest": f"biogen_io {' '.join(f'-V {variant}' for variant in (*FIRST, *GIVEN))}",
}


def commands_of(program: str) -> list[str]:
    """The command for *program*: see run()."""
    return [COMMANDS.get(name, name) for name in program.split("+")]


# Rounds for kernels so slow that the usual number would take hours, unless RUNS is given. With
# KASAN, taking a CPU offline takes half a minute.
RUNS = {
    ("debug-7.2", "blknull_churn"): ["env RUNS 200"],
    ("debug-arm64", "blknull_churn"): ["env RUNS 200"],
    ("debug", "blknull_remote"): ["env RUNS 1"],
    ("debug-7.2", "blknull_remote"): ["env RUNS 1"],
    ("debug-arm64", "blknull_remote"): ["env RUNS 1"],
}

# The kernel's own modules, if it has these as modules.
OWN_MODULES = ("configfs", "brd", "null_blk")

# A report of KCSAN about a tested module.
OUR_CODE = re.compile(r"\[(?:biogen|blknull|planted)\]")

# The kernel's report of a cache that it has no memory for, which fault_nth causes. The trace of
# arm64 ends with the entry from user space.
NO_CACHE = re.compile(
    r"^.*__kmem_cache_create_args\(\w+\) failed with error -\d+\n(?:.*\n)*?"
    r".*(?:</TASK>|\bel0t_64_sync\+\S+)$",
    re.MULTILINE,
)

# Messages of a kernel with a fault. A line that begins with "# " is a program's.
TROUBLE = re.compile(
    r"^(?!# ).*(?:\bBUG:|WARNING:|Oops:|KASAN:|UBSAN:|KFENCE:|INFO: |Kernel panic|Call [Tt]race:"
    r"|Unable to handle kernel|Internal error:|SError"
    r"|ODEBUG: (?!selftest)|kmemleak: [1-9]|unreferenced object|general protection"
    r"|(?:list_(?:add|del)|slab) corruption|[Oo]bjects remaining|refcount_t: |lockdep is turned off"
    r"|blocked for more than|lockup|bad page|Bad page).*$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Kernel:
    """A kernel to test on: its name, image, the project's modules and its own, by name."""

    name: str
    vmlinuz: Path
    modules: dict[str, Path]
    own: dict[str, Path]
    tree: Path | None = None  # where it was built, if that was for the tests
    instrumented: Path | None = None  # where the modules were built, with gcov's notes
    arch: Arch = X86_64

    @property
    def finds_leaks(self) -> bool:
        return self.name.startswith("debug")


def find_modules(*folders: Path) -> dict[str, Path]:
    """The kernel's own modules below *folders*."""
    return {
        module: path
        for module in OWN_MODULES
        for folder in folders
        for path in folder.rglob(f"{module}.ko*")
    }


@pytest.fixture(scope="module")
def source(session: Session) -> LinuxSource:
    return LinuxSource(session)


@pytest.fixture(scope="module")
def kernel(request: pytest.FixtureRequest, session: Session, source: LinuxSource) -> Kernel:
    name = request.param
    if name in OURS:
        series, last, arch = OURS[name]
        linux = LinuxSource(session, series)
        tree = linux.tree("minimal.config", "distribution.config", last, arch=arch)
        built = linux.modules(tree)
        modules = {path.stem: path for path in built.rglob("*.ko")}
        own = find_modules(tree / "drivers/block")
        instrumented = built if name.startswith("debug") else None
        return Kernel(name, Tree(tree).image, modules, own, tree, instrumented, arch)
    built = session.find(f"debian:{name}").prepare(
        session.cache, session.apt, lambda what, part: None
    )
    own = find_modules(built.own_modules) if built.own_modules else {}
    vmlinuz = source.unpacked(built.vmlinuz) if built.arch == X86_64 else built.vmlinuz
    return Kernel(name, vmlinuz, built.modules, own, arch=built.arch)


@pytest.fixture(scope="module")
def programs(source: LinuxSource, session: Session, kernel: Kernel) -> dict[str, bytes]:
    """Every program of the selftests, by name."""
    cross = cross_compiler(kernel.arch)
    files = [
        path
        for pattern in ("selftests/*/*.[ch]", "selftests/*/Makefile", "kernel/include/**/*.h")
        for path in sorted(source_root().glob(pattern))
    ]
    kselftest = source.kselftest()
    inputs = {
        "files": {str(path.relative_to(source_root())): digest_file(path) for path in files},
        "kselftest": str(kselftest),
        "compiler": compiler(kernel.arch),
        "for": kernel.arch.name,
    }

    def make(folder: Path) -> None:
        (folder / "bin").mkdir()
        for makefile in sorted(SELFTESTS.glob("*/Makefile")):
            done = subprocess.run(
                [process.need("make", "make"), "-s", "-C", makefile.parent,
                 f"KSELFTEST={kselftest}", f"OUTPUT={folder}/bin", f"CC={cross}"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert (done.returncode, done.stderr) == (0, ""), done.stderr

    built = session.cache.entry("selftests", inputs, make) / "bin"
    if kernel.arch == X86_64:
        shell = Path(process.need("busybox", "busybox-static"))
    else:
        apt = session.apt.of(kernel.arch)
        shell = packages.files(session.cache, apt, "busybox-static", "busybox")[1]["bin/busybox"]
    scripts = [path for name in SCRIPTS for path in sorted((SELFTESTS / name).glob("*.sh"))]
    paths = [*built.iterdir(), *scripts]
    return {path.name: path.read_bytes() for path in paths} | {"sh": shell.read_bytes()}


@dataclass(frozen=True)
class Tap:
    """A program's output in the Test Anything Protocol."""

    passed: list[str]
    failed: list[str]
    skipped: dict[str, str]  # by name: the reason


def read_tap(text: str) -> Tap:
    """Read TAP; *failed* has everything that differs from its plan."""
    plans = re.findall(r"^1\.\.(\d+)", text, re.MULTILINE)
    tap = Tap([], [], {})
    numbers = []
    for line in text.splitlines():
        match = re.match(r"(not )?ok (\d+) (?:- )?(\S+)(?: *# *SKIP\b(.*))?", line)
        if not match:
            continue
        failed, number, name, reason = match.groups()
        numbers.append(int(number))
        if failed:
            tap.failed.append(name)
        elif reason is not None:
            tap.skipped[name] = reason.strip()
        else:
            tap.passed.append(name)
    if len(plans) != 1:
        tap.failed.append(f"{len(plans)} plans")
    elif numbers != list(range(1, int(plans[0]) + 1)):
        tap.failed.append(f"{len(numbers)} results of {plans[0]}")
    return tap


ONLINE = "/sys/devices/system/cpu/online"

# Why a test may be skipped, and on which kernels only.
SKIPS = {
    "registered buffers are always there": None,
    "pages of files cannot be registered": None,
    "no page cache of blocks that fail": None,
    "null_blk does not poll": ("5.10",),
    "memory is aligned to blocks": ("5.10",),
    "no search for tasks that hang": ("kcsan", "6.12-arm64-64k"),
    "no users": tuple(OURS),
    "no userfaultfd": tuple(OURS),
    "no system calls of 32 bits": (*OURS, "6.12-arm64", "6.12-arm64-16k", "6.1-arm64"),
}


def may_skip(kernel: Kernel, reason: str) -> bool:
    """Whether a test may be skipped on *kernel* for this reason."""
    return reason in SKIPS and kernel.name in (SKIPS[reason] or [kernel.name])


def complaints(kernel: Kernel, console: str) -> list[str]:
    """The kernel's messages that must not occur. The kernel has data races of its own, which are
    not the modules'."""
    if kernel.name == "kcsan":
        reports = re.split(r"^.*={66}\n", console, flags=re.MULTILINE)
        console = "".join(
            part for part in reports if "BUG: KCSAN:" not in part or OUR_CODE.search(part)
        )
    return [match.group(0) for match in TROUBLE.finditer(NO_CACHE.sub("", console))]


def verdict(
    kernel: Kernel, names: Sequence[str], records: Sequence[Record], console: str
) -> list[str]:
    """Everything that is wrong with the programs of these names."""
    outputs = {record.name: record.data.decode(errors="replace") for record in records}
    faults = []
    for name in names:
        tap = read_tap(outputs.get(name, ""))
        faults += [f"not ok {test}" for test in tap.failed]
        faults += [
            f"skipped {test}: {reason}"
            for test, reason in tap.skipped.items()
            if not may_skip(kernel, reason)
        ]
        if not tap.passed:
            faults.append(f"{name}: nothing passed")
    if outputs.get(ONLINE) != "0-1\n":
        faults.append(f"CPUs: {outputs.get(ONLINE)}")
    if kernel.finds_leaks and read_tap(outputs.get("leaks", "")) != Tap(["leaks"], [], {}):
        faults.append(f"leaks: {outputs.get('leaks', 'not searched for')}")
    return faults + complaints(kernel, console)


def before_stale_code(console: str) -> str | None:
    """The console up to the point where a CPU executed an int3 that memory does not hold, if one
    did: QEMU's fault, see two_cpus.py."""
    oops = re.search(
        r"^.*\bint3: 0000 \[#1\](?:.*\n)*?.*\bCode:.* (\w\w) <\w\w>", console, re.MULTILINE
    )
    return console[: oops.start()] if oops and oops[1] != "cc" else None


def boot(
    states: States, kernel: Kernel, machine: Machine, image: Image, log: Path
) -> tuple[list[Record], str, list[str]]:
    """Boot, and boot again if only QEMU was at fault. Returns the records, the console, and what
    kept the guest from its end."""
    for _ in range(3):
        faults = []
        try:
            records, _ = states.run(Qemu.find(machine.arch), machine, image, log)
        except GuestError as error:
            records = error.records
            faults.append(str(error))
        console = log.read_text(errors="replace")
        before = before_stale_code(console)
        if before is None or complaints(kernel, before):
            break
        warnings.warn(f"QEMU ran code that was no longer there: {faults}", stacklevel=2)
    return records, console, faults


def run(
    states: States,
    kernel: Kernel,
    program: str,
    programs: dict[str, bytes],
    log: Path,
    *,
    first: Sequence[str] = (),
    goes_on: bool = False,
    coverage: "Coverage | None" = None,
    time_limit: int = TwoCpus.time_limit,
) -> list[str]:
    """Boot *kernel*, carry out *first* and run *program*. Returns the verdict. A program is one of
    COMMANDS or "NAME ARGUMENTS"; several, joined by "+", run one after the other in the same guest.
    A warning ends the guest, unless it *goes_on*."""
    commands = commands_of(program)
    names = [command.split()[0] for command in commands]
    files = {f"bin/{file}": data for file, data in programs.items()}
    modules = kernel.own | kernel.modules
    files |= {f"modules/{module}.ko": uncompressed(path) for module, path in modules.items()}
    plan = [
        *(["insmod /modules/configfs.ko"] if "configfs" in kernel.own else []),
        # The later of two values counts.
        *(word for name in names for word in RUNS.get((kernel.name, name), [])),
        *VARIABLES,
        f"file {ONLINE}",
        *first,
        # Not every kernel here supports scripts.
        *(
            f"run {name} /bin/{'sh /bin/' if name.endswith('.sh') else ''}{command}"
            for name, command in zip(names, commands, strict=True)
        ),
        *(f"insmod /modules/{module}.ko" for module in ("blknull", "biogen")),
        *(f"rmmod {module}" for module in ("biogen", "blknull")),
        *(["run leaks /bin/leaks"] if kernel.finds_leaks else []),
        *(coverage.commands() if coverage else []),
    ]
    words = [TwoCpus.cmdline]
    if not goes_on and kernel.name != "kcsan":
        words.append("panic_on_warn=1")
    if kernel.finds_leaks:
        # A CPU that goes offline frees what KASAN keeps of it, with a stack trace of each object
        # and within RCU. In emulation that takes longer than the usual limit of 21 s.
        words.append("rcupdate.rcu_cpu_stall_timeout=300")
    machine = TwoCpus(cmdline=" ".join(words), time_limit=time_limit).on(kernel.arch)
    image = Image(Start(kernel.vmlinuz, (START,), arch=kernel.arch), plan, files)
    records, console, faults = boot(states, kernel, machine, image, log)
    faults += verdict(kernel, names, records, console)
    if coverage and not faults:
        coverage.add(program, records)
    if faults:
        faults += [line for line in console.splitlines() if line.startswith("# ")][-20:]
    return faults


class Coverage:
    """Which lines of the modules were run: gcov's counts. Each program's are kept in
    build/coverage, and those of the same source are summed."""

    def __init__(self, kernel: Kernel) -> None:
        self._folder = kernel.instrumented
        self._kept = source_root() / "build/coverage" / kernel.name
        self._kept.mkdir(parents=True, exist_ok=True)

    def _notes(self) -> list[Path]:
        if not self._folder:
            return []
        return [
            path
            for path in sorted((self._folder / "src/kernel").rglob("*.gcno"))
            if not path.stem.endswith(".mod")
        ]

    def _data(self, note: Path) -> str:
        """Where the guest has the counts. A cache entry was at another path when it was made."""
        made = f"{self._folder}.part"
        return f"/sys/kernel/debug/gcov{made}/{note.relative_to(self._folder).with_suffix('.gcda')}"

    def commands(self) -> list[str]:
        return [f"file {self._data(note)}" for note in self._notes()]

    def add(self, program: str, records: Sequence[Record]) -> None:
        data = {record.name: record.data for record in records}
        found: dict[str, dict[int, int]] = {}
        for note in self._notes():
            counts = data[self._data(note)[:200]]
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                shutil.copyfile(note, folder / note.name)
                (folder / note.name).with_suffix(".gcda").write_bytes(counts)
                done = subprocess.run(
                    [process.need("gcov", "gcc"), "--json-format", "--stdout", note.stem],
                    cwd=folder, capture_output=True, text=True, check=True,
                )  # fmt: skip
            said = json.loads(done.stdout)
            for file in said["files"]:
                # From 6.13 on, Kbuild names a module's files relative to their folder.
                path = Path(said["current_working_directory"], file["file"])
                match = re.search(r"/src/(kernel/.*)", str(path))
                if match:
                    lines = found.setdefault(match[1], {})
                    for line in file["lines"]:
                        number = line["line_number"]
                        lines[number] = lines.get(number, 0) + line["count"]
        assert found, f"{program}: gcov names no file of the modules"
        kept = {"source": source_digest(), "lines": found}
        (self._kept / f"{program}.json").write_text(json.dumps(kept))

    def report(self) -> str:
        """Per file the share of lines that were run, and the numbers of those that were not."""
        sums: dict[str, dict[str, int]] = {}
        programs = []
        source = source_digest()
        for path in sorted(self._kept.glob("*.json")):
            kept = json.loads(path.read_text())
            if kept["source"] != source:
                continue
            programs.append(path.stem)
            for name, counts in kept["lines"].items():
                lines = sums.setdefault(name, {})
                for number, count in counts.items():
                    lines[number] = lines.get(number, 0) + count
        rows, total, run = [f"By {' '.join(programs)}:"], 0, 0
        for name, lines in sorted(sums.items()):
            missed = sorted(int(number) for number, count in lines.items() if not count)
            total += len(lines)
            run += len(lines) - len(missed)
            share = 100 * (len(lines) - len(missed)) / len(lines)
            rows.append(f"{share:6.1f} % of {len(lines):4} {name} {missed or ''}")
        share = 100 * run / total if total else 0
        return "\n".join([*rows, f"{share:6.1f} % of {total:4} lines"])


@pytest.fixture(scope="module")
def coverage() -> Iterator[dict[str, Coverage]]:
    """The coverage by kernel, written to build/coverage/KERNEL.txt in the end."""
    found: dict[str, Coverage] = {}
    yield found
    for name, coverage in found.items():
        text = coverage.report() + "\n"
        (source_root() / f"build/coverage/{name}.txt").write_text(text)
