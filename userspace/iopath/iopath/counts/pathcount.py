# SPDX-License-Identifier: GPL-2.0
"""From raw counts by address to functions, layers and call trees.

Reads what the plugin pathcount wrote (Documentation/pathcount.rst) and the guest's /proc/kallsyms.
Profiles are of the round of median length among those without an interrupt, which also gives the
figure of a rung. So all counts belong to the path, and they add up to the figure.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from iopath.base.errors import Interrupted, IopathError
from iopath.counts import parts
from iopath.counts.plugin_output import Block, Flat, InContext, Node, Output, Region, Round
from iopath.counts.symbols import KERNEL, Symbols
from iopath.results.layers import Layers
from iopath.results.metrics import COUNTED, OF_KIND, OF_ROUND, PLACES, TALLIES
from iopath.results.model import Misses, Model
from iopath.results.profiles import COSTLY, COUNTS, ExactFunction, ExactProfile
from iopath.results.symbol import Symbol, plain

_SWITCHES = ("schedule_idle", "__schedule")  # what the idle loop calls to run a task

# Cache lines.

_ALIGNMENT = 16  # bytes: where a function may begin
_LINE = 64 // _ALIGNMENT


def _line_variance(executed: set[int]) -> float:
    """The variance of the number of lines of a function over the places where it may begin;
    *executed* are the pieces of _ALIGNMENT bytes that it executes."""
    counts = [len({(piece + shift) // _LINE for piece in executed}) for shift in range(_LINE)]
    return statistics.pvariance(counts)


# Counts.


INSTRUCTIONS = "instructions"

# By the metric's name in profiles: what was executed, and the metrics of blocks that are not 0.
Counts = dict[str, float]


def _fields(counts: Counts, scale: float) -> dict[str, float]:
    """What a profile has of each function and of the whole."""
    return {name: round(counts.get(name, 0) * scale, 4) for name in COUNTS}


def _costly(counts: Counts, scale: float) -> dict[str, float]:
    return {name: round(counts[name] * scale, 4) for name in COSTLY if counts.get(name)}


@dataclass(frozen=True)
class CountedRound:
    """A round: its instructions, the iterations of string instructions, which are not counted as
    such, whether no interrupt came, and how often another task was switched to; and, where the
    guest waits for a device, how many of the instructions are the idle loop's."""

    instructions: int
    iterations: int
    quiet: bool
    switches: int
    idle: int = 0


@dataclass
class _Block:
    """A straight run of instructions, resolved to functions."""

    addresses: list[int]
    kinds: str
    symbols: list[Symbol]

    def segments(self, executed: int) -> list[tuple[Symbol, Counts]]:
        """The counts of the first *executed* instructions, by function."""
        found: dict[Symbol, Counts] = {}
        for symbol, kind in zip(self.symbols[:executed], self.kinds, strict=False):
            part = found.setdefault(symbol, {INSTRUCTIONS: 0})
            part[INSTRUCTIONS] += 1
            for metric in OF_KIND.get(kind, ()):
                part[metric.key] = part.get(metric.key, 0) + 1
        return list(found.items())


class BootProfile:
    """The plugin's output of one boot, resolved to functions.

    Where the guest *waits* for a device, the idle loop runs meanwhile. It belongs to no region."""

    def __init__(
        self, output: Output, symbols: Symbols, layers: Layers, *, waits: bool = False
    ) -> None:
        self._symbols = symbols
        self._layers = layers
        self.arch = output.arch
        self.waits = waits
        self.regions = output.regions
        self._idle_nodes = {
            number: self._idle_of(region) if waits else set()
            for number, region in self.regions.items()
        }
        self.flats = {number: each[0] for number, each in output.flats.items()}
        self._blocks = {number: self._resolved(block) for number, block in output.blocks.items()}
        self._segments: dict[tuple[int, int], list[tuple[Symbol, Counts]]] = {}
        self._of_regions: dict[int, Mapping[int, list[InContext]]] = {}  # by their identity

    def _resolved(self, block: Block) -> _Block:
        addresses = block.addresses
        return _Block(addresses, block.kinds, self._symbols.find_each(addresses))

    def _idle_of(self, region: Region) -> set[int]:
        """The nodes of a region that are the idle loop, with what it calls, but without the
        interrupts that end it and the switch to a task."""
        found: set[int] = set()
        for number, node in region.nodes.items():  # callers come first
            name = plain(self._symbols.find(node.address).name)
            if node.parent is None:
                idle = name in parts.IDLE_LOOP
            else:
                idle = node.parent in found and node.site is not None and name not in _SWITCHES
            if idle:
                found.add(number)
        return found

    def _nodes(self, number: int) -> Iterator[tuple[int, Node]]:
        """The nodes of a region, by number, that are not the idle loop's."""
        idle = self._idle_nodes[number]
        for at, node in self.regions[number].nodes.items():
            if at not in idle:
                yield at, node

    def idle(self, number: int) -> int:
        """The instructions of the idle loop in the median round of a region."""
        nodes = self.regions[number].nodes
        return sum(
            part.instructions * part.times
            for at in self._idle_nodes[number]
            for part in nodes[at].median
        )

    def _resolve(self, block: int, executed: int) -> list[tuple[Symbol, Counts]]:
        key = (block, executed)
        if key not in self._segments:
            self._segments[key] = self._blocks[block].segments(executed)
        return self._segments[key]

    def region(self, number: int, ios_per_round: int) -> ExactProfile:
        """The profile of a region, per I/O. Cache lines are counted in another region."""
        region = self.regions.get(number)
        if region is None or not region.rounds:
            raise IopathError(f"no marker of region {number} was seen: ioloop and pathcount differ")
        if region.median is None:
            raise Interrupted("each of its rounds was interrupted")
        scale = 1 / ios_per_round
        functions: dict[Symbol, Counts] = defaultdict(lambda: defaultdict(float))
        stacks: dict[tuple[str, ...], float] = defaultdict(float)
        paths: dict[int, tuple[str, ...]] = {}
        for number_, node in self._nodes(number):
            own = self._symbols.find(node.address)
            path = self._path(region, number_, paths)
            for part in node.median:
                segments = self._resolve(part.block, part.instructions)
                for symbol, counts in segments:
                    total = functions[symbol]
                    for name, count in counts.items():
                        total[name] += count * part.times
                    # A function that was jumped to is shown below the function with the jump.
                    stack = path if symbol == own else (*path, symbol.text)
                    stacks[stack] += counts[INSTRUCTIONS] * part.times
                end = self._blocks[part.block].symbols[-1]
                first = segments[0][0] if segments else end
                for metric, count in zip(TALLIES, part.counts, strict=True):
                    if count:
                        functions[end if metric.source.at_end else first][metric.key] += count
        whole: Counts = defaultdict(float)
        layers: dict[str, float] = defaultdict(float)
        rows = []
        for symbol, counts in functions.items():
            for name, count in counts.items():
                whole[name] += count
            layer = self._layers.of(symbol)
            layers[layer] += counts[INSTRUCTIONS]
            rows.append(
                ExactFunction(
                    name=symbol.name,
                    module=symbol.module,
                    layer=layer,
                    **_fields(counts, scale),
                    costly=_costly(counts, scale) or None,
                )
            )
        rows.sort(key=lambda row: (-row.instructions, row.name))
        counted = region.rounds[region.median]
        executed = counted.instructions - self.idle(number)
        if whole[INSTRUCTIONS] != executed:
            raise IopathError(
                f"region {number}: functions add up to {whole[INSTRUCTIONS]:.0f} instructions, the"
                f" round to {executed}: pathcount and iopath differ"
            )
        user = sum(c[INSTRUCTIONS] for s, c in functions.items() if s.module == "user")
        return ExactProfile(
            unmatched_returns=counted.unmatched,
            faults=round(counted.counts["faults"] * scale, 4),
            switches=round(counted.counts["switches"] * scale, 4),
            user=round(user * scale, 4),
            kernel=round((whole[INSTRUCTIONS] - user) * scale, 4),
            **_fields(whole, scale),
            costly=_costly(whole, scale),
            layers={
                name: round(layers[name] * scale, 4)
                for name in self._layers.names
                if name in layers
            },
            functions=rows,
            stacks=[
                (";".join(stack), round(count * scale, 4))
                for stack, count in sorted(stacks.items())
            ],
            lines={},
        )

    def events(self, number: int, ios_per_round: int) -> dict[str, float]:
        """The metrics that are counted per I/O in the median round of a region."""
        region = self.regions[number]
        of_round = region.rounds[region.median or 0].counts
        found: Counts = defaultdict(float)
        for _, node in self._nodes(number):
            for part in node.median:
                for metric, count in zip(TALLIES, part.counts, strict=True):
                    found[metric.name] += count
                for kind in self._blocks[part.block].kinds[: part.instructions]:
                    for metric in OF_KIND.get(kind, ()):
                        found[metric.name] += part.times
        for metric in OF_ROUND:
            found[metric.name] = of_round[metric.source.round]
        found = {name: round(count / ios_per_round, 4) for name, count in found.items()}
        for metric in PLACES:
            name, what = metric.source.places or ("", "")
            places = self.places(name, number, ios_per_round)
            found[metric.name] = round(places[f"{what}_user"] + places[f"{what}_kernel"], 4)
        return {name: found.get(name, 0.0) for name in COUNTED}

    def rounds(self, number: int) -> list[CountedRound]:
        """What was counted of each round of a region.

        Where the guest waits, other tasks execute the idle loop and the switch from it. Only the
        median round tells them apart: each round has the switch of that one."""
        if flat := self.flats.get(number):
            interrupts = {at for at in flat.entries if not self.is_exception(at, flat)}
            return [
                CountedRound(
                    part.instructions, part.iterations,
                    interrupts.isdisjoint(at for at, _ in part.entries), part.switches,
                )
                for part in flat.each
            ]  # fmt: skip
        region = self.regions.get(number)
        if region is None:
            return []
        switch = 0
        if self.waits and region.median is not None:
            switch = region.rounds[region.median].others - self.idle(number)
        return [
            CountedRound(
                part.instructions, part.iterations, part.quiet, part.counts["switches"],
                max(0, part.others - switch) if self.waits else 0,
            )
            for part in region.rounds
        ]  # fmt: skip

    def is_exception(self, context: int, region: Flat) -> bool:
        """Whether a context of a flat region is that of an exception: page faults belong to the
        task."""
        address = region.entries[context].address
        return self.arch.is_exception(address, self._symbols.find(address).name)

    def flat_counts(self, region: Flat) -> dict[int, dict[Symbol, float]]:
        """The instructions of a flat region by context and function."""
        found: dict[int, dict[Symbol, float]] = defaultdict(lambda: defaultdict(float))
        for part in region.counts:
            of_context, times = found[part.context], part.times
            for symbol, counts in self._resolve(part.block, part.instructions):
                of_context[symbol] += counts[INSTRUCTIONS] * times
        return found

    def entered(self, region: Flat, names: Mapping[int, str]) -> dict[int, dict[str, int]]:
        """How often functions were entered in a flat region, by context and by their *names*, which
        are given by address."""
        found: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        begins = self._begins(region)
        for address, name in names.items():
            for part in begins.get(address, ()):
                found[part.context][name] += part.times
        return found

    def _begins(self, region: Flat) -> Mapping[int, list[InContext]]:
        """What was executed in a flat region, by where its block begins."""
        if id(region) not in self._of_regions:
            found: dict[int, list[InContext]] = defaultdict(list)
            for part in region.counts:
                if part.instructions:
                    found[self._blocks[part.block].addresses[0]].append(part)
            self._of_regions[id(region)] = found
        return self._of_regions[id(region)]

    def addresses(self, number: int, ios_per_round: int) -> dict[int, float]:
        """How often each instruction of a region was executed per I/O, in its median round."""
        counts: dict[int, float] = defaultdict(float)
        for _, node in self._nodes(number):
            for part in node.median:
                for address in self._blocks[part.block].addresses[: part.instructions]:
                    counts[address] += part.times / ios_per_round
        return counts

    def lines(self, number: int, ios_per_round: int) -> dict[str, float]:
        """Distinct cache lines touched per I/O in a region."""
        return self.places("lines", number, ios_per_round)

    def places(self, name: str, number: int, ios_per_round: int) -> dict[str, float]:
        """Distinct places touched per I/O in a region, "lines" or "pages": the fewest of its quiet
        rounds."""
        counted = [part.places[name] for part in self._quiet(number) if name in part.places]
        if not counted:
            raise Interrupted(f"each of its rounds that counts {name} was interrupted")
        fewest = min(counted, key=lambda places: sum(places.values()))
        return {name: round(count / ios_per_round, 4) for name, count in fewest.items()}

    def model(self, number: int, ios_per_round: int) -> Model | None:
        """What a modelled CPU would have missed per I/O in a region, in the quiet round in which it
        missed least when warm; None if no round was modelled."""
        modelled = [part.model for part in self._quiet(number) if part.model is not None]
        if not modelled:
            return None
        least = min(modelled, key=lambda states: sum(states["warm"].values()))
        warm, cold = (
            Misses(
                **{name: round(count / ios_per_round, 4) for name, count in least[state].items()}
            )
            for state in ("warm", "cold")
        )
        return Model(warm=warm, cold=cold)

    def code_lines_noise(self, number: int, ios_per_round: int) -> float:
        """By how much the count of the kernel's code lines may vary, per I/O.

        Another build of the same functions may lie differently: how many lines a function takes
        depends on where in a line it begins. Each function may begin at any multiple of its
        alignment; the noise is four standard deviations of the sum, which is not exceeded by
        chance.
        """
        variance = sum(map(_line_variance, self._executed(number).values()))
        return round(4 * math.sqrt(variance) / ios_per_round, 4)

    def _quiet(self, number: int) -> list[Round]:
        region = self.regions.get(number)
        return [part for part in (region.rounds if region else ()) if part.quiet]

    def _executed(self, number: int) -> dict[Symbol, set[int]]:
        """The pieces of _ALIGNMENT bytes that each kernel function executes in a region's median
        round."""
        found: dict[Symbol, set[int]] = defaultdict(set)
        for _, node in self._nodes(number):
            for part in node.median:
                block = self._blocks[part.block]
                addresses = block.addresses[: part.instructions]
                for address, symbol in zip(addresses, block.symbols, strict=False):
                    if address >= KERNEL:
                        found[symbol].add(address // _ALIGNMENT)
        return found

    def _path(
        self, region: Region, number: int, paths: dict[int, tuple[str, ...]]
    ) -> tuple[str, ...]:
        """The functions that lead to a node of the call tree, outermost first, itself last."""
        chain = []
        at: int | None = number
        while at is not None and at not in paths:
            chain.append(at)
            at = region.nodes[at].parent
        path = paths[at] if at is not None else ()
        for link in reversed(chain):
            node = region.nodes[link]
            if node.site is not None:
                # The caller may have been jumped to, so it need not be on the path yet.
                caller = self._symbols.find(node.site).text
                if path and caller != path[-1]:
                    path = (*path, caller)
            path = (*path, self._symbols.find(node.address).text)
            paths[link] = path
        return paths[number]
