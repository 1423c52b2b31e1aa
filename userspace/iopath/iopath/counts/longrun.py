# SPDX-License-Identifier: GPL-2.0
"""The cost of I/Os in a long run: on average, and with the work that is deferred.

A figure is the median of short rounds. It does not show work that happens less often than once per
round, nor the work of interrupts, other tasks and callbacks after the I/O. So each rung also has
one long run, followed by a sleep until all deferred work is done. The plugin counts it flat: how
often each function was executed in which context (Documentation/pathcount.rst).

A guest also has work of its own, which is subtracted. The number of timer ticks depends on the
length of the run; a loop that does nothing shows what one tick takes. A run of a single batch shows
the work that is deferred by the start and the end of a program.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from iopath.base.errors import IopathError
from iopath.counts.output import Flat
from iopath.counts.pathcount import BootProfile
from iopath.counts.symbols import Symbols
from iopath.results.layers import Layers
from iopath.results.profiles import LongRunFunction
from iopath.results.symbol import Symbol
from iopath.rungs.runs import DRAIN, LONG, Run

_TASK = 0  # the plugin's context of the task that the run is of
_OTHERS = 1  # that of all other tasks
_OVERHEAD = 64  # instructions between two readings of the clock that are not the loop
_LEAST = 0.0005  # instructions per I/O of a function that is listed

_Counts = dict[Symbol, float]


@dataclass(frozen=True)
class LongRun:
    """The instructions per I/O of a long run: of the path, with deferred work, and both by
    function; the *parts* of that with deferred work, by who executed them, add up to it."""

    mean: float
    with_deferred: float
    functions: list[LongRunFunction]
    parts: dict[str, float] = field(default_factory=dict)


class LongRuns:
    """The long runs of one boot."""

    def __init__(self, found: BootProfile, symbols: Symbols, layers: Layers) -> None:
        self._found = found
        self._symbols = symbols
        self._layers = layers
        empty = self._region(LONG)
        ticks = self._ticks(empty)
        _, beside = self._split(empty)
        self._tick = {symbol: count / ticks for symbol, count in beside.items()} if ticks else {}

    def figures(self, run: Run, clock: int) -> LongRun:
        """The figures of *run* in this boot: its mean, that with deferred work, and both by
        function. *clock* is how long the run took by the guest's clock, to check the count: it
        also counts the iterations of string instructions."""
        ios = run.long_ios
        region = self._region(run.long_region)
        path, beside = self._split(region)
        counted = sum(path.values()) + sum(beside.values())
        self._check(run, region, counted, clock - region.iterations)
        later: _Counts = defaultdict(float)
        _add(later, beside, 1)
        _add(later, self._tick, run.rung.interrupts * ios - self._ticks(region))
        _add(later, self._whole(run.long_region | DRAIN), 1)
        single = self._region(run.idle_region)
        _add(later, self._split(single)[1], -1)
        _add(later, self._tick, self._ticks(single) - run.rung.interrupts * run.rung.batch)
        _add(later, self._whole(run.idle_region | DRAIN), -1)
        mean = sum(path.values()) / ios
        rows = [
            LongRunFunction(
                name=symbol.name,
                module=symbol.module,
                layer=self._layers.of(symbol),
                mean=round(path.get(symbol, 0) / ios, 4),
                deferred=round(later.get(symbol, 0) / ios, 4),
            )
            for symbol in {**path, **later}
        ]
        rows = [row for row in rows if max(abs(row.mean), abs(row.deferred)) > _LEAST]
        rows.sort(key=lambda row: (-row.mean - row.deferred, row.name, row.module))
        whole = round(mean + sum(later.values()) / ios, 4)
        return LongRun(round(mean, 4), whole, rows, self._parts(run, mean))

    def _parts(self, run: Run, mean: float) -> dict[str, float]:
        """Who executed the instructions per I/O. Soft interrupts belong to the interrupt that they
        follow, or to another task."""
        long, single = self._region(run.long_region), self._region(run.idle_region)
        ticks = run.rung.interrupts * (run.long_ios - run.rung.batch)
        ticks += self._ticks(single) - self._ticks(long)
        (interrupts, others), (fewer, less) = self._beside(long), self._beside(single)
        found = {
            "interrupts": interrupts - fewer + ticks * sum(self._tick.values()),
            "other tasks": others - less,
            "afterwards": sum(self._whole(run.long_region | DRAIN).values())
            - sum(self._whole(run.idle_region | DRAIN).values()),
        }
        parts = {name: round(count / run.long_ios, 4) for name, count in found.items()}
        return {"task": round(mean, 4), **parts}

    def _beside(self, region: Flat) -> tuple[float, float]:
        """The instructions of the interrupts of a region, and of other tasks."""
        _, beside = self._split(region)
        others = sum(n * times for _, n, context, times in region.counts if context == _OTHERS)
        return sum(beside.values()) - others, others

    def _region(self, number: int) -> Flat:
        region = self._found.flats.get(number)
        if region is None:
            raise IopathError(f"no marker of region {number} was seen: ioloop and pathcount differ")
        return region

    def _is_exception(self, context: int, region: Flat) -> bool:
        """Whether a context is that of an exception: a page fault is the task's own doing."""
        address = region.entries[context][0]
        return self._found.arch.is_exception(address, self._symbols.find(address).name)

    def _ticks(self, region: Flat) -> int:
        """The interrupts of a region."""
        return sum(
            times
            for context, (_, times) in region.entries.items()
            if not self._is_exception(context, region)
        )

    def _split(self, region: Flat) -> tuple[_Counts, _Counts]:
        """The instructions of a region by function: the path's, and all others."""
        path: _Counts = defaultdict(float)
        beside: _Counts = defaultdict(float)
        own = {_TASK} | {
            context for context in region.entries if self._is_exception(context, region)
        }
        for context, counts in self._found.flat_counts(region).items():
            _add(path if context in own else beside, counts, 1)
        return path, beside

    def _whole(self, number: int) -> _Counts:
        path, beside = self._split(self._region(number))
        _add(path, beside, 1)
        return path

    def _check(self, run: Run, region: Flat, counted: float, clock: int) -> None:
        """The plugin and the guest's clock count the same instructions, but for those between the
        clock's readings and the markers, or neither is believed. A guest that waits is idle, where
        its clock goes on and nothing is counted."""
        over = clock - counted
        if over < 0 or (over > _OVERHEAD and not region.switches):
            raise IopathError(
                f"{run.title}: the long run took {clock} instructions by the guest's clock, but"
                f" {counted:.0f} were counted: pathcount is wrong"
            )


def _add(to: _Counts, counts: _Counts, times: float) -> None:
    for symbol, count in counts.items():
        to[symbol] = to.get(symbol, 0) + count * times
