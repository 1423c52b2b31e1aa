# SPDX-License-Identifier: GPL-2.0
"""What a shape is compared with: itself on another kernel, or a simpler shape on the same kernel,
than which it should not cost more."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from iopath.guest.guest import NOT_ENDED
from iopath.measure.screening import Outcome
from iopath.results.layers import table
from iopath.rungs.shapes import Shape, Space, Value

LEAST = 4.0  # instructions per I/O that are a growth
SHARE = 0.005  # and that share of what the I/O costs

_ADDRESS = re.compile(r"\b(?:0x)?[0-9a-f]{8,}\b")

Outcomes = Mapping[str, Mapping[Shape, Outcome]]  # by kernel


@dataclass(frozen=True)
class Simpler:
    """A simpler shape, called *name*: another should cost at most *factor* times as much, and
    *more*."""

    shape: Shape
    factor: float
    more: float
    name: str

    def allows(self, outcome: Outcome) -> Outcome:
        """What the other shape should cost at most, by what this one costs."""
        functions = {name: count * self.factor for name, count in outcome.functions.items()}
        whole = outcome.figure * self.factor + self.more
        return replace(outcome, figure=whole, functions=functions)


@dataclass(frozen=True)
class Contrast:
    """A shape, and what became of it: *before* is what it is compared with, on another kernel, or
    what a simpler shape allows."""

    shape: Shape
    before: Outcome
    after: Outcome
    simpler: Simpler | None = None

    @property
    def counted(self) -> bool:
        return self.before.counted and self.after.counted

    @property
    def growth(self) -> float:
        """Instructions per I/O more than before."""
        return self.after.figure - self.before.figure if self.counted else 0.0

    @property
    def grew(self) -> bool:
        return self.growth > self._least

    @property
    def _least(self) -> float:
        return max(LEAST, SHARE * self.before.figure)

    def by(self, function: str) -> float:
        """By how much a function grew, and the whole did with it."""
        if not self.counted:
            return 0.0
        names = (self.after.functions.get(function, 0), self.before.functions.get(function, 0))
        return min(names[0] - names[1], self.growth)

    def share(self, function: str) -> float:
        """The same relative to what the I/O costs."""
        return self.by(function) / max(self.before.figure, 1.0)

    def functions(self) -> list[tuple[str, float]]:
        """The functions that grew so that it matters, the largest difference first; none unless
        the whole did."""
        if not self.grew:
            return []
        names = {**self.before.functions, **self.after.functions}
        found = [(name, by) for name in names if (by := self.by(name)) > self._least]
        return sorted(found, key=lambda one: (-one[1], one[0]))

    @property
    def differs(self) -> str:
        """How the kernels answer it differently, in words; empty if they do not. What dies on both
        is told, too."""
        answers = [_answer(one) for one in (self.before, self.after)]
        if self.after.died or (answers[0] != answers[1] and not self.simpler):
            return " / ".join(answers)
        return ""


def _answer(outcome: Outcome) -> str:
    """An answer in words; equal ones are one finding. A crash is known by what the kernel said,
    without addresses; a guest that took too long hung."""
    if outcome.died.startswith(NOT_ENDED):
        return "the guest hung"
    said = outcome.died.partition(" (console:")[0]
    return _ADDRESS.sub("...", said) or outcome.error or "done"


class Judge(Protocol):
    """What makes contrasts of outcomes."""

    def wanted(self, shape: Shape) -> list[Shape]:
        """The shapes that must be screened to judge one."""
        ...

    def judge(self, shape: Shape, outcomes: Outcomes) -> Contrast: ...


class Kernels(Judge):
    """The last of two kernels against the first."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._layers = table(None)

    def wanted(self, shape: Shape) -> list[Shape]:
        return [shape]

    def judge(self, shape: Shape, outcomes: Outcomes) -> Contrast:
        """The functions of both have the newer names."""
        before, after = (outcomes[name][shape] for name in (self._names[0], self._names[-1]))
        names = self._layers.renamed({*before.functions}, {*after.functions})
        if names:
            before, after = (_renamed(one, names) for one in (before, after))
        return Contrast(shape, before, after)


def _renamed(outcome: Outcome, names: Mapping[str, str]) -> Outcome:
    functions: dict[str, float] = {}
    for name, count in outcome.functions.items():
        newer = names.get(name, name)
        functions[newer] = functions.get(newer, 0.0) + count
    return replace(outcome, functions=functions)


# Expectations of one kernel.

_ALLOWED = 1.05  # times what is expected
_OF_REQUESTS = 2000.0  # instructions per I/O that requests may cost more than bios


class Monotonic(Judge):
    """One kernel: a byte of a larger I/O, or an I/O of a larger batch, costs no more than one that
    is a step smaller; biogen costs no more than the block device, and requests not much more than
    bios."""

    def __init__(self, name: str, space: Space) -> None:
        self._name = name
        self._space = space

    def wanted(self, shape: Shape) -> list[Shape]:
        return [shape, *(one.shape for one in self._others(shape))]

    def judge(self, shape: Shape, outcomes: Outcomes) -> Contrast:
        """The contrast with the shape that it exceeds most, relative to its cost."""
        known = outcomes[self._name]
        found = [
            Contrast(shape, one.allows(known[one.shape]), known[shape], one)
            for one in self._others(shape)
        ]
        itself = Contrast(shape, known[shape], known[shape])
        return max([itself, *found], key=lambda one: one.growth / max(one.before.figure, 1.0))

    def _others(self, shape: Shape) -> Iterator[Simpler]:
        named = self._space.named(shape)
        size, segments, depth = (int(named[name]) for name in ("size", "segments", "depth"))
        piece = size // segments
        for number in (size - 512, size // 1024 * 512) if segments == 1 else ():
            yield from self._other(shape, {"size": number}, size / max(1, number))
        for number in (segments - 1, segments // 2):
            changed = {"size": number * piece, "segments": number}
            yield from self._other(shape, changed, segments / max(1, number))
        for number in (depth - 1, depth // 2):
            yield from self._other(shape, {"depth": number}, 1.0)
        if named["target"] == "raw":
            yield from self._other(shape, {"target": "dio"}, 1 / _ALLOWED)
        if named["target"] == "mq":
            yield from self._other(shape, {"target": "dio"}, 1 / _ALLOWED, _OF_REQUESTS)

    def _other(
        self, shape: Shape, changed: Mapping[str, Value], factor: float, more: float = 0.0
    ) -> Iterator[Simpler]:
        """The shape with what is *changed*, if there is one."""
        if 0 in changed.values():
            return
        found = self._space.shape({**self._space.named(shape), **changed})
        if found and found != shape:
            name = ", ".join(f"{key} {value}" for key, value in changed.items())
            yield Simpler(found, factor * _ALLOWED, more, name)
