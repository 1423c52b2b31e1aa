# SPDX-License-Identifier: GPL-2.0
"""The cost of I/Os in a long run: on average, and with the work that is deferred.

A figure is the median of short rounds. It does not show work that happens less often than once per
round, nor the work of interrupts, other tasks and callbacks after the I/O. So each rung also has
one long run, followed by a sleep until all deferred work is done. The plugin counts it flat: how
often each function was executed in which context (Documentation/pathcount.rst).

A guest also has work of its own, which comes by its clock: timer ticks, and what the kernel does
from time to time. It is left out by who executes it (counts/parts.py), to the instruction.
"""

from collections import defaultdict
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from iopath.base.errors import IopathError
from iopath.counts import parts
from iopath.counts.pathcount import BootProfile
from iopath.counts.plugin_output import Flat
from iopath.counts.requests import Functions
from iopath.counts.symbols import Symbols
from iopath.results.iorequests import BY_WHOM, INTERRUPTS, LATER, OTHERS, TASK
from iopath.results.layers import Layers
from iopath.results.profiles import LongRunFunction
from iopath.results.result import REST
from iopath.results.symbol import Symbol
from iopath.rungs.runs import DRAIN, Run

_TASK, _OTHER = 0, 1  # the plugin's contexts of the task that the run is of, and of other tasks
_OVERHEAD = 64  # instructions between two readings of the clock outside the loop
_LEAST = 0.0005  # instructions per I/O of a function that is listed
_LEAST_PART = 0.05  # and of a part

# The plugin knows how many instructions of other tasks are left out, but not of which functions, so
# one row subtracts them.
_LEFT_OUT = Symbol("(the kernel's own work)")

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
        self._splits: dict[int, tuple[_Counts, _Counts]] = {}  # by the identity of a region
        self._names = parts.Names(found.arch, symbols, found.flats.values())
        self._functions = Functions(symbols)

    def figures(self, run: Run, clock: int) -> LongRun:
        """The figures of *run* in this boot: its mean, that with deferred work, and both by
        function. *clock* is how long the run took by the guest's clock, to check the count: it
        also counts the iterations of string instructions."""
        ios = run.long_ios
        region = self._region(run.long_region)
        path, beside = self._split(region)
        counted = sum(path.values()) + sum(beside.values())
        self._check(run, region, counted, clock - region.iterations)
        mean = sum(path.values()) / ios
        found = self._parts(run)
        whole = round(mean + sum(found.values()), 4)
        later = defaultdict(float, beside)
        _add(later, self._split(self._region(run.long_region | DRAIN))[1])
        later[_LEFT_OUT] = (whole - mean) * ios - sum(later.values())
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
        return LongRun(round(mean, 4), whole, rows, _named(found, mean, whole))

    def metrics(self, run: Run) -> dict[str, float]:
        """The metrics per I/O that are known by the functions that a run entered. A metric is
        missing if it is not counted on this kernel."""
        long, drained = (self._region(run.long_region | more) for more in (0, DRAIN))
        ticks = {at for at in long.entries if self._is_tick(at, long)}
        during = self._entered(long, () if run.rung.interrupts else ticks)
        whole = self._entered(long, ())
        _add(whole, self._entered(drained, ()))
        found = self._functions.metrics(during, whole)
        return {name: round(count / run.long_ios, 4) for name, count in found.items()}

    def who(self, run: Run) -> dict[str, dict[str, float]]:
        """How often per I/O the functions of some metrics were entered by whom."""
        long, drained = (self._region(run.long_region | more) for more in (0, DRAIN))
        by: dict[str, dict[str, float]] = defaultdict(dict)
        for context, counts in self._found.entered(long, self._functions.names).items():
            if context == _TASK or (context != _OTHER and self._is_exception(context, long)):
                whom = TASK
            else:
                whom = OTHERS if context == _OTHER else INTERRUPTS
            _add(by[whom], counts)
        by[LATER] = self._entered(drained, ())
        found: dict[str, dict[str, float]] = {}
        for whom, counts in by.items():
            for name, count in self._functions.metrics(counts, counts).items():
                if name in BY_WHOM and count:
                    found.setdefault(name, {})[whom] = round(count / run.long_ios, 4)
        return found

    def _entered(self, region: Flat, without: Container[int]) -> dict[str, float]:
        """How often functions were entered in a region, *without* some contexts."""
        found: dict[str, float] = defaultdict(float)
        for context, counts in self._found.entered(region, self._functions.names).items():
            if context not in without:
                _add(found, counts)
        return found

    def _parts(self, run: Run) -> dict[str, float]:
        """The instructions per I/O beside the run's task, by who executed them. In its sleep, the
        task executes nothing for the I/O."""
        ios, rung = run.long_ios, run.rung
        found = self._for_io(run.long_region, rung.interrupts * ios, waits=rung.waits)
        _add(found, self._for_io(run.long_region | DRAIN, 0, waits=False))
        return {name: count / ios for name, count in found.items()}

    def _for_io(self, number: int, expected: int, *, waits: bool) -> dict[str, float]:
        """The instructions of a region for the I/O that its task did not execute, by who did. So
        many interrupts of the timer are *expected* for the I/Os; the task may wait for a device."""
        region = self._region(number)
        whole = sum(self._names.of(region).values())
        _, beside = self._split(region)
        if round(whole) != round(sum(beside.values())):
            raise IopathError(
                f"region {number}: parts beside the task add up to {whole:.0f} instructions,"
                f" functions to {sum(beside.values()):.0f}: pathcount is wrong"
            )
        return self._names.for_io(region, self._timers(region, expected), waits=waits)

    def _timers(self, region: Flat, expected: int) -> dict[str, float]:
        """What share of the timer's interrupts is for the I/O, by the names of their parts. If all
        interrupts enter by one vector, each is taken to execute the same number of instructions
        there."""
        handlers = self._names.handlers(region)
        times: dict[str, float] = defaultdict(float)
        for counts in self._found.entered(region, handlers).values():
            _add(times, counts)
        ticks = sum(count for name, count in times.items() if name in parts.TICKS)
        if ticks:
            others = 1 - (ticks - expected) / sum(times.values())
            entered = dict.fromkeys(self._names.entries(region), others)
        else:
            entered = {}
            ticks = self._ticks(region)
        share = min(1.0, expected / ticks) if ticks else 0.0
        return {**entered, **dict.fromkeys(parts.TICKS, share)}

    def _ticks(self, region: Flat) -> int:
        """How many interrupts of the timer, which has a vector of its own, a region has."""
        return sum(entry.times for at, entry in region.entries.items() if self._is_tick(at, region))

    def _is_tick(self, context: int, region: Flat) -> bool:
        """Whether a context is that of the timer's interrupt."""
        return parts.is_tick(self._symbols.find(region.entries[context].address).name)

    def _region(self, number: int) -> Flat:
        region = self._found.flats.get(number)
        if region is None:
            raise IopathError(f"no marker of region {number} was seen: ioloop and pathcount differ")
        return region

    def _split(self, region: Flat) -> tuple[_Counts, _Counts]:
        """The instructions of a region by function: the path's, and all others."""
        if id(region) not in self._splits:
            self._splits[id(region)] = self._divide(region)
        return self._splits[id(region)]

    def _divide(self, region: Flat) -> tuple[_Counts, _Counts]:
        path: _Counts = defaultdict(float)
        beside: _Counts = defaultdict(float)
        own = {_TASK} | {
            context for context in region.entries if self._found.is_exception(context, region)
        }
        for context, counts in self._found.flat_counts(region).items():
            _add(path if context in own else beside, counts)
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
    the *mean*. Small parts are merged."""
    found = {name: round(count, 4) for name, count in beside.items()}
    named = {name: count for name, count in found.items() if abs(count) >= _LEAST_PART}
    named[parts.TASK] = round(mean, 4)
    named = dict(sorted(named.items(), key=lambda one: (-one[1], one[0])))
    return {**named, REST: round(whole - sum(named.values()), 4)}


def _add(to: dict[_Key, float], counts: Mapping[_Key, float]) -> None:
    for key, count in counts.items():
        to[key] = to.get(key, 0) + count
