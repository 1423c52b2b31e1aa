# SPDX-License-Identifier: GPL-2.0
"""The types of results, and how they are read from files.

There are two kinds of result: an exact one, counted in an emulated guest, and one of a machine, in
time. The files are described by result.schema.json and hardware.schema.json.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from iopath.base import typed
from iopath.base.errors import IopathError
from iopath.results import jsonfile
from iopath.results.model import Model
from iopath.results.profiles import COUNTS, ExactProfile, SampledProfile
from iopath.results.shared import Sharing
from iopath.results.syscalls import BESIDE, WHOLE, Calls

SCHEMA = 2

# The figures made from ioloop's counters, which count the program and the kernel apart.
COUNTERS = {
    "cycles": ("cycles_user", "cycles_kernel"),
    "instructions": ("instructions_user", "instructions_kernel"),
    "instructions_kernel": ("instructions_kernel",),
    "cache_misses": ("cache_misses",),
    "branch_misses": ("branch_misses",),
}

# By how much all may differ from the path by noise alone, in instructions per I/O: the beginning
# of a round weighs more in the path, and the background varies.
MORE = 5.0

# The parts of all that do not have a name of their own.
REST = "rest"

Key = tuple[str, str, int]  # rung, operation, block size


# The rungs that do no I/O: the loop alone, and an empty system call.
WITHOUT_IO = ("null", "syscall")


def title(rung: str, op: str) -> str:
    """A rung and its operation, e.g. "dio.pread read". A part of a program has no rung."""
    return rung if op == "none" else f"{rung} {op}".lstrip()


def size_text(size: int) -> str:
    """A number of bytes as people write it: 512 B, 4 KiB, 1 MiB."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


@dataclass(kw_only=True)
class MeasuredKernel:
    """A kernel. If a guest ran it, its package and the guest's settings are known, too."""

    name: str
    release: str
    version: str | None = None
    origin: str | None = None
    arch: str = "x86_64"
    banner: str
    compiler: str
    cpu_model: str | None = None
    cmdline: str
    clocksource: str
    config: dict[str, str]
    digests: dict[str, str] | None = None
    modules: dict[str, dict[str, str]]
    zero_fill: bool | None = None
    coherent: bool | None = None
    quiet_after_seconds: int | None = None

    @property
    def shims(self) -> str:
        """The compatibility shims that its modules use."""
        return ", ".join(
            filter(None, (facts.get("iopath_shims", "") for facts in self.modules.values()))
        )


@dataclass(kw_only=True)
class QemuVersion:
    version: str
    digest: str


@dataclass(kw_only=True)
class GuestMachine:
    cpu: str
    memory_mib: int
    cmdline: str
    seed: int


@dataclass(kw_only=True)
class Instrument:
    """What a kernel was measured with."""

    qemu: QemuVersion
    machine: GuestMachine
    programs: dict[str, str]
    source: str
    device: str | None = None


@dataclass(kw_only=True)
class ExactKernel(MeasuredKernel):
    """The kernel of an exact result."""

    version: str = field()
    origin: str = field()
    cpu_model: str = field()
    digests: dict[str, str] = field()
    zero_fill: bool = field()
    coherent: bool = field()
    quiet_after_seconds: int = field()
    instrument: Instrument | None = None  # if it is not that of the result


@dataclass(kw_only=True)
class KernelName:
    """The kernel that a record is of."""

    name: str
    release: str


class OfRung:
    """What belongs to one rung, operation and block size. Derived classes have these as fields."""

    rung: str
    op: str
    block_size: int

    @property
    def key(self) -> Key:
        return self.rung, self.op, self.block_size

    @property
    def title(self) -> str:
        return title(self.rung, self.op)

    @property
    def size(self) -> str:
        return size_text(self.block_size) if self.block_size else ""

    @property
    def does_io(self) -> bool:
        return self.rung not in WITHOUT_IO


@dataclass(kw_only=True)
class RungRecord(OfRung):
    """One rung, operation and block size on one kernel."""

    kernel: KernelName
    rung: str
    op: str
    block_size: int
    command: list[str]


@dataclass(kw_only=True)
class ExactRecord(RungRecord):
    """Instructions per I/O, with the figures of each boot; or of a part of a program, whose rung
    is empty and whose operation is its name, instructions each time."""

    instructions_per_io: float
    spread: float
    boots: list[float]
    boot_spread: float
    layouts: list[list[float]] | None = None  # of each boot, the figure in each layout
    profile_boot: int | None = None
    mean: float | None = None
    mean_boots: list[float] | None = None
    with_deferred: float | None = None
    with_deferred_boots: list[float] | None = None
    counts: dict[str, list[float]] | None = None
    scenario: str | None = None
    all_parts: dict[str, float] | None = None  # of with_deferred, by who executed it; they add up
    long_run_ios: int | None = None
    drain_ms: int | None = None
    mean_with_interrupts: float
    rounds: int
    rounds_with_interrupts: int
    ios_per_round: int
    batch: int
    profile: ExactProfile | None = None
    cpus: int | None = None
    sharing: Sharing | None = None
    model: Model | None = None
    calls: Calls | None = None  # of a part of a program

    # Two figures are judged and shown by these names everywhere.

    @property
    def path(self) -> float:
        """What a usual I/O executes in its task."""
        return self.instructions_per_io

    @property
    def path_boots(self) -> list[float]:
        return self.boots

    @property
    def samples(self) -> list[float]:
        """The path in all layouts of all boots; if there is one layout, in all boots."""
        return [figure for boot in self.layouts for figure in boot] if self.layouts else self.boots

    @property
    def total(self) -> float | None:
        """All that is executed because of the I/Os of a long run, for each I/O, rare and deferred
        work included."""
        return self.with_deferred

    @property
    def total_boots(self) -> list[float] | None:
        return self.with_deferred_boots

    @property
    def has_more(self) -> bool:
        """Whether all differs from the path by more than noise."""
        return self.total is not None and abs(self.total - self.path) > MORE

    def never(self, whole: "ExactRecord") -> "ExactRecord":
        """The same part of a program on the kernel of *whole*, where it never began."""
        zeroes = [0 for _ in whole.boots]
        return replace(
            self, kernel=whole.kernel, instructions_per_io=0.0, boots=[0.0 for _ in zeroes],
            boot_spread=0.0, mean_with_interrupts=0.0, rounds=len(zeroes),
            calls=self.calls
            and replace(self.calls, times=zeroes, instructions=zeroes, before=zeroes),
            profile=self.profile
            and replace(
                self.profile, user=0.0, kernel=0.0, instructions=0.0, layers={}, functions=[],
                stacks=[],
            ),
        )  # fmt: skip


@dataclass(kw_only=True)
class TimeFigure:
    """A median, its confidence interval and its noise."""

    median: float
    low: float
    high: float
    noise: float
    boots: list[float] | None = None


@dataclass(kw_only=True)
class HardwareRecord(RungRecord):
    """Time and counters per I/O, or a profile of time."""

    figures: dict[str, TimeFigure] | None = None
    absent: dict[str, str] | None = None
    samples: int | None = None
    rounds: int | None = None
    ios_per_round: int | None = None
    batch: int | None = None
    profile: SampledProfile | None = None


@dataclass
class Row(OfRung):
    """One rung, operation and block size, with the record of each kernel that has it."""

    rung: str
    op: str
    block_size: int
    records: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return " ".join(filter(None, [super().title, self.size]))


@dataclass(kw_only=True)
class Result:
    """What is common to both kinds of result."""

    heading: ClassVar[str]  # of what is measured per I/O
    profiled_by: ClassVar[str]  # how a profile is made
    counts: ClassVar[tuple[str, ...]]  # of a function in a profile; the first one is shown

    schema: int
    program: str
    mode: str
    machine: Any
    programs: dict[str, str]
    kernels: list[Any]
    results: list[Any]

    @property
    def names(self) -> list[str]:
        return [kernel.name for kernel in self.kernels]

    @property
    def per(self) -> str:
        """What its figures are for."""
        return "per I/O"

    @property
    def subject(self) -> str:
        """What it is about, in words."""
        return f"{self.heading} {self.per}"

    @property
    def counted(self) -> Sequence[str]:
        """The counts of a function that its profiles have."""
        return self.counts

    @property
    def profiled(self) -> bool:
        return any(record.profile for record in self.results)

    def rows(self) -> list[Row]:
        """The records by rung, operation and block size, in the order of the ladder."""
        found: dict[Key, Row] = {}
        for record in self.results:
            found.setdefault(record.key, Row(*record.key)).records[record.kernel.name] = record
        return list(found.values())


@dataclass(kw_only=True)
class ExactResult(Result):
    """Instructions, counted in an emulated guest."""

    heading = "Instructions"
    profiled_by = (
        "Where the instructions go. These are counted one by one. The guest's clock, which gives"
        " the figures of the summary, also counts the few instructions per round that read it."
    )
    counts = COUNTS

    qemu: QemuVersion
    machine: GuestMachine
    source: str
    kernels: list[ExactKernel]
    results: list[ExactRecord]
    device: str | None = None  # what a program ran on; None if this is of rungs

    def instrument(self, kernel: ExactKernel | None = None) -> Instrument:
        """What a kernel was measured with, or one that does not say so."""
        return (kernel and kernel.instrument) or Instrument(
            qemu=self.qemu, machine=self.machine, programs=self.programs, source=self.source,
            device=self.device,
        )  # fmt: skip

    @property
    def command(self) -> str:
        """The program's command line, as a shell takes it; empty if this is of rungs."""
        return shlex.join(self.results[0].command) if self.device is not None else ""

    @property
    def per(self) -> str:
        return "per I/O" if self.device is None else "each time"

    @property
    def subject(self) -> str:
        return f"{self.heading} of {self.command}" if self.command else super().subject

    @property
    def counted(self) -> Sequence[str]:
        return self.counts if self.device is None else self.counts[:1]

    def rows(self) -> list[Row]:
        """Of a program those of its parts. What never began on a kernel has a record with zeroes
        there."""
        if self.device is None:
            return super().rows()
        found = [row for row in super().rows() if not _is_beside(row)]
        whole = next((row.records for row in found if row.op == WHOLE), {})
        for row in found:
            some = next(iter(row.records.values()))
            row.records = {
                name: row.records.get(name) or some.never(whole[name]) for name in self.names
            }
        return found


def _is_beside(row: Row) -> bool:
    return all(one.calls.kind == BESIDE for one in row.records.values())


@dataclass(kw_only=True)
class HostMachine:
    cpu: int
    cpu_model: str
    microcode: str
    cpus: int
    governor: str
    boost: str
    smt_siblings: list[int]
    isolated: str
    guest: bool
    load: float
    mitigations: dict[str, str]
    warnings: list[str]


@dataclass(kw_only=True)
class HardwareResult(Result):
    """Time, and the processor's counters, on the machine itself."""

    heading = "Time"
    profiled_by = "Where the time goes, by perf's samples."
    counts = ("ns", "samples")

    machine: HostMachine
    kernels: list[MeasuredKernel]
    results: list[HardwareRecord]


_KIND = "a result"
_KINDS: Mapping[str, tuple[type[Result], str]] = {
    "exact": (ExactResult, "result.schema.json"),
    "hardware": (HardwareResult, "hardware.schema.json"),
}


def parse(data: object, what: str = "the result") -> Result:
    """The result in *data*, as read from JSON. Raises IopathError if it is not a result."""
    mode = data.get("mode") if isinstance(data, dict) else None
    kind, schema = _KINDS["hardware" if mode == "hardware" else "exact"]
    jsonfile.validate(data, schema, what, _KIND)
    return typed.structure(data, kind)


def make(data: dict[str, Any]) -> Result:
    """The result in *data*, which dump() made. It is not validated against its schema: validation
    is slow, and dump() writes valid results."""
    return typed.structure(data, _KINDS[data["mode"]][0])


def dump(result: object) -> dict[str, Any]:
    """A result or a comparison as it is written to JSON."""
    return typed.unstructure(result)


def load(path: Path) -> Result:
    """The result in a file. Raises IopathError for another file, and for a newer format."""
    data = jsonfile.read(path, _KIND)
    version = jsonfile.schema_of(data)
    if isinstance(data, dict) and data.get("mode") == "program":
        raise IopathError(
            f"{path} has the counts of a program in an older format: count it again with this"
            " iopath"
        )
    if version == 1:
        raise IopathError(
            f"{path} has schema 1, which counts each iteration of a string instruction: measure its"
            " kernels again with this iopath, which counts what a processor retires"
        )
    if version is not None and version > SCHEMA:
        raise IopathError(
            f"{path} has schema {version}, this iopath knows up to {SCHEMA}: use a newer iopath"
        )
    return parse(data, str(path))


def alone(whole: Any, name: str) -> Any:  # noqa: ANN401
    """The result of one kernel of several."""
    return only(whole, (name,))


def only(whole: Any, names: Sequence[str]) -> Any:  # noqa: ANN401
    """The result of some kernels of several."""
    kernels = [kernel for kernel in whole.kernels if kernel.name in names]
    results = [record for record in whole.results if record.kernel.name in names]
    return replace(whole, kernels=kernels, results=results)


def renamed(whole: Any, names: Mapping[str, str]) -> Any:  # noqa: ANN401
    """A result in which the kernels *names* have other ones."""

    def own(part: Any) -> Any:  # noqa: ANN401
        return replace(part, name=names.get(part.name, part.name))

    records = [replace(one, kernel=own(one.kernel)) for one in whole.results]
    return replace(whole, kernels=[own(kernel) for kernel in whole.kernels], results=records)


def join(parts: Sequence[Any]) -> Any:  # noqa: ANN401
    """One result of several, whose kernels have different names. A kernel that was measured with
    something else than the first says so."""
    kernels = []
    for part in parts:
        for kernel in part.kernels:
            if isinstance(kernel, ExactKernel):
                own = part.instrument(kernel)
                kernel = replace(kernel, instrument=own if own != parts[0].instrument() else None)
            kernels.append(kernel)
    return replace(parts[0], kernels=kernels, results=[r for part in parts for r in part.results])


def of_kernel(records: Sequence[Any], name: str) -> list[Any]:
    """The records of one kernel."""
    return [record for record in records if record.kernel.name == name]
