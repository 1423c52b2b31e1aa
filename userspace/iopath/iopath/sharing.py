# SPDX-License-Identifier: GPL-2.0
"""Several CPUs at the same time: the plan of such guests, and which cache lines an I/O shares.

A rung runs on all CPUs of a guest at once, in each of ARRANGEMENTS. The CPUs of the emulator take
turns, so what is exact is which CPU touches which line, and how many instructions it executes. How
long a CPU waits for another is not: the plugin leaves out the rounds in which one waited.
"""

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iopath import btf, memory, paging, sharing_counts
from iopath.arch import Arch
from iopath.build import Built
from iopath.cache import digest_file
from iopath.errors import IopathError
from iopath.guest import KALLSYMS, QUIET, Image, Start
from iopath.memory import Memory, Place
from iopath.plan import FACTS, Run, Settings, prepared
from iopath.rungs import on_each
from iopath.shared import NEIGHBOURS, most
from iopath.sharing_counts import Access, Region, regions
from iopath.symbols import Symbols

# What the CPUs share: nothing but the kernel; the device; the open file of it and the process.
DEVICES, FILES, THREADS = "devices", "files", "threads"
ARRANGEMENTS = (DEVICES, FILES, THREADS)

RECORD = "sharing"  # the name of the record with what was found

_ROUNDS = 12
_REGION = 12  # bits of a run's number; the number of its arrangement is above
_STACK = 14  # bits of an address within a stack
_OWN = 0.9  # of the accesses to a stack are at least those of the CPU whose stack it is
_NOBODY = -1
_FRAMES = 50  # instructions that access a stack, at least


@dataclass(frozen=True)
class Shared:
    """A run on several CPUs."""

    run: Run
    arrangement: str
    cpus: int
    targets: tuple[str, ...]

    @property
    def region(self) -> int:
        return self.run.region | ARRANGEMENTS.index(self.arrangement) << _REGION

    @property
    def name(self) -> str:
        """The name of its record."""
        return f"shared.{self.region}"

    def command(self) -> list[str]:
        """The command line of the program."""
        run, devices = self.run, self.arrangement == DEVICES
        target = ":".join(self.targets if devices else self.targets[:1]) or run.rung.target
        rung = replace(run.rung, cpus=f"0-{self.cpus - 1}", target=target)
        words = rung.command(run.op, run.block_size, self.region, rounds=_ROUNDS)
        if not devices:
            words.append(f"--numjobs={self.cpus}")
        if self.arrangement == THREADS:
            words.append("--thread")
            if target:
                words.append("--share_file")
        return words


def runs(members: Sequence[Run], settings: Settings) -> list[Shared]:
    """The runs on several CPUs of a guest that carries out *members*. biogen's generator runs once
    on a device at a time."""
    found = []
    for run in members:
        targets = on_each(run.rung, settings.cpus)[2]
        for arrangement in ARRANGEMENTS:
            if targets if arrangement == DEVICES else run.rung.own_threads:
                found.append(Shared(run, arrangement, settings.cpus, targets))
    return found


def can_run(run: Run, settings: Settings) -> bool:
    """Whether a run can be carried out on several CPUs: a program of one's own cannot, nor a kernel
    thread that has one device."""
    return run.rung.program is None and bool(runs([run], settings))


def code() -> list[str]:
    """The digests of the code that counts and memory are read by."""
    parts = (sys.modules[__name__], btf, memory, paging, sharing_counts)
    return [digest_file(Path(part.__file__ or "")) for part in parts]


def make_image(built: Built, members: Sequence[Run], settings: Settings) -> Image:
    """What a guest with several CPUs is given to carry out *members*."""
    rungs = [on_each(run.rung, settings.cpus)[0] for run in members]
    image = prepared(built, rungs, settings, start(built, settings.cpus))
    plan = image.plan
    plan += dict.fromkeys(step for run in members for step in on_each(run.rung, settings.cpus)[1])
    plan += [f"file {path}" for path in (*FACTS, KALLSYMS)]
    plan.append(QUIET)
    for shared in runs(members, settings):
        rung = shared.run.rung
        plan += [
            *rung.setup,
            *(f"age {target}" for target in shared.targets or filter(None, [rung.target])),
            " ".join([f"run {shared.name}", *shared.command()]),
            *rung.cleanup,
        ]
    return image


def start(built: Built, cpus: int) -> Start:
    """The start of a guest with several CPUs: all go online."""
    online = [f"write /sys/devices/system/cpu/cpu{cpu}/online 1" for cpu in range(1, cpus)]
    return Start(built.vmlinuz, (*online, QUIET), arch=built.arch)


# What came of it.


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


def found(
    shared: Sequence[Shared], counts: Sequence[str], kallsyms: str, ram: Path, arch: Arch
) -> dict[str, dict[str, Any]]:
    """The figures and the shared lines of the runs of a guest, by region, from what the plugin
    counted and the guest's memory."""
    symbols = Symbols(kallsyms)
    counted = regions(counts, symbols)
    ram_ = Memory(ram, kallsyms, arch)
    return {str(run.region): _found(run, counted.get(run.region), symbols, ram_) for run in shared}


def merged(boots: Sequence[Mapping[str, dict[str, Any]]], run: Run) -> dict[str, Any]:
    """What a record has of a run: its arrangements, and the lines that are shared in each, in all
    boots or, since the layout of memory put them together, in some."""
    regions = [region for region in _regions_of(run) if region in boots[0]]
    regions = [region for region in regions if not any("failed" in boot[region] for boot in boots)]
    named = [
        {_name(line): line for region in regions for line in boot[region]["lines"]}
        for boot in boots
    ]
    every = {name: line for found in named[::-1] for name, line in found.items()}
    in_all = [name for name in named[0] if all(name in found for found in named)]
    for name in in_all:
        every[name]["spread"] = _spread([found[name] for found in named])
    return {
        "arrangements": [boots[0][region]["arrangement"] for region in regions],
        "lines": [every.pop(name) for name in in_all],
        "in_some_boots": list(every.values()),
    }


def _spread(lines: Sequence[dict[str, Any]]) -> float:
    """How much the reads or writes per I/O of a line differ between boots."""
    counts = [
        [most((row["cpu"], row["per_io"]) for row in line[name]) for line in lines]
        for name in ("reads", "writes")
    ]
    return round(max(max(found) - min(found) for found in counts), 4)


def failures(boots: Sequence[Mapping[str, dict[str, Any]]], run: Run) -> list[str]:
    """Why arrangements of a run have no figures."""
    found = [boot.get(region, {}).get("failed") for region in _regions_of(run) for boot in boots]
    return list(dict.fromkeys(filter(None, found)))


def _regions_of(run: Run) -> list[str]:
    """The regions of a run's arrangements."""
    return [str(run.region | number << _REGION) for number in range(len(ARRANGEMENTS))]


def _name(line: dict[str, Any]) -> tuple[str, ...]:
    return line["arrangement"], line["kind"], line["where"]


def _found(shared: Shared, region: Region | None, symbols: Symbols, ram: Memory) -> dict[str, Any]:
    cpus = range(shared.cpus)
    if region is None:
        raise IopathError(f"no marker of {shared.name} was seen: ioloop and pathcount differ")
    if waited := [str(cpu) for cpu in cpus if not region.lengths.get(cpu)]:
        what = f"{shared.run.title}, {shared.arrangement}"
        return {"failed": f"{what}: CPU {', '.join(waited)} waited for another one in each round"}
    ios = shared.run.ios
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    owners = _stacks(region, ram)
    for accesses in region.accesses.values():
        kind = kind_of(accesses)
        if kind:
            owner = owners.get(accesses[0].at >> _STACK)
            if owner == _NOBODY:
                continue
            if owner is None:
                line = _line(kind, accesses, region, ios, symbols, ram)
            else:
                kind = "true"
                line = _stack_line(owner, accesses, region, ios, symbols)
            other = lines.setdefault((line["where"], kind), line)
            if other is not line:
                _merge(other, line)
    return {
        "arrangement": {
            "name": shared.arrangement,
            "instructions_per_io": [
                round(statistics.median(region.lengths[cpu]) / ios, 4) for cpu in cpus
            ],
            "called_per_io": [
                round(region.called[cpu] / (len(region.lengths[cpu]) * ios), 4) for cpu in cpus
            ],
            "rounds": [len(region.lengths[cpu]) for cpu in cpus],
            "rounds_left_out": [region.left_out[cpu] for cpu in cpus],
            "command": shared.command(),
        },
        "lines": sorted(
            ({"arrangement": shared.arrangement, **line} for line in lines.values()),
            key=lambda line: (-_times(line), line["where"]),
        ),
    }


def _times(line: dict[str, Any]) -> float:
    return sum(access["per_io"] for name in ("reads", "writes") for access in line[name])


def _stacks(region: Region, ram: Memory) -> dict[int, int]:
    """The CPUs that own the stacks, by address: nearly all accesses to a stack are theirs. Nobody
    owns one that tasks of several CPUs had one after the other: they all do the same there."""
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
        elif len(same) >= max(_FRAMES, _OWN * len(set.union(*code[at].values()))):
            found[at] = _NOBODY
    return found


def _line(
    kind: str, accesses: Sequence[Access], region: Region, ios: int, symbols: Symbols,
    ram: Memory,
) -> dict[str, Any]:  # fmt: skip
    """A shared line as results have it."""
    places = {access: ram.place(access.at, access.physical) for access in accesses}
    written = {access: place for access, place in places.items() if access.store}
    where, place = _where(written.values()), next(iter(written.values())).kind
    if kind == "false" and are_neighbours(places):
        where, place = f"neighbouring objects: {where}", NEIGHBOURS
    return {
        "where": where,
        "place": place,
        "kind": kind,
        "lines": 1,
        **_rows({access: place.text for access, place in places.items()}, region, ios, symbols),
    }


def are_neighbours(places: Mapping[Access, Place]) -> bool:
    """Whether a line has several objects of a slab, each of which one CPU touches: only the layout
    of memory makes CPUs share it."""
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
    owner: int, accesses: Sequence[Access], region: Region, ios: int, symbols: Symbols
) -> dict[str, Any]:
    """The same of a stack: what other CPUs do there. Where a variable is in a stack differs from
    system call to system call, so all lines are one."""
    where = f"stack of CPU {owner}"
    others = {access: where for access in accesses if access.cpu != owner}
    return {
        "where": where, "place": "stack", "kind": "true", "lines": 1,
        **_rows(others, region, ios, symbols),
    }  # fmt: skip


def _rows(
    places: Mapping[Access, str], region: Region, ios: int, symbols: Symbols
) -> dict[str, list[dict[str, Any]]]:
    """The reads and writes of a line, by function and CPU."""
    found: dict[str, list[dict[str, Any]]] = {"reads": [], "writes": []}
    rows: dict[tuple, float] = defaultdict(float)
    masks: dict[tuple, int] = defaultdict(int)
    for access, at in places.items():
        # A locked instruction reads and writes at once.
        if access.locked and not access.store:
            continue
        symbol = symbols.find(access.pc)
        name = "writes" if access.store else "reads"
        key = (name, symbol.name, symbol.module, access.cpu, at, access.locked)
        rows[key] += access.times / (len(region.lengths[access.cpu]) * ios)
        masks[key] |= access.bytes
    for key, per_io in sorted(rows.items()):
        name, function, module, cpu, at, locked = key
        found[name].append(
            {
                "function": function, "module": module, "cpu": cpu, "at": at, "locked": locked,
                "per_io": round(per_io, 4), "bytes": runs_of(masks[key]),
            }
        )  # fmt: skip
    return found


def runs_of(mask: int) -> list[tuple[int, int]]:
    """The first and the last bit of each run of bits that are set."""
    found: list[tuple[int, int]] = []
    for bit in range(mask.bit_length()):
        if mask >> bit & 1:
            first = found.pop()[0] if found and found[-1][1] == bit - 1 else bit
            found.append((first, bit))
    return found


def _merge(line: dict[str, Any], other: dict[str, Any]) -> None:
    """Add another line of the same name to *line*, whose bytes stand for both."""
    if line["place"] != "stack":
        line["lines"] += other["lines"]
    for name in ("reads", "writes"):
        rows = {_key(access): access for access in line[name]}
        for access in other[name]:
            if _key(access) in rows:
                row = rows[_key(access)]
                row["per_io"] = round(row["per_io"] + access["per_io"], 4)
            else:
                line[name].append(access)


def _key(access: dict[str, Any]) -> tuple:
    return tuple(value for name, value in access.items() if name not in ("per_io", "bytes"))
