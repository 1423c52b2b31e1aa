# SPDX-License-Identifier: GPL-2.0
"""Which functions account for a difference: the functions of two profiles are paired by name.

A function that was renamed is paired with its newer name. The names come from the table of layers;
or they are guessed, if one function is gone and another is new that executes exactly the same.

Two compilers that built one source inline different functions. A function that only one of the two
kernels calls at some place is counted there with its caller, as in the other kernel. So each row
compares code of the same source.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from iopath.compare.changes import FunctionChange, LayerChange, LongRunChange
from iopath.results.layers import Layers
from iopath.results.profiles import COSTLY, COUNTS, ExactProfile
from iopath.results.result import ExactRecord, Result
from iopath.results.symbol import Symbol, plain

Renamed = Mapping[str, str]  # plain names that the other kernel lacks, each with the newer name

_Counts = dict[str, float]
_NOTHING: _Counts = dict.fromkeys((*COUNTS, *COSTLY), 0.0)


@dataclass(frozen=True)
class Pair:
    """A function in two profiles; None where a profile lacks it."""

    old: Symbol | None
    new: Symbol | None
    layer: str
    before: _Counts
    after: _Counts
    guessed: bool
    inlined: str = ""

    @cached_property
    def changes(self) -> _Counts:
        return {name: round(count - self.before[name], 4) for name, count in self.after.items()}

    @property
    def name(self) -> str:
        return (self.new or self.old or Symbol("")).text

    @property
    def note(self) -> str:
        if self.inlined:
            return self.inlined
        if self.old is None:
            return "new"
        if self.new is None:
            return "gone"
        if self.guessed:
            return f"{self.old.name} before?"
        return f"was {self.old.name}" if plain(self.old.name) != plain(self.new.name) else ""

    @property
    def differs(self) -> bool:
        return any(self.changes.values()) or (bool(self.note) and not self.inlined)


class _Side:
    """The functions of one profile, each under the name that they are compared by, and their
    *names* counts."""

    def __init__(self, profile: ExactProfile, renamed: Renamed, names: Sequence[str]) -> None:
        self._stacks = profile.stacks
        self.folded: dict[Symbol, dict[str, float]] = defaultdict(dict)  # by caller
        self.counts: dict[Symbol, _Counts] = defaultdict(_NOTHING.copy)
        self.called: dict[Symbol, Symbol] = {}
        self.layers: dict[Symbol, str] = {}
        largest: dict[Symbol, float] = defaultdict(float)
        for function in profile.functions:
            name = plain(function.name)
            key = Symbol(renamed.get(name, name), function.module)
            counts = self.counts[key]
            for count in names:
                counts[count] += function.count(count)
            if function.instructions >= largest[key]:
                largest[key] = function.instructions
                self.called[key] = function.symbol
                self.layers[key] = function.layer

    @cached_property
    def _paths(self) -> list[tuple[list[Symbol], float]]:
        """The call stacks with their instructions."""
        found = []
        for stack, count in self._stacks:
            frames = (frame.partition(" ") for frame in stack.split(";"))
            path = [Symbol(plain(name), module.strip("[]")) for name, _, module in frames]
            found.append((path, count))
        return found

    @cached_property
    def _calls(self) -> set[tuple[Symbol, Symbol]]:
        """Each function with those that it calls."""
        return {call for path, _ in self._paths for call in itertools.pairwise(path)}

    @cached_property
    def _below(self) -> set[tuple[Symbol, Symbol]]:
        """Each function with those that run below it."""
        return {pair for path, _ in self._paths for pair in itertools.combinations(path, 2)}

    def _called(self, other: "_Side") -> set[tuple[Symbol, Symbol]]:
        """Each function with those that it calls: itself, or in functions in which the *other* side
        does not call them."""
        found = set()
        for path, _ in self._paths:
            for one, two in itertools.combinations(range(len(path)), 2):
                caller, function = path[one], path[two]
                if not any(
                    (caller, between) in other._calls and (between, function) in other._below
                    for between in path[one + 1 : two]
                ):
                    found.add((caller, function))
        return found

    def fold(self, other: "_Side") -> None:
        """Count each function with its caller where the *other* side does not call it. A function
        that jumps to another one, which then returns to the caller of both, calls it, too. Stacks
        have instructions only: the other counts of a function that is called from several others
        are divided as its instructions are."""
        shares: dict[Symbol, dict[Symbol, float]] = defaultdict(lambda: defaultdict(float))
        called = other._called(self)
        jumped = called - self._calls
        for path, count in self._paths:
            kept = path[:1]
            for function in path[1:]:
                if (kept[-1], function) in called or any(
                    (caller, function) in jumped for caller in kept
                ):
                    kept.append(function)
            if count:
                shares[path[-1]][kept[-1]] += count
        own, self.counts = self.counts, defaultdict(_NOTHING.copy)
        for key, counts in own.items():
            parts = shares.get(key, {key: 1.0})
            for at, share in parts.items():
                for name, count in counts.items():
                    self.counts[at][name] += count * share / sum(parts.values())
                if at != key:
                    self.folded[at][key.name] = share


def pair(
    before: ExactProfile, after: ExactProfile, renamed: Renamed, compilers: Sequence[str] = ()
) -> list[Pair]:
    """The functions of two profiles, those that changed most first. *compilers* are the names of
    two that built the same source."""
    counted = before.costly is not None and after.costly is not None
    names = (*COUNTS, *COSTLY) if counted else COUNTS
    if compilers:
        renamed = {}
    one, two = _Side(before, renamed, names), _Side(after, renamed, names)
    alike: dict[Symbol, Symbol] = {}
    if compilers:
        one.fold(two)
        two.fold(one)
    else:
        alike = _alike(one, two)
    taken = set(alike.values())
    pairs = []
    for key in one.counts | two.counts:
        if key in taken:
            continue  # listed with the function that it is alike
        newer = alike.get(key, key)
        layer = two.layers.get(newer, one.layers.get(key, ""))
        if key in alike and layer == "other":
            layer = one.layers[key]
        pairs.append(
            Pair(
                one.called.get(key),
                two.called.get(newer),
                layer,
                one.counts.get(key, _NOTHING),
                two.counts.get(newer, _NOTHING),
                key in alike,
                "; ".join(
                    f"{compiler} inlines {', '.join(_largest_first(side.folded[key]))}"
                    for compiler, side in zip(compilers, (two, one), strict=False)
                    if key in side.folded
                ),
            )
        )
    return sorted(pairs, key=lambda pair: (-abs(pair.changes["instructions"]), pair.name))


def _largest_first(counts: Mapping[str, float]) -> list[str]:
    return sorted(counts, key=lambda name: (-counts[name], name))


def _alike(one: _Side, two: _Side) -> dict[Symbol, Symbol]:
    """Functions that may have been renamed: one that is gone and one that is new, if both execute
    exactly the same and no other function does."""
    by_counts: dict[tuple, tuple[list[Symbol], list[Symbol]]] = {}
    for at, (side, other) in enumerate(((one, two), (two, one))):
        for key, counts in side.counts.items():
            if key not in other.counts:
                alike = (key.module, *counts.values())
                by_counts.setdefault(alike, ([], []))[at].append(key)
    found = {}
    for gone, new in by_counts.values():
        if len(gone) == len(new) == 1:
            layers = one.layers[gone[0]], two.layers[new[0]]
            if layers[0] == layers[1] or "other" in layers:
                found[gone[0]] = new[0]
    return found


def by_function(pairs: Iterable[Pair]) -> list[FunctionChange]:
    """The functions that changed."""
    found = []
    for part in pairs:
        if part.differs:
            changes = dict(part.changes)
            found.append(
                FunctionChange(
                    name=part.name,
                    layer=part.layer,
                    before=round(part.before["instructions"], 4),
                    after=round(part.after["instructions"], 4),
                    difference=changes.pop("instructions"),
                    counts={name: change for name, change in changes.items() if change},
                    note=part.note,
                )
            )
    return found


def by_layer(pairs: Iterable[Pair]) -> list[LayerChange]:
    """The sums of all functions by layer, those that changed most first."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for part in pairs:
        sums[part.layer][0] += part.before["instructions"]
        sums[part.layer][1] += part.after["instructions"]
    found = [
        LayerChange(layer=name, before=before, after=after, difference=after - before)
        for name, (before, after) in sums.items()
    ]
    return sorted(found, key=lambda part: -abs(part.difference))


def attributed(pairs: Iterable[Pair]) -> float:
    """The instructions that the functions account for."""
    return sum(part.changes["instructions"] for part in pairs)


def in_long_run(before: ExactRecord, after: ExactRecord, *, deferred: bool) -> list[LongRunChange]:
    """How each function differs in the long runs, the largest difference first; with *deferred*
    work, or without."""
    sides: list[dict[Symbol, float]] = []
    for record in (before, after):
        counts: dict[Symbol, float] = defaultdict(float)
        for row in (record.profile and record.profile.long_run) or ():
            later = row.deferred if deferred else 0
            counts[Symbol(plain(row.name), row.module)] += row.mean + later
        sides.append(counts)
    changes = {
        key: round(sides[1].get(key, 0) - sides[0].get(key, 0), 4) for key in sides[0] | sides[1]
    }
    found = [
        LongRunChange(name=key.text, difference=change) for key, change in changes.items() if change
    ]
    return sorted(found, key=lambda row: (-abs(row.difference), row.name))


def executed(result: Result) -> dict[str, set[str]]:
    """The plain names of the functions that each kernel executes."""
    found: dict[str, set[str]] = {name: set() for name in result.names}
    for record in result.results:
        for function in record.profile.functions if record.profile else ():
            found[record.kernel.name].add(plain(function.name))
    return found


def relayer(records: Sequence[ExactRecord], layers: Layers) -> None:
    """Sort the functions of profiles into *layers*: a file may have been made with another
    table."""
    for profile in filter(None, (record.profile for record in records)):
        sums: dict[str, float] = defaultdict(float)
        for function in profile.functions:
            function.layer = layers.of(function.symbol)
            sums[function.layer] += function.instructions
        profile.layers = {name: round(sums[name], 4) for name in layers.names if name in sums}
