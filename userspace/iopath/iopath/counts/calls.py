# SPDX-License-Identifier: GPL-2.0
"""What a program's system calls cost, from what the plugin counted."""

import re
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from iopath.base.arch import Arch
from iopath.base.errors import IopathError
from iopath.counts import parts as flat
from iopath.counts.plugin_output import Bucket, Output
from iopath.counts.requests import Functions
from iopath.counts.symbols import KERNEL, Symbols
from iopath.results.layers import Layers
from iopath.results.profiles import COUNTS, ExactFunction, ExactProfile
from iopath.results.result import ExactRecord, KernelName
from iopath.results.symbol import Symbol, plain
from iopath.results.syscalls import (
    BESIDE,
    CALL,
    EVERY,
    FAULT,
    IO,
    IO_CALLS,
    LATER,
    NEW_PROCESSES,
    OWN,
    START,
    START_EXIT,
    WHOLE,
    Calls,
    sum_of,
)

_VECTOR = 128  # bytes between entries in a table of vectors
_VECTORS = ("exception", "interrupt", "fast interrupt", "error")  # four times

_NEW_TASK = "ret_from_fork_asm"  # where a kernel has it, it calls the other function

# Kernels before 6.2 keep the pages of a program that has ended on the CPU's list until another task
# frees a page. This task is iopath's own process, which waits for the program.
_FREED_LATER = ("free_pcppages_bulk", "__free_one_page")

_OTHER = "no known call"
_OWN = "its own code"
_IDLE, _RUNNER = "idle", "iopath's own process"
_PROGRAM = "program [user]"

# Kernel threads by the function that each of them stays in.
_THREADS = {
    "do_idle": _IDLE,
    "worker_thread": "kworker",
    "run_ksoftirqd": "ksoftirqd",
    "rcu_gp_kthread": "rcu_preempt",
    "rcu_gp_fqs_loop": "rcu_preempt",
    "nocb_gp_wait": "rcuog",
    "rcu_nocb_gp_kthread": "rcuog",
    "rcu_nocb_cb_kthread": "rcuop",
    "rcu_tasks_kthread": "rcu_tasks",
    "kthreadd": "kthreadd",
    "kjournald2": "jbd2",
    "kswapd": "kswapd",
    "kcompactd": "kcompactd",
    "khugepaged": "khugepaged",
    "migration_cpu_stop": "migration",
    "cpu_stopper_thread": "migration",
    "io_wq_worker": "io_uring worker",
    "io_sq_thread": "io_uring poller",
    "irq_thread": "interrupt thread",
    "kdamond_fn": "kdamond",
    "loop_process_work": "loop",
}
_THREAD = "another kernel thread"
# The kernel's own work, which comes by its clock: it does not belong to the program.
_CLOCKWORK = (_IDLE, "rcu_preempt", "rcu_tasks", "kcompactd", "khugepaged", "migration", "kdamond")


def _symbols(kallsyms: str) -> Iterator[tuple[int, str]]:
    for line in kallsyms.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in "tTwW":
            yield int(fields[0], 16), fields[2]


def patterns(arch: Arch) -> tuple[tuple[str, str], ...]:
    """The functions that the plugin needs to know, by what they do (Documentation/pathcount.rst).
    If there are no functions by which exceptions enter, v is the table of vectors."""
    return (
        ("c", rf"{arch.syscall_prefix}\w+"),
        ("x", r"asm_exc_\w+") if arch.exceptions else ("v", "vectors"),
        ("s", r"__do_softirq|handle_softirqs"),
        ("f", r"ret_from_fork(?:_asm)?"),
    )


def functions(kallsyms: str, arch: Arch) -> str:
    """The file that tells the plugin where these functions are."""
    named = list(_symbols(kallsyms))
    names = {name for _, name in named}
    missing = dict(patterns(arch))
    lines: list[str] = []
    for address, name in named:
        for kind, pattern in patterns(arch):
            if not re.fullmatch(pattern, name):
                continue
            if kind == "f" and _NEW_TASK in names and name != _NEW_TASK:
                continue
            missing.pop(kind, None)
            lines += _lines(kind, address, arch)
    if missing:
        pattern = next(iter(missing.values()))
        raise IopathError(
            f"the kernel's /proc/kallsyms has no function {pattern}: run counts programs on kernels"
            " with CONFIG_KALLSYMS"
        )
    return "".join(lines)


def _lines(kind: str, address: int, arch: Arch) -> list[str]:
    """What the plugin is told of a function; or of each vector of a table."""
    if kind != "v":
        return [f"{kind} {address:#x}\n"]
    vectors = [address + _VECTOR * number for number in range(4 * len(_VECTORS))]
    return [f"{'x' if arch.is_exception(one, '') else 'i'} {one:#x}\n" for one in vectors]


@dataclass(frozen=True)
class Started:
    """What a part of a program executed in a boot: how often it began, its instructions, those of
    the program itself since the call before, and its instructions by function. *counts* are the
    metrics of requests, which the whole has."""

    times: int
    instructions: int
    before: int = 0
    functions: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)

    @property
    def each(self) -> float:
        """Instructions each time; all of what has no beginning."""
        return self.instructions / max(self.times, 1)


Boot = dict[tuple[str, str], Started]  # by the kind and the name of the part


@dataclass(frozen=True)
class _Counted:
    """A bucket, and its instructions by function."""

    bucket: Bucket
    functions: dict[str, int]


def boot(counted: Output, symbols: Symbols, arch: Arch, ios: int = 0) -> Boot:
    """What a boot counted: the whole, and its parts. *ios* are the I/Os that the program says it
    did. Raises IopathError if they do not add up."""
    region = counted.calls
    if region is None:
        raise IopathError("pathcount counted no program")
    buckets = _by_function(counted, symbols)
    _check(counted, buckets)
    parts: dict[tuple[str, str], list[_Counted]] = defaultdict(list)
    for one in buckets:
        if one.bucket.instructions or (one.bucket.times and one.bucket.kind in "ce"):
            parts[_name(one, symbols, arch)].append(one)
    made = {key: _part(each) for key, each in parts.items()}
    _count_freed_pages(made)
    order = (CALL, OWN, FAULT, LATER, BESIDE)
    keys = sorted(made, key=lambda key: (order.index(key[0]), -made[key].instructions, key[1]))
    return complete({key: made[key] for key in keys}, ios, _requests(counted, symbols, parts))


def _requests(
    counted: Output, symbols: Symbols, parts: Mapping[tuple[str, str], Sequence[_Counted]]
) -> dict[str, float]:
    """The metrics of requests of the whole."""
    known = Functions(symbols)
    beside = {id(one.bucket) for (kind, _), each in parts.items() if kind == BESIDE for one in each}
    entered: dict[str, float] = defaultdict(float)
    for part in counted.calls.counts if counted.calls else ():
        name = known.names.get(counted.blocks[part.block].address)
        if name and part.instructions and id(counted.buckets[part.context]) not in beside:
            entered[name] += part.times
    return known.metrics(entered, entered)


def _count_freed_pages(parts: Boot) -> None:
    """Count what frees the program's pages after its end with exit_group, which has left them."""
    ended, runner = parts.get((CALL, "exit_group")), parts.get((BESIDE, _RUNNER))
    if not ended or not runner:
        return
    freed = {
        name: count
        for name, count in runner.functions.items()
        if plain(name.partition(" ")[0]) in _FREED_LATER
    }
    for key, part, sign in (((CALL, "exit_group"), ended, 1), ((BESIDE, _RUNNER), runner, -1)):
        functions = dict(part.functions)
        for name, count in freed.items():
            functions[name] = functions.get(name, 0) + sign * count
        parts[key] = replace(
            part, instructions=part.instructions + sign * sum(freed.values()),
            functions=_largest_first(functions),
        )  # fmt: skip


def complete(parts: Boot, ios: int = 0, requests: Mapping[str, float] | None = None) -> Boot:
    """The *parts* of a boot, and before them their sums: the whole of those that are not beside,
    what does I/O, for each of the *ios*, and what starts and ends processes."""
    found = {
        (EVERY, WHOLE): _sum([one for (kind, _), one in parts.items() if kind != BESIDE], 1),
        (IO, IO_CALLS): _sum([one for key, one in parts.items() if sum_of(*key) == IO], ios),
        (START, START_EXIT): _sum([one for key, one in parts.items() if sum_of(*key) == START], 1),
    }
    found[EVERY, WHOLE] = replace(found[EVERY, WHOLE], before=0, counts=requests or {})
    return {key: one for key, one in found.items() if one.instructions} | parts


def _sum(parts: Sequence[Started], times: int) -> Started:
    functions: dict[str, int] = defaultdict(int)
    for part in parts:
        for function, instructions in part.functions.items():
            functions[function] += instructions
    return Started(
        times, sum(one.instructions for one in parts), sum(one.before for one in parts),
        _largest_first(functions),
    )  # fmt: skip


def _largest_first(functions: Mapping[str, int]) -> dict[str, int]:
    ordered = sorted(functions.items(), key=lambda item: (-item[1], item[0]))
    return {function: instructions for function, instructions in ordered if instructions}


def _by_function(counted: Output, symbols: Symbols) -> list[_Counted]:
    found: list[dict[str, int]] = [defaultdict(int) for _ in counted.buckets]
    known: dict[int, list[str]] = {}
    for part in counted.calls.counts if counted.calls else ():
        block, functions = counted.blocks[part.block], found[part.context]
        if block.address < KERNEL:
            functions[_PROGRAM] += part.instructions * part.times
            continue
        if part.block not in known:
            known[part.block] = [one.text for one in symbols.find_each(block.addresses)]
        for name in known[part.block][: part.instructions]:
            functions[name] += part.times
    return [
        _Counted(bucket, dict(by_function))
        for bucket, by_function in zip(counted.buckets, found, strict=True)
    ]


def _check(counted: Output, buckets: Sequence[_Counted]) -> None:
    """Check that each instruction that began is in one bucket, except tried ones and iterations."""
    region = counted.calls
    if region is None:
        return
    executed = region.begun - region.tried - region.iterations
    by_function = sum(sum(one.functions.values()) for one in buckets)
    total = sum(one.bucket.instructions for one in buckets)
    user = sum(one.bucket.instructions for one in buckets if one.bucket.kind == "u")
    before = sum(one.bucket.before for one in buckets) + region.last
    if not executed == total == by_function or user != before:
        raise IopathError(
            f"the parts of the program do not add up: {executed} instructions were executed,"
            f" {total} are in parts, {by_function} in functions; {user} in user mode, {before}"
            " before calls"
        )


def _name(one: _Counted, symbols: Symbols, arch: Arch) -> tuple[str, str]:
    """The kind and the name of the part that a bucket belongs to."""
    bucket = one.bucket
    match bucket.kind:
        case "u":
            return OWN, _OWN
        case "c":
            return CALL, symbols.find(bucket.address).name.removeprefix(arch.syscall_prefix)
        case "o":
            return CALL, _OTHER
        case "b":
            return LATER, NEW_PROCESSES
        case "s":
            return LATER, "soft interrupts"
        case "t":
            if bucket.user:
                return BESIDE, _RUNNER
            executed = {plain(function.partition(" ")[0]) for function in one.functions}
            named = (name for function, name in _THREADS.items() if function in executed)
            name = next(named, _THREAD)
            return (BESIDE if name in _CLOCKWORK else LATER), name
    entry = symbols.find(bucket.address).name
    exception = arch.is_exception(bucket.address, entry)
    if not arch.exceptions:
        entry = _VECTORS[bucket.address // _VECTOR % len(_VECTORS)]
    name = re.sub(r"^asm_(?:exc|sysvec|common)_", "", entry).replace("_", " ")
    if exception:
        return (BESIDE, _RUNNER) if bucket.beside else (FAULT, name)
    kind = BESIDE if flat.is_tick(entry) else LATER
    return kind, f"interrupt: {name.removesuffix(' interrupt')}".removesuffix(": interrupt")


def _part(each: Sequence[_Counted]) -> Started:
    functions: dict[str, int] = defaultdict(int)
    for one in each:
        for function, instructions in one.functions.items():
            functions[function] += instructions
    return Started(
        sum(one.bucket.times for one in each),
        sum(one.bucket.instructions for one in each),
        sum(one.bucket.before for one in each),
        _largest_first(functions),
    )


def records(
    kernel: KernelName, command: Sequence[str], scenario: str, boots: Sequence[Boot], layers: Layers
) -> list[ExactRecord]:
    """The records of a program's *command*: the whole, and its parts. Figures are means of the
    boots, functions those of the first one."""
    none = Started(0, 0)
    found = []
    for key in dict.fromkeys(key for boot in boots for key in boot):
        counted = [boot.get(key, none) for boot in boots]
        each = [one.each for one in counted]
        mean, is_whole = statistics.fmean(each), key[0] == EVERY
        found.append(
            ExactRecord(
                kernel=kernel, rung="", op=key[1], block_size=0, instructions_per_io=mean,
                spread=0.0, boots=each, boot_spread=max(each) - min(each),
                mean_with_interrupts=mean, rounds=len(boots), rounds_with_interrupts=0,
                ios_per_round=1, batch=1, command=[*command] if is_whole else [],
                scenario=scenario if is_whole else None, profile=_profile(counted[0], layers),
                counts=_counts(counted),
                calls=Calls(
                    kind=key[0],
                    times=[one.times for one in counted],
                    instructions=[one.instructions for one in counted],
                    before=[one.before for one in counted],
                ),
            )
        )  # fmt: skip
    return found


def _counts(counted: Sequence[Started]) -> dict[str, list[float]] | None:
    """The metrics that a part has, in each boot."""
    named = {name: [one.counts.get(name, 0) for one in counted] for name in counted[0].counts}
    return named or None


def _profile(part: Started, layers: Layers) -> ExactProfile:
    """Instructions by function, each time. Nothing else is counted, and no call path is known."""
    zeroes: dict[str, float] = dict.fromkeys(COUNTS, 0.0)
    functions = []
    sums: dict[str, float] = defaultdict(float)
    for text, instructions in part.functions.items():
        name, _, module = text.partition(" ")
        symbol = Symbol(name, module.strip("[]"))
        layer = layers.of(symbol)
        each = instructions / max(part.times, 1)
        sums[layer] += each
        functions.append(
            ExactFunction(
                name=symbol.name, module=symbol.module, layer=layer,
                **{**zeroes, "instructions": each},
            )
        )  # fmt: skip
    user = sum(one.instructions for one in functions if one.module == "user")
    return ExactProfile(
        unmatched_returns=0, faults=0.0, switches=0.0, user=user, kernel=part.each - user,
        **{**zeroes, "instructions": part.each},
        layers={name: sums[name] for name in layers.names if name in sums}, functions=functions,
        stacks=[(one.symbol.text, one.instructions) for one in functions],
        lines=dict.fromkeys(("code_user", "code_kernel", "data_user", "data_kernel"), 0.0),
    )  # fmt: skip
