# SPDX-License-Identifier: GPL-2.0
"""Which cache lines an I/O shares, where a rung runs on several CPUs at the same time.

The CPUs of the emulator take turns. So it is exact which CPU touches which line, and how many
instructions it executes, but not how long a CPU waits for another: the plugin leaves out the rounds
in which one waited.
"""

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from iopath.base import typed
from iopath.base.arch import Arch
from iopath.base.errors import IopathError
from iopath.counts import plugin_output
from iopath.counts.memory import Memory, Place
from iopath.counts.plugin_output import Access
from iopath.counts.sharing_counts import SharingRegion, regions
from iopath.counts.symbols import Symbols
from iopath.results.shared import (
    NEIGHBOURS,
    Arrangement,
    LineAccess,
    SharedFigure,
    SharedLine,
    Sharing,
)
from iopath.rungs.runs import Run
from iopath.rungs.together import Shared, regions_of

RECORD = "sharing"  # the name of the record with what was found

_STACK = 14  # bits of an address within a stack
_OWN = 0.75  # the least share of the accesses to a stack that its own CPU makes
_SAME = 0.9  # the least share of the instructions that are the same on all CPUs
_NOBODY = -1
_FRAMES = 50  # instructions that access a stack, at least


def kind_of(accesses: Sequence[Access]) -> str | None:
    """How CPUs share a line: "true" if one writes bytes that another touches, "false" if they touch
    different bytes; None if they do not share it."""
    written: dict[int, int] = defaultdict(int)
    touched: dict[int, int] = defaultdict(int)
    for access in accesses:
        touched[access.cpu] |= access.bytes
        if access.store:
            written[access.cpu] |= access.bytes
    pairs = [(one, other) for one in written for other in touched if one != other]
    if not pairs:
        return None
    return "true" if any(written[one] & touched[other] for one, other in pairs) else "false"


@dataclass(kw_only=True)
class InBoot:
    """An arrangement in one boot, and the lines that it shares; or why it *failed*."""

    arrangement: Arrangement | None = None
    lines: list[SharedLine] = field(default_factory=list)
    failed: str | None = None


Boot = Mapping[str, InBoot]  # by region


def found(
    shared: Sequence[Shared], counts: Sequence[str], kallsyms: str, ram: Path, arch: Arch
) -> dict[str, object]:
    """What the runs of a guest share, by region, from what the plugin counted and the guest's
    memory: JSON that read() reads."""
    symbols = Symbols(kallsyms)
    counted = regions(plugin_output.read(counts), symbols)
    ram_ = Memory(ram, kallsyms, arch)
    return typed.unstructure(
        {str(run.region): _found(run, counted.get(run.region), symbols, ram_) for run in shared}
    )


def read(data: object) -> Boot:
    """What found() returned."""
    return typed.structure(data, dict[str, InBoot])


def merged(boots: Sequence[Boot], run: Run) -> Sharing:
    """What a record has of a run: its arrangements, and the lines that are shared in each, in all
    boots or, since the layout of memory put them together, in some."""
    regions = [region for region in regions_of(run) if region in boots[0]]
    regions = [region for region in regions if all(boot[region].arrangement for boot in boots)]
    named = [
        {_name(line): line for region in regions for line in boot[region].lines} for boot in boots
    ]
    every = {name: line for found in named[::-1] for name, line in found.items()}
    in_all = [name for name in named[0] if all(name in found for found in named)]
    return Sharing(
        arrangements=[part for region in regions if (part := boots[0][region].arrangement)],
        lines=[
            replace(every.pop(name), spread=_spread([found[name] for found in named]))
            for name in in_all
        ],
        in_some_boots=list(every.values()),
        figures=[
            SharedFigure(arrangement=arrangement, of=of, metric=metric, boots=values)
            for (arrangement, of, metric), values in _figures(boots, regions).items()
        ],
    )


_Name = tuple[str, str, str]  # arrangement, structure or CPU, metric


def _figures(boots: Sequence[Boot], regions: Sequence[str]) -> dict[_Name, list[float]]:
    """The figures that are judged, in each boot; 0 where a boot lacks one."""
    each = [
        dict(figure for region in regions for figure in _of_boot(boot[region])) for boot in boots
    ]
    names = dict.fromkeys(name for found in each for name in found)
    return {name: [round(found.get(name, 0.0), 4) for found in each] for name in names}


def _of_boot(region: InBoot) -> Iterator[tuple[_Name, float]]:
    """The figures of an arrangement in a boot."""
    part = region.arrangement
    assert part
    name = part.name
    for cpu, instructions in enumerate(part.instructions_per_io):
        yield (name, f"CPU {cpu}", "instructions"), instructions
        yield (name, f"CPU {cpu}", "instructions in calls"), (part.called_per_io or ())[cpu]
        left_out = part.rounds_left_out[cpu]
        rounds = left_out + part.rounds[cpu]
        yield (name, f"CPU {cpu}", "rounds left out"), left_out / rounds
    times: dict[tuple[str, str], dict[int, float]] = defaultdict(lambda: defaultdict(float))
    lines: dict[str, int] = defaultdict(int)
    for line in region.lines:
        for of in sorted({structure(row) for row in line.writes}):
            lines[of] += line.lines
        for row in line.reads:
            times[structure(row), "accesses"][row.cpu] += row.per_io
        for row in line.writes:
            metrics = ["accesses", "writes"]
            metrics += ["locked writes"] if row.locked else []
            metrics += ["writes of true sharing"] if line.kind == "true" else []
            for metric in metrics:
                times[structure(row), metric][row.cpu] += row.per_io
    for (of, metric), by_cpu in times.items():
        yield (name, of, metric), sum(by_cpu.values()) / len(part.instructions_per_io)
    for of, count in lines.items():
        yield (name, of, "lines"), float(count)


def structure(row: LineAccess) -> str:
    """What an access touches, without its field and CPU: "filp: struct file" of "filp: struct
    file.f_ref". Pages that nothing names are told apart by the function."""
    name = re.split(r" of CPU |[.+\[{]", row.at.replace(" [", "\0"))[0].replace("\0", " [")
    return f"page: {row.function}" if name == "page" else name


def _spread(lines: Sequence[SharedLine]) -> float:
    """How much the reads or writes per I/O of a line differ between boots."""
    counts = [
        [line.per_io(line.reads) for line in lines],
        [line.per_io(line.writes) for line in lines],
    ]
    return round(max(max(found) - min(found) for found in counts), 4)


def failures(boots: Sequence[Boot], run: Run) -> list[str]:
    """Why arrangements of a run have no figures."""
    found = [boot[region].failed for region in regions_of(run) for boot in boots if region in boot]
    return list(dict.fromkeys(filter(None, found)))


def _name(line: SharedLine) -> tuple[str, ...]:
    return line.arrangement, line.kind, line.where


def _found(shared: Shared, region: SharingRegion | None, symbols: Symbols, ram: Memory) -> InBoot:
    cpus = range(shared.cpus)
    if region is None:
        raise IopathError(f"no marker of {shared.name} was seen: ioloop and pathcount differ")
    if waited := [str(cpu) for cpu in cpus if not region.lengths.get(cpu)]:
        what = f"{shared.run.title}, {shared.arrangement}"
        why = f"CPU {', '.join(waited)} waited for another one in each round"
        return InBoot(failed=f"{what}: {why}")
    ios = shared.run.ios
    lines: dict[tuple[str, str], SharedLine] = {}
    owners = _stacks(region, ram)
    for accesses in region.accesses.values():
        kind = kind_of(accesses)
        if kind:
            owner = owners.get(accesses[0].at >> _STACK)
            if owner == _NOBODY:
                continue
            if owner is None:
                line = _line(shared.arrangement, kind, accesses, region, ios, symbols, ram)
            else:
                line = _stack_line(shared.arrangement, owner, accesses, region, ios, symbols)
            other = lines.setdefault((line.where, line.kind), line)
            if other is not line:
                _merge(other, line)
    return InBoot(
        arrangement=Arrangement(
            name=shared.arrangement,
            instructions_per_io=[
                round(statistics.median(region.lengths[cpu]) / ios, 4) for cpu in cpus
            ],
            called_per_io=[
                round(region.called[cpu] / (len(region.lengths[cpu]) * ios), 4) for cpu in cpus
            ],
            rounds=[len(region.lengths[cpu]) for cpu in cpus],
            rounds_left_out=[region.left_out[cpu] for cpu in cpus],
            command=shared.command(),
        ),
        lines=sorted(lines.values(), key=lambda line: (-_times(line), line.where)),
    )


def _times(line: SharedLine) -> float:
    return sum(access.per_io for access in (*line.reads, *line.writes))


def _stacks(region: SharingRegion, ram: Memory) -> dict[int, int]:
    """The CPUs that own the stacks, by address: most accesses to a stack are theirs. A stack
    that tasks of several CPUs had one after the other has no owner: all do the same there."""
    times: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    code: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for accesses in region.accesses.values():
        if ram.place(accesses[0].at, accesses[0].physical).kind == "vmalloc":
            for access in accesses:
                times[access.at >> _STACK][access.cpu] += access.times
                code[access.at >> _STACK][access.cpu].add(access.pc)
    found = {}
    for at, by_cpu in times.items():
        owner = max(by_cpu, key=by_cpu.__getitem__)
        same = set.intersection(*code[at].values())
        if by_cpu[owner] >= _OWN * sum(by_cpu.values()):
            found[at] = owner
        elif len(same) >= max(_FRAMES, _SAME * len(set.union(*code[at].values()))):
            found[at] = _NOBODY
    return found


def _line(
    arrangement: str, kind: str, accesses: Sequence[Access], region: SharingRegion, ios: int,
    symbols: Symbols, ram: Memory,
) -> SharedLine:  # fmt: skip
    """A shared line as results have it."""
    places = {access: ram.place(access.at, access.physical) for access in accesses}
    written = {access: place for access, place in places.items() if access.store}
    where, place = _where(written.values()), next(iter(written.values())).kind
    if kind == "false" and are_neighbours(places):
        where, place = f"neighbouring objects: {where}", NEIGHBOURS
    texts = {access: place.text for access, place in places.items()}
    reads, writes = _rows(texts, region, ios, symbols)
    return SharedLine(
        arrangement=arrangement, where=where, place=place, kind=kind, lines=1, reads=reads,
        writes=writes,
    )  # fmt: skip


def are_neighbours(places: Mapping[Access, Place]) -> bool:
    """Whether a line has several objects of a slab, each of which one CPU touches: CPUs share it
    only by the layout of memory."""
    cpus: dict[int, set[int]] = defaultdict(set)
    for access, place in places.items():
        if place.kind != "slab":
            return False
        cpus[access.physical - place.offset].add(access.cpu)
    return all(len(found) == 1 for found in cpus.values())


def _where(places: Iterable[Place]) -> str:
    """The places that are written, each object named once: "struct file{f_lock, f_ref}"."""
    parts: dict[str, set[str]] = defaultdict(set)
    for place in places:
        parts[place.object].add(place.text.removeprefix(place.object))
    return ", ".join(
        name + inside.pop()
        if len(inside) == 1
        else f"{name}{{{', '.join(part.lstrip('.') or '+0x0' for part in sorted(inside))}}}"
        for name, inside in sorted(parts.items())
    )


def _stack_line(
    arrangement: str, owner: int, accesses: Sequence[Access], region: SharingRegion, ios: int,
    symbols: Symbols,
) -> SharedLine:  # fmt: skip
    """The same for a stack: what other CPUs do there. Variables lie elsewhere in the stack in each
    system call, so all its lines are merged."""
    where = f"stack of CPU {owner}"
    others = {access: where for access in accesses if access.cpu != owner}
    reads, writes = _rows(others, region, ios, symbols)
    return SharedLine(
        arrangement=arrangement, where=where, place="stack", kind="true", lines=1, reads=reads,
        writes=writes,
    )  # fmt: skip


def _rows(
    places: Mapping[Access, str], region: SharingRegion, ios: int, symbols: Symbols
) -> tuple[list[LineAccess], list[LineAccess]]:
    """The reads and writes of a line, by function and CPU."""
    reads: list[LineAccess] = []
    writes: list[LineAccess] = []
    rows: dict[tuple, float] = defaultdict(float)
    masks: dict[tuple, int] = defaultdict(int)
    for access, at in places.items():
        # A locked instruction reads and writes at once.
        if access.locked and not access.store:
            continue
        symbol = symbols.find(access.pc)
        key = (access.store, symbol.name, symbol.module, access.cpu, at, access.locked)
        rows[key] += access.times / (len(region.lengths[access.cpu]) * ios)
        masks[key] |= access.bytes
    for key, per_io in sorted(rows.items()):
        store, function, module, cpu, at, locked = key
        row = LineAccess(
            function=function, module=module, cpu=cpu, at=at, locked=locked,
            per_io=round(per_io, 4), bytes=runs_of(masks[key]),
        )  # fmt: skip
        (writes if store else reads).append(row)
    return reads, writes


def runs_of(mask: int) -> list[tuple[int, int]]:
    """The first and the last bit of each run of bits that are set."""
    found: list[tuple[int, int]] = []
    for bit in range(mask.bit_length()):
        if mask >> bit & 1:
            first = found.pop()[0] if found and found[-1][1] == bit - 1 else bit
            found.append((first, bit))
    return found


def _merge(line: SharedLine, other: SharedLine) -> None:
    """Add another line of the same name to *line*, whose bytes stand for both."""
    if line.place != "stack":
        line.lines += other.lines
    for own, more in ((line.reads, other.reads), (line.writes, other.writes)):
        rows = {_key(access): access for access in own}
        for access in more:
            if row := rows.get(_key(access)):
                row.per_io = round(row.per_io + access.per_io, 4)
            else:
                own.append(access)


def _key(access: LineAccess) -> tuple:
    return access.function, access.module, access.cpu, access.at, access.locked
