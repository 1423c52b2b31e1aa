# SPDX-License-Identifier: GPL-2.0
"""The types of results, and how they are read from files.

There are two kinds of result: an exact one, counted in an emulated guest, and one of a machine, in
time.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Generic, TypeVar

from iopath.base import typed
from iopath.base.arch import ARCH_NAMES
from iopath.base.errors import IopathError
from iopath.base.typed import JsonObject
from iopath.results import jsonfile
from iopath.results.iorequests import Requests
from iopath.results.model import Model
from iopath.results.ops import OF_RUNG
from iopath.results.profiles import COUNTS, ExactProfile, SampledProfile
from iopath.results.schema import Digest, Natural, NotNegative, Positive, Several
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

# By how much the total may differ from the path by noise alone, in instructions per I/O: the
# beginning of a round weighs more in the path, and the background varies.
MORE = 5.0

# The task that does the I/O, and the parts of the total that have no name of their own.
TASK, REST = "task", "rest"

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
    release: Annotated[str, "As uname -r prints it."]
    version: Annotated[str | None, "Of a guest's kernel: the package's version."] = None
    origin: Annotated[str | None, "Of a guest's kernel: the suite, or the tree."] = None
    arch: Annotated[
        str, "Its architecture, as QEMU calls it; x86_64 if it is not given.", ("enum", ARCH_NAMES)
    ] = "x86_64"
    banner: Annotated[str, "/proc/version."]
    compiler: Annotated[str, "The compiler of the kernel."]
    cpu_model: Annotated[str | None, "A guest's CPU."] = None
    cmdline: Annotated[str, "/proc/cmdline."]
    clocksource: str
    config: Annotated[
        dict[str, str], "The kernel's configuration without CONFIG_; empty if not known."
    ]
    digests: Annotated[
        dict[str, str] | None,
        "Of a guest: SHA-256 of the kernel, its configuration and the modules.",
    ] = None
    modules: Annotated[dict[str, dict[str, str]], "The project's modules as they are loaded."]
    zero_fill: Annotated[bool | None, "Of a guest: blknull fills memory that is read."] = None
    coherent: Annotated[
        bool | None, "Of a guest: biogen keeps coherent with the page cache of its block device."
    ] = None
    quiet_after_seconds: Annotated[
        int | None, "Of a guest: seconds of its time until its background work ended."
    ] = None

    @property
    def shims(self) -> str:
        """The compatibility shims that its modules use."""
        return ", ".join(
            filter(None, (facts.get("iopath_shims", "") for facts in self.modules.values()))
        )


@dataclass(kw_only=True)
class QemuVersion:
    version: str
    digest: Digest


@dataclass(kw_only=True)
class GuestMachine:
    cpu: Annotated[str, "CPU model, as QEMU names it."]
    memory_mib: Positive
    cmdline: Annotated[str, "Kernel command line, without the words that iopath adds."]
    seed: Annotated[int, "Seed of everything random in the guest."]


@dataclass(kw_only=True)
class Instrument:
    """What a kernel was measured with."""

    qemu: QemuVersion
    machine: GuestMachine
    programs: dict[str, Digest]
    source: Digest
    device: str | None = None


@dataclass(kw_only=True)
class ExactKernel(MeasuredKernel):
    """The kernel of an exact result."""

    arch: Annotated[str, ("pattern", "^[a-z0-9_]+$")] = "x86_64"
    version: str = field()
    origin: str = field()
    cpu_model: str = field()
    digests: Annotated[dict[str, Digest], ("required", ("vmlinuz", "config"))] = field()
    zero_fill: bool = field()
    coherent: bool = field()
    quiet_after_seconds: Natural = field()
    instrument: Annotated[Instrument | None, "What it was measured with, if not as the first."] = (
        None
    )


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
    op: Annotated[str, "The operation; of a program the part, which has no rung."]
    block_size: Annotated[Natural, "Bytes; 0 where there is no I/O."]
    command: Annotated[list[str], "The command that ran in the guest."]


@dataclass(kw_only=True)
class ExactRecord(RungRecord):
    """Instructions per I/O, with the figures of each boot; or of a part of a program, whose rung
    is empty and whose operation is its name, instructions each time."""

    KEYWORDS: ClassVar = {
        "if": {"not": {"required": ["calls"]}},
        "then": {"properties": {"op": {"enum": [*OF_RUNG]}}},
    }

    instructions_per_io: Annotated[
        NotNegative, "Median of the rounds without an interrupt: user and kernel together."
    ]
    spread: Annotated[
        NotNegative,
        "Difference of the largest and the smallest of the same rounds, in instructions per I/O.",
    ]
    boots: Annotated[
        Several[NotNegative], "The figure of each boot; instructions_per_io is their median."
    ]
    boot_spread: Annotated[
        NotNegative, "Difference of the largest and the smallest figure of the boots."
    ]
    layouts: Annotated[
        Several[list[float]] | None,
        "Of each boot, the lowest of the rounds in each layout of memory and files that has "
        "two or more without an interrupt, in instructions per I/O. The first layout is the "
        "kernel's own. A boot that checks another one has its figure if no layout of it has.",
    ] = None
    mean: Annotated[
        NotNegative | None,
        "Mean of the long run: instructions of the task that does the I/O, with page faults "
        "and without interrupts. Median of the boots: of an even number the lower of the "
        "middle two.",
    ] = None
    mean_boots: Annotated[
        Several[NotNegative] | None, "The mean of each boot that has a long run."
    ] = None
    with_deferred: Annotated[
        float | None,
        "The mean plus the work of interrupts, callbacks and other tasks for the I/Os of "
        "the long run, until no work is left. The work of an idle guest in the same time is "
        "subtracted. Mean of the boots.",
    ] = None
    with_deferred_boots: Annotated[Several[float] | None, "with_deferred of these boots."] = None
    counts: Annotated[
        dict[str, Several[float]] | None,
        "The other metrics per I/O (Documentation/metrics.rst), each with its value in each "
        "boot, or in the first one alone: what a short round counts, where there are layouts.",
    ] = None
    scenario: Annotated[
        str | None, "Digest of the rung: its program, files, modules and steps."
    ] = None
    on: Annotated[
        str | None, "What the rung does I/O on: a device or a file, modules, blknull's mode."
    ] = None
    all_parts: Annotated[
        dict[str, float] | None,
        "Who executed with_deferred, in instructions per I/O, mean of the boots: the task, "
        "interrupts, soft interrupts, kworkers, other threads (Documentation/metrics.rst). "
        "They add up to it.",
    ] = None
    long_run_ios: Annotated[Positive | None, "I/Os in the long run."] = None
    drain_ms: Annotated[
        Positive | None,
        "How long the guest was idle after the long run, so that what was put off is in "
        "with_deferred, in ms of its time.",
    ] = None
    mean_with_interrupts: Annotated[NotNegative, "Mean of instructions per I/O over all rounds."]
    rounds: Positive
    rounds_with_interrupts: Natural
    ios_per_round: Positive
    batch: Annotated[Positive, "I/Os submitted at a time."]
    profile: Annotated[
        ExactProfile | None,
        "Counts by function in the first boot, of the round of median length among "
        "those without an interrupt. They add up to the counts of the profile.",
    ] = None
    cpus: Annotated[int | None, "CPUs of the guest that sharing is of.", ("minimum", 2)] = None
    sharing: Annotated[Sharing | None, "The rung on several CPUs at the same time."] = None
    model: Annotated[
        Model | None,
        "What a modelled CPU would have missed in a short round, in the first boot: "
        "as the rounds before left it, and after other work has taken its L1 caches and "
        "TLBs.",
    ] = None
    requests: Annotated[Requests | None, "What became of the I/Os of the long run."] = None
    calls: Annotated[
        Calls | None,
        "Of a part of a program, in each boot. boots has instructions divided by times.",
    ] = None

    # Two figures are judged and shown by these names everywhere.

    @property
    def path(self) -> float:
        """What a usual I/O executes in its task."""
        return self.instructions_per_io

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
        """Whether an I/O has more work than the path, beyond noise: others do it, or the task does
        it rarely or later."""
        if self.total is None or self.total - self.path <= MORE:
            return False
        parts = self.all_parts or {TASK: self.total}
        return any(count > MORE + self.path * (name == TASK) for name, count in parts.items())

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

    median: Annotated[NotNegative, "Median of the samples."]
    low: Annotated[float, "Where the median's 95 % confidence interval begins."]
    high: Annotated[float, "Where it ends."]
    noise: Annotated[
        NotNegative,
        "Difference of the medians of two series of the same measurement, whose samples alternate.",
    ]
    boots: Annotated[Several[NotNegative] | None, "Of a guest: the median of each boot."] = None


@dataclass(kw_only=True)
class HardwareRecord(RungRecord):
    """Time and counters per I/O, or a profile of time."""

    KEYWORDS: ClassVar = {
        "anyOf": [
            {"required": ["figures", "absent", "samples", "rounds", "ios_per_round", "batch"]},
            {"required": ["profile"]},
        ]
    }

    op: Annotated[str, ("enum", OF_RUNG)]
    figures: Annotated[
        dict[str, TimeFigure] | None,
        "Per I/O: ns, and the counters that the processor has.",
        (
            "propertyNames.enum",
            (
                "ns",
                "cycles",
                "instructions",
                "instructions_kernel",
                "cache_misses",
                "branch_misses",
            ),
        ),
        ("required", ("ns",)),
    ] = None
    absent: Annotated[dict[str, str] | None, "Counters that are missing, and why."] = None
    requests: Annotated[
        dict[str, float] | None,
        "The metrics of requests that a device of blknull counts (stats=1), of the last sample.",
    ] = None
    samples: Annotated[int | None, "Runs of the loop.", ("minimum", 6)] = None
    rounds: Annotated[Positive | None, "In each sample, whose time is their median."] = None
    ios_per_round: Positive | None = None
    batch: Annotated[Positive | None, "I/Os submitted at a time."] = None
    profile: Annotated[
        SampledProfile | None,
        "Time per I/O by function, in proportion to the samples of the rounds.",
    ] = None


AnyRecord = ExactRecord | HardwareRecord
Record = TypeVar("Record", bound=AnyRecord)


@dataclass
class Row(OfRung, Generic[Record]):
    """One rung, operation and block size, with the record of each kernel that has it."""

    rung: str
    op: str
    block_size: int
    records: dict[str, Record] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return " ".join(filter(None, [super().title, self.size]))


@dataclass(kw_only=True)
class Result:
    """What is common to both kinds of result."""

    heading: ClassVar[str]  # of what is measured per I/O
    profiled_by: ClassVar[str]  # how a profile is made
    counts: ClassVar[tuple[str, ...]]  # of a function in a profile; the first one is shown

    schema: Annotated[
        int,
        "Version of this format. It rises when a field changes its meaning or goes away.",
        ("const", 2),
    ]
    program: Annotated[str, "The program that wrote the file."]
    mode: Annotated[str, "exact: counted in an emulated guest.", ("enum", ("exact",))]
    machine: "GuestMachine | HostMachine"
    programs: Annotated[dict[str, Digest], "SHA-256 of the programs that ran in the guest."]
    kernels: Sequence[MeasuredKernel]
    results: Sequence[AnyRecord]

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

    # compare adds its verdict for each rung and each metric.
    KEYWORDS: ClassVar = {"allOf": [{"properties": {"comparison": {"type": "object"}}}]}

    qemu: Annotated[
        QemuVersion,
        "The emulator: its version, and a SHA-256 of its program, its accelerator and its "
        "firmware.",
    ]
    machine: Annotated[GuestMachine, "The guest's hardware."]
    source: Annotated[Digest, "SHA-256 of the modules' source."]
    kernels: Annotated[
        Several[ExactKernel], "The measured kernels, one for each name on the command line."
    ]
    results: Annotated[
        list[ExactRecord],
        "The figures, one record for each kernel, rung, operation and block size.",
    ]
    device: Annotated[
        str | None, "Only of a program: what it ran on, as --device or --mount names it."
    ] = None

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

    def rows(self) -> list[Row[ExactRecord]]:
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


def _is_beside(row: Row[ExactRecord]) -> bool:
    return all(one.calls.kind == BESIDE for one in row.records.values())


@dataclass(kw_only=True)
class HostMachine:
    cpu: Annotated[Natural, "The CPU that was measured on."]
    cpu_model: str
    microcode: str
    cpus: Annotated[Positive, "CPUs that iopath may use."]
    governor: Annotated[str, "Frequency governor; none if the frequency does not change."]
    boost: Annotated[str, ("enum", ("on", "off", "unknown"))]
    smt_siblings: Annotated[list[int], "CPUs on the same core."]
    isolated: Annotated[str, "CPUs kept free by isolcpus."]
    guest: Annotated[bool, "Whether the machine is virtual."]
    load: Annotated[NotNegative, "Load average of the last minute."]
    mitigations: Annotated[dict[str, str], "Contents of /sys/devices/system/cpu/vulnerabilities."]
    warnings: Annotated[list[str], "Settings that make figures vary."]


@dataclass(kw_only=True)
class HardwareResult(Result):
    """Time, and the processor's counters, on the machine itself."""

    heading = "Time"
    profiled_by = "Where the time goes, by perf's samples."
    counts = ("ns", "samples")

    mode: Annotated[str, "hardware: measured, not counted.", ("const", "hardware")]
    machine: Annotated[HostMachine, "Properties of the machine that affect time."]
    kernels: Annotated[
        Several[MeasuredKernel], "The running kernel; several once results are merged."
    ]
    results: Annotated[
        list[HardwareRecord],
        "One record for each rung, operation and block size: figures, or a profile.",
    ]


_KIND = "a result"
KINDS: Mapping[str, type[Result]] = {"exact": ExactResult, "hardware": HardwareResult}


def parse(data: object, what: str = "the result") -> Result:
    """The result in *data*, as read from JSON. Raises IopathError if it is not a result."""
    mode = data.get("mode") if isinstance(data, dict) else None
    kind = KINDS["hardware" if mode == "hardware" else "exact"]
    jsonfile.validate(data, kind, what, _KIND)
    return typed.structure(data, kind)


def make(data: JsonObject) -> Result:
    """The result in *data*, which dump() made. It is not validated against its schema: validation
    is slow, and dump() writes valid results."""
    return typed.structure(data, KINDS[data["mode"]])


def dump(result: object) -> JsonObject:
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


Some = TypeVar("Some", bound=Result)
Named = TypeVar("Named", KernelName, MeasuredKernel)


def alone(whole: Some, name: str) -> Some:
    """The result of one kernel of several."""
    return only(whole, (name,))


def only(whole: Some, names: Sequence[str]) -> Some:
    """The result of some kernels of several."""
    kernels = [kernel for kernel in whole.kernels if kernel.name in names]
    results = [record for record in whole.results if record.kernel.name in names]
    return replace(whole, kernels=kernels, results=results)


def renamed(whole: Some, names: Mapping[str, str]) -> Some:
    """A result in which the kernels *names* have other ones."""

    def own(part: Named) -> Named:
        return replace(part, name=names.get(part.name, part.name))

    records = [replace(one, kernel=own(one.kernel)) for one in whole.results]
    return replace(whole, kernels=[own(kernel) for kernel in whole.kernels], results=records)


def join(parts: Sequence[Some]) -> Some:
    """One result of several, whose kernels have different names. A kernel that was measured with
    something else than the first says so."""
    kernels = []
    for part in parts:
        for kernel in part.kernels:
            if isinstance(part, ExactResult):
                own = part.instrument(kernel)
                kernel = replace(kernel, instrument=own if own != parts[0].instrument() else None)
            kernels.append(kernel)
    return replace(parts[0], kernels=kernels, results=[r for part in parts for r in part.results])


def of_kernel(records: Sequence[Record], name: str) -> list[Record]:
    """The records of one kernel."""
    return [record for record in records if record.kernel.name == name]
