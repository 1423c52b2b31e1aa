# SPDX-License-Identifier: GPL-2.0
"""The metrics of an exact result: what each is, how it is counted, and what is judged."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Boots = Sequence[float]

TERM = re.compile(r"([+-]?) *([\w|]+) *")  # of a sum of functions or counters


class _Sharing(Protocol):
    def total(self, arrangement: str, kind: str) -> Boots | None: ...


class _Profile(Protocol):
    @property
    def lines_noise(self) -> Mapping[str, float] | None: ...


class MetricRecord(Protocol):
    """What a metric reads of a record (result.ExactRecord)."""

    @property
    def boots(self) -> Boots | None: ...
    @property
    def layouts(self) -> Sequence[Boots] | None: ...
    @property
    def mean_with_interrupts(self) -> float: ...
    @property
    def rounds(self) -> int: ...
    @property
    def ios_per_round(self) -> int: ...
    @property
    def long_run_ios(self) -> int | None: ...
    @property
    def mean_boots(self) -> Boots | None: ...
    @property
    def with_deferred_boots(self) -> Boots | None: ...
    @property
    def counts(self) -> Mapping[str, Boots] | None: ...
    @property
    def profile(self) -> _Profile | None: ...
    @property
    def sharing(self) -> _Sharing | None: ...


@dataclass(frozen=True)
class Source:
    """Where the plugin's output has a metric (Documentation/pathcount.rst): one of these."""

    kinds: str = ""  # it counts instructions of these kinds
    tally: str = ""  # a count of the instructions of a block that were executed
    at_end: bool = False  # that is of a block's last instruction, and not of all of them
    round: str = ""  # a count of a round
    places: tuple[str, str] | None = None  # places of a round: their name, and of what
    entered: str = ""  # how often functions are entered in the long run: see counts/requests.py
    later: bool = False  # in the sleep after it, too, where the kernel's own work is not of them
    device: str = ""  # what blknull counts in the long run, per I/O or, behind "/", by another sum


@dataclass(frozen=True)
class Metric:
    """A figure of a record, which has a value in each boot.

    *value* returns these; None if the record lacks them. *noise* says why boots, or builds of the
    same source, differ. Differences up to *resolution*, or to that *share* of the figure, mean
    nothing, even if they repeat; *layout* is what another build of a record's kernel, or one more
    switch, may add to that. *gated*: a general limit judges it. *costly*: it is shown even where
    the number of instructions is the same, because one more costs far more than another
    instruction. *source* is where the plugin's output has it. *sigma* is the known standard
    deviation between boots of a figure that varies around its mean; 0 of others.
    """

    name: str
    unit: str
    counted: str
    noise: str
    resolution: float
    value: Callable[[MetricRecord], Boots | None]
    gated: bool = True
    costly: bool = False
    layout: Callable[[MetricRecord], float] = lambda record: 0.0
    source: Source = Source()
    sigma: float = 0.0
    share: float = 0.0

    @property
    def key(self) -> str:
        """Its name in profiles."""
        return self.name.replace(" ", "_")


# What happens by chance in a long run or after it, which matters if it has fewer I/Os than usual:
# the most instructions of a switch, those of a worker's turn (two switches, and its loop), and so
# many switches, wake-ups or work items.
_SWITCH, _TURN, _STEPS, _USUAL = 3_600, 6_400, 5, 6_000
_FEW = 1_000  # I/Os in all rounds; fewer see too few ticks


def _by_chance(most: float) -> Callable[[MetricRecord], float]:
    """What is *most* in a short long run, per I/O."""

    def per_io(record: MetricRecord) -> float:
        ios = record.long_run_ios
        return most / ios if ios and ios < _USUAL else 0.0

    return per_io


def _counted(
    name: str,
    source: Source,
    counted: str,
    unit: str = "instructions",
    noise: str = "per-CPU caches that are filled again",
    resolution: float = 0.05,
    *,
    gated: bool = True,
    costly: bool = False,
    layout: Callable[[MetricRecord], float] = lambda record: 0.0,
    sigma: float = 0.0,
) -> Metric:
    """A metric that the plugin counts in the short rounds of a single batch, which are few."""
    return Metric(
        name, unit, counted, noise, resolution, lambda record: (record.counts or {}).get(name),
        gated, costly, layout, source, sigma, share=0.001,
    )  # fmt: skip


def _request(
    name: str, entered: str, counted: str, unit: str, resolution: float = 0.02, *,
    gated: bool = True, later: bool = True,
) -> Metric:  # fmt: skip
    """A metric that is known by the functions that are *entered* in the long run and *later*."""
    return _counted(
        name, Source(entered=entered, later=later), counted, unit,
        "turns of tasks, and background work", resolution, gated=gated,
        layout=_by_chance(_STEPS),
    )  # fmt: skip


def _device(
    name: str, device: str, counted: str, unit: str, resolution: float = 0.02, *, gated: bool = True
) -> Metric:
    """A metric that a device of blknull counts in the long run and after."""
    return _counted(
        name, Source(device=device), counted, unit, "turns of tasks", resolution, gated=gated,
        layout=_by_chance(_STEPS),
    )  # fmt: skip


def _ticks(record: MetricRecord) -> float:
    """With few I/Os, interrupts are not judged: the whole figure is noise."""
    few = record.rounds * record.ios_per_round < _FEW
    return record.mean_with_interrupts if few else 0.0


def _code_layout(record: MetricRecord) -> float:
    noise = (record.profile and record.profile.lines_noise) or {}
    return noise.get("code_kernel", 0.0)


# Whether an object is in the first page of its slab decides an instruction each time its slab is
# found. Large bios have vectors in such slabs, and those of a mempool are the same in all layouts.
INSTRUCTIONS = Metric(
    "instructions", "instructions",
    "the guest's clock, median of the rounds without an interrupt",
    "the layout of memory", 0.05, lambda record: record.boots, share=5e-5,
)  # fmt: skip
MEAN = Metric(
    "mean", "instructions", "the plugin, in the task, over the long run",
    "switches to other tasks", 0.5, lambda record: record.mean_boots,
    layout=_by_chance(_SWITCH), sigma=0.05, share=1e-4,
)  # fmt: skip
TOTAL = Metric(
    "total", "instructions",
    "the plugin, in all contexts, over the long run and after",
    "when deferred work is done, and periods of the scheduler", 0.5,
    lambda record: record.with_deferred_boots, layout=_by_chance(_TURN), sigma=0.1, share=1e-4,
)  # fmt: skip
LONG_RUN = (MEAN, TOTAL)
INTERRUPTS = Metric(
    "with interrupts", "instructions",
    "the guest's clock, mean of all rounds with the timer's interrupts",
    "when ticks fall", 5.0,
    lambda record: [record.mean_with_interrupts] if record.layouts else record.boots,
    layout=_ticks, sigma=1.0, share=2e-3,
)  # fmt: skip

METRICS = (
    INSTRUCTIONS,
    *LONG_RUN,
    INTERRUPTS,
    _counted("locked", Source(kinds="L"), "instructions with a lock prefix, and xchg with memory",
        costly=True),
    _counted("indirect", Source(kinds="JC"), "jumps and calls to a computed address", costly=True),
    _counted("returns", Source(kinds="r"), "returns from functions; a retpoline is one"),
    _counted("reads", Source(tally="reads"), "accesses to memory that read", "accesses"),
    _counted("writes", Source(tally="writes"), "accesses to memory that write", "accesses"),
    _counted("string bytes", Source(tally="strings", at_end=True),
        "what repeated string instructions move, set or look at", "bytes", costly=True),
    _counted("timestamps", Source(kinds="T"), "rdtsc, rdtscp, rdpmc", costly=True),
    _counted("serialising", Source(kinds="Si"),
        "cpuid, iret, writes to control registers and their like", costly=True),
    _counted("msrs", Source(kinds="M"), "rdmsr, wrmsr", costly=True),
    _counted("ports", Source(kinds="P"), "in, out", costly=True),
    _counted("fences", Source(kinds="F"), "lfence, mfence, sfence", costly=True),
    _counted("faults", Source(round="faults"), "exceptions that the path raises", "faults"),
    _counted("switches", Source(round="switches"), "switches to another task", "switches",
        "turns of tasks"),
    _counted("code lines", Source(places=("lines", "code")),
        "lines of 64 bytes that instructions lie in, fewest of the rounds", "lines",
        "where functions begin in a line, in another build", gated=False, layout=_code_layout),
    _counted("data lines", Source(places=("lines", "data")),
        "lines of 64 bytes that are accessed, fewest of the rounds", "lines",
        "the layout of memory, and of static data in another build", 3.0, sigma=1.0),
    _counted("calls", Source(kinds="cC"), "direct and indirect calls", gated=False),
    _counted("jumps", Source(kinds="j"), "direct unconditional jumps", gated=False),
    _counted("branches", Source(kinds="b"), "direct conditional branches", gated=False),
    _counted("taken branches", Source(round="taken"),
        "direct conditional branches that were taken", gated=False),
    _counted("code pages", Source(places=("pages", "code")),
        "pages of 4 KiB that instructions lie in, fewest of the rounds", "pages",
        "where functions lie, in another build", 5.0, gated=False),
    _counted("data pages", Source(places=("pages", "data")),
        "pages of 4 KiB that are accessed, fewest of the rounds", "pages",
        "the layout of memory, and of static data in another build", 3.0, gated=False),
    _request("system calls", "do_syscall_64|do_el0_svc|do_trap_ecall_u",
        "system calls of all tasks", "calls", gated=False, later=False),
    _request("bios", "submit_bio_noacct_nocheck|submit_bio_noacct",
        "bios submitted, at all levels, the parts of one that is split included", "bios"),
    _request("splits", "bio_split", "bios that are split in two", "splits"),
    _request("requests", "blk_mq_start_request",
        "requests of blk-mq that a driver starts; a bio that a driver takes itself is none",
        "requests"),
    _request("plug merges", "blk_attempt_plug_merge - blk_mq_sched_bio_merge",
        "bios that are merged with a request of the task's plug", "merges", gated=False),
    _request("scheduler merges", "elv_merged_request + elv_merge_requests",
        "bios and requests that the I/O scheduler merges", "merges", gated=False),
    _request("cache flushes", "flush_end_io",
        "flushes of the device's write cache that blk-mq issues", "flushes"),
    _request("plug flushes", "blk_mq_flush_plug_list",
        "plugs that are flushed, empty ones included", "flushes"),
    _request("queue runs", "blk_mq_sched_dispatch_requests", "runs of a hardware queue", "runs"),
    _request("requeues", "blk_mq_requeue_request", "requests that a driver gives back", "requests"),
    _request("completions", "bio_endio", "bios that end, at all levels", "bios"),
    _request("wake-ups", "try_to_wake_up", "attempts to wake a task", "wake-ups", later=False),
    _request("context switches", "__switch_to", "switches from any task to another", "switches",
        later=False),
    _request("work items", "process_one_work", "work items that kworkers execute", "items",
        later=False),
    _request("interrupts",
        "irq_enter_rcu"
        " - sysvec_apic_timer_interrupt|arch_timer_handler_virt|riscv_timer_interrupt",
        "interrupts but those of the timer", "interrupts", later=False),
    _request("folios", "filemap_add_folio", "folios that are added to the page cache", "folios"),
    _request("readaheads", "page_cache_sync_ra + page_cache_async_ra",
        "times that readahead is asked for pages", "calls"),
    _device("device requests", "reads + writes",
        "reads and writes that blknull is given, if it counts (stats=1)", "requests"),
    _device("sectors", "read_sectors + write_sectors / reads + writes", "sectors of one of them",
        "sectors", gated=False),
    _device("segments", "segments / reads + writes", "contiguous pieces of memory of one of them",
        "segments", gated=False),
    _device("merged bios", "bios - reads - writes", "bios in them beside the first", "bios",
        gated=False),
    _device("out of order", "out_of_order", "those that begin before the end of the one before",
        "requests"),
    _device("device flushes", "flushes", "flushes that blknull is given", "flushes"),
    _device("FUA writes", "fua", "writes with FUA", "writes"),
)  # fmt: skip

# The writes to cache lines that CPUs share, and those of them with a lock prefix.
SHARED_WRITES = ("writes", "locked writes")


def shared(arrangement: str, kind: str) -> Metric:
    """The writes of a *kind* in an arrangement of several CPUs."""
    return Metric(
        f"shared {kind}, {arrangement}", "accesses",
        "the plugin, on several CPUs: writes to lines that another CPU touches",
        "turns of the CPUs", 0.1,
        lambda record: record.sharing.total(arrangement, kind) if record.sharing else None,
    )  # fmt: skip


# The metrics of requests: by entered functions, and by the device.
ENTERED = tuple(metric for metric in METRICS if metric.source.entered)
OF_DEVICE = tuple(metric for metric in METRICS if metric.source.device)
REQUESTS = (*ENTERED, *OF_DEVICE)  # each is missing where it is not counted

# The metrics that the plugin counts in the short rounds, and how it counts them.
COUNTED = tuple(
    metric.name for metric in METRICS if metric.source != Source() and metric not in REQUESTS
)
OF_KIND = {
    kind: tuple(metric for metric in METRICS if kind in metric.source.kinds)
    for kind in {kind for metric in METRICS for kind in metric.source.kinds}
}
TALLIES = tuple(metric for metric in METRICS if metric.source.tally)
OF_ROUND = tuple(metric for metric in METRICS if metric.source.round)
PLACES = tuple(metric for metric in METRICS if metric.source.places)


def of_device(counters: Mapping[str, int], ios: int) -> dict[str, float]:
    """The metrics that a device counts: by its counters in a long run of so many *ios*. There are
    none if it does not count."""
    found = {}
    for metric in OF_DEVICE if counters else ():
        sums = [
            sum((-1 if sign == "-" else 1) * counters[name] for sign, name in TERM.findall(terms))
            for terms in metric.source.device.split("/")
        ]
        found[metric.name] = round(sums[0] / (sums[1] if sums[1:] else ios), 4) if any(sums) else 0
    return found
