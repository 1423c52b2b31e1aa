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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from iopath.base.errors import IopathError
from iopath.counts import parts
from iopath.counts.output import Flat
from iopath.counts.pathcount import BootProfile
from iopath.counts.requests import Functions
from iopath.counts.symbols import Symbols
from iopath.results.layers import Layers
from iopath.results.profiles import LongRunFunction
from iopath.results.result import REST
from iopath.results.symbol import Symbol
from iopath.rungs.runs import DRAIN, LONG, Run

_TASK = 0  # the plugin's context of the task that the run is of
_OVERHEAD = 64  # instructions between two readings of the clock outside the loop
_LEAST = 0.0005  # instructions per I/O of a function that is listed
_LEAST_PART = 0.05  # and of a part

# Where the guest waits for a device, ticks come by the host's clock, and the idle loop runs.
# Neither belongs to the I/O. The plugin knows how many instructions these are, but not their
# functions, so one row subtracts them.
_NOT_OURS_ROW = Symbol("(idle loop and ticks)")

_Counts = dict[Symbol, float]
_Key = TypeVar("_Key")


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
        ticks = 0 if found.waits else self._ticks(empty)  # see _NOT_OURS_ROW
        _, beside = self._split(empty)
        self._tick = {symbol: count / ticks for symbol, count in beside.items()} if ticks else {}
        self._functions = Functions(symbols, found.arch.tick)
        _, beside_ = self._entries(empty)
        self._tick_entries = {name: count / ticks for name, count in beside_.items() if ticks}
        self._tick_part = parts.interrupt(found.arch.tick)
        self._names = parts.Names(found.arch, symbols, found.flats.values())
        self._tick_parts = {
            name: count / ticks for name, count in (self._beside(LONG) if ticks else {}).items()
        }

    def figures(self, run: Run, clock: int) -> LongRun:
        """The figures of *run* in this boot: its mean, that with deferred work, and both by
        function. *clock* is how long the run took by the guest's clock, to check the count: it
        also counts the iterations of string instructions."""
        ios = run.long_ios
        region = self._region(run.long_region)
        path, beside = self._split(region)
        counted = sum(path.values()) + sum(beside.values())
        self._check(run, region, counted, clock - region.iterations)
        later = self._later(run, self._split, self._tick)
        mean = sum(path.values()) / ios
        found = self._parts(run)
        if self._found.waits:
            later[_NOT_OURS_ROW] = (
                -sum(found.pop(name, 0) for name in (parts.IDLE, self._tick_part)) * ios
            )
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
        return LongRun(round(mean, 4), whole, rows, _named(found, mean, whole))

    def requests(self, run: Run) -> dict[str, float]:
        """The metrics per I/O that are known by the functions that a run entered, for its I/Os or
        later. A metric is missing if it is not counted on this kernel."""
        counts, _ = self._entries(self._region(run.long_region))
        _add(counts, self._later(run, self._entries, self._tick_entries), 1)
        found = self._functions.metrics(counts)
        return {name: round(count / run.long_ios, 4) for name, count in found.items()}

    def _later(
        self,
        run: Run,
        split: Callable[[Flat], tuple[Mapping[_Key, float], Mapping[_Key, float]]],
        tick: Mapping[_Key, float],
    ) -> dict[_Key, float]:
        """What others than the task did for the I/Os of a run, and everyone in the sleep. *split*
        gives the counts of a region, the path's and all others, *tick* has those of a tick."""
        region, single = self._region(run.long_region), self._region(run.idle_region)
        ticks = run.rung.interrupts * (run.long_ios - run.rung.batch)
        later: dict[_Key, float] = defaultdict(float)
        _add(later, split(region)[1], 1)
        _add(later, tick, ticks - self._ticks(region) + self._ticks(single))
        _add(later, split(single)[1], -1)
        for number, sign in ((run.long_region, 1), (run.idle_region, -1)):
            for counts in split(self._region(number | DRAIN)):
                _add(later, counts, sign)
        return later

    def _parts(self, run: Run) -> dict[str, float]:
        """The instructions per I/O beside the run's task, by who executed them; of the task, those
        in the sleep."""
        ticks = run.rung.interrupts * (run.long_ios - run.rung.batch)
        ticks += self._ticks(self._region(run.idle_region))
        ticks -= self._ticks(self._region(run.long_region))
        found: dict[str, float] = defaultdict(float)
        for number, sign in ((run.long_region, 1), (run.idle_region, -1)):
            _add(found, self._beside(number), sign)
            _add(found, self._beside(number | DRAIN), sign)
            own, _ = self._split(self._region(number | DRAIN))
            found[parts.TASK] += sign * sum(own.values())
        _add(found, self._tick_parts, ticks)
        return {name: count / run.long_ios for name, count in found.items()}

    def _beside(self, number: int) -> dict[str, float]:
        """The instructions of a region that the task did not execute, by who did."""
        region = self._region(number)
        found = self._names.of(region)
        _, beside = self._split(region)
        if round(sum(found.values())) != round(sum(beside.values())):
            raise IopathError(
                f"region {number}: parts beside the task add up to {sum(found.values()):.0f}"
                f" instructions, functions to {sum(beside.values()):.0f}: pathcount is wrong"
            )
        if self._found.waits and not self._found.arch.exceptions:
            self._share_entry(region, found)
        return found

    def _share_entry(self, region: Flat, found: dict[str, float]) -> None:
        """Move the ticks' share of the vector that all interrupts enter by to the ticks' part. All
        interrupts are taken to execute the same number of instructions there."""
        handlers = self._names.handlers(region)
        times: dict[str, float] = defaultdict(float)
        for counts in self._found.entered(region, handlers).values():
            _add(times, counts, 1)
        ticks = times[self._tick_part]
        for entry in self._names.entries(region) if ticks else ():
            share = found[entry] * ticks / sum(times.values())
            found[entry] -= share
            found[self._tick_part] += share

    def _region(self, number: int) -> Flat:
        region = self._found.flats.get(number)
        if region is None:
            raise IopathError(f"no marker of region {number} was seen: ioloop and pathcount differ")
        return region

    def _is_exception(self, context: int, region: Flat) -> bool:
        """Whether a context is that of an exception: page faults belong to the task."""
        address = region.entries[context].address
        return self._found.arch.is_exception(address, self._symbols.find(address).name)

    def _ticks(self, region: Flat) -> int:
        """The interrupts of a region."""
        return sum(
            entry.times
            for context, entry in region.entries.items()
            if not self._is_exception(context, region)
        )

    def _split(self, region: Flat) -> tuple[_Counts, _Counts]:
        """The instructions of a region by function: the path's, and all others."""
        return self._of_path(region, self._found.flat_counts(region))

    def _entries(self, region: Flat) -> tuple[dict[str, float], dict[str, float]]:
        """How often functions were entered in a region: by the path, and otherwise."""
        return self._of_path(region, self._found.entered(region, self._functions.names))

    def _of_path(
        self, region: Flat, by_context: Mapping[int, Mapping[_Key, float]]
    ) -> tuple[dict[_Key, float], dict[_Key, float]]:
        """The counts of the path, and all others."""
        path: dict[_Key, float] = defaultdict(float)
        beside: dict[_Key, float] = defaultdict(float)
        own = {_TASK} | {
            context for context in region.entries if self._is_exception(context, region)
        }
        for context, counts in by_context.items():
            _add(path if context in own else beside, counts, 1)
        return path, beside

    def _check(self, run: Run, region: Flat, counted: float, clock: int) -> None:
        """Raise IopathError unless the plugin and the guest's clock count the same instructions,
        except those between the clock's readings and the markers. While a guest waits, its clock
        goes on and nothing is counted."""
        over = clock - counted
        if over < 0 or (over > _OVERHEAD and not region.switches):
            raise IopathError(
                f"{run.title}: the long run took {clock} instructions by the guest's clock, but"
                f" {counted:.0f} were counted: pathcount is wrong"
            )


def _named(beside: Mapping[str, float], mean: float, whole: float) -> dict[str, float]:
    """Who executed the *whole* of the instructions per I/O, the largest part first. The task has
    the *mean* and what it executes in the sleep, too. Small parts are merged."""
    found = {name: round(count, 4) for name, count in beside.items()}
    named = {name: count for name, count in found.items() if abs(count) >= _LEAST_PART}
    named[parts.TASK] = round(mean + found[parts.TASK], 4)
    named = dict(sorted(named.items(), key=lambda one: (-one[1], one[0])))
    return {**named, REST: round(whole - sum(named.values()), 4)}


def _add(to: dict[_Key, float], counts: Mapping[_Key, float], times: float) -> None:
    for key, count in counts.items():
        to[key] = to.get(key, 0) + count * times
