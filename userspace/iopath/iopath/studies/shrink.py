# SPDX-License-Identifier: GPL-2.0
"""Make a shape as simple as it can be while its cause still shows, and find from which number on it
does."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from iopath.rungs.shapes import Dimension, Shape, Space, Value
from iopath.studies.judges import Contrast
from iopath.studies.search import ShapeSearch

STAYS = 0.8  # of the growth, at least
_SCALED = ("size", "segments")  # with them, a cost may grow in proportion
_NUMBERS = ("size", "depth", "segments", "offset", "place")
_STEPS = 8  # numbers that are tried at a time

# Yields the shapes that it wants to know of, is sent their contrasts, and returns the last.
Steps = Generator[Sequence[Shape], Sequence[Contrast], "Shrunk"]


@dataclass
class Shrunk:
    """The simplest contrast, the functions that made it look for it, and the values that it needs:
    for each dimension that one, and the nearest with which nothing shows."""

    contrast: Contrast
    functions: list[str]
    needs: dict[str, tuple[Value, Value]] = field(default_factory=dict)

    @property
    def answer(self) -> str:
        return self.contrast.differs


def shrink_all(search: ShapeSearch, causes: Sequence[tuple[str, Contrast]]) -> list[Shrunk]:
    """The contrasts of all *causes*, shrunk; those that become one shape are one. All are screened
    together, step by step."""
    steps = [shrink(search.space, one, cause) for cause, one in causes]
    wanted = {number: next(one) for number, one in enumerate(steps)}
    found: dict[int, Shrunk] = {}
    while wanted:
        every = [shape for shapes in wanted.values() for shape in shapes]
        known = {one.shape: one for one in search.contrasts(every)}
        following = {}
        for number, shapes in wanted.items():
            try:
                following[number] = steps[number].send([known[shape] for shape in shapes])
            except StopIteration as end:
                found[number] = end.value
        wanted = following
    merged: dict[tuple[Shape, str], Shrunk] = {}
    for _, one in sorted(found.items()):
        first = merged.setdefault((one.contrast.shape, one.answer), one)
        if first is not one:
            first.functions += [name for name in one.functions if name not in first.functions]
            first.needs = {**one.needs, **first.needs}
    return [*merged.values()]


def shrink(space: Space, contrast: Contrast, cause: str) -> Steps:
    """Give up one value after the other, then make numbers smaller."""
    stays = _judge(space, contrast, cause)
    best = contrast
    needs: dict[str, tuple[Value, Value]] = {}
    while simpler := space.simpler(best.shape):
        tried = dict(zip(simpler, (yield [*simpler.values()]), strict=True))
        fine: dict[str, Value] = {}
        for (name, value), one in tried.items():
            if stays(one):
                fine.setdefault(name, value)
        named = space.named(best.shape)
        if not fine:
            needs = {name: (value, named[name]) for name, value in reversed(tried)}
            break
        # Values that can go one by one may not go together.
        first = tried[next(iter(fine.items()))]
        together = space.shape({**named, **fine})
        (whole,) = (yield [together]) if together else (first,)
        best = whole if stays(whole) else first
    for name in _NUMBERS:
        if name in space.differing(best.shape):
            needs.pop(name, None)
            best, below = yield from _lowered(space, best, name, stays)
            if below is not None:
                needs[name] = (below, space.named(best.shape)[name])
    return Shrunk(best, [cause] if cause else [], needs)


def _judge(space: Space, contrast: Contrast, cause: str) -> Callable[[Contrast], bool]:
    """What tells whether another contrast shows the same."""
    named = space.named(contrast.shape)

    def stays(other: Contrast) -> bool:
        if not contrast.counted:
            return other.differs == contrast.differs
        sizes = space.named(other.shape)
        scale = STAYS * min(1.0, *(int(sizes[one]) / int(named[one]) for one in _SCALED))
        if other.by(cause) >= scale * contrast.by(cause):
            return other.grew
        # The function may be a small part of what grew, and depend on something else besides.
        return cause in dict(other.functions()) and other.growth >= scale * contrast.growth

    return stays


def _lowered(
    space: Space, best: Contrast, name: str, stays: Callable[[Contrast], bool]
) -> Generator[Sequence[Shape], Sequence[Contrast], tuple[Contrast, int | None]]:
    """The contrast of the least number of a dimension with which it still shows, and the largest
    below it with which it does not, if there is one. Each step tries some numbers in between."""
    dimension = space.dimension(name)
    low: int | None = None
    while True:
        high = int(space.named(best.shape)[name])
        numbers = _between(low, high, dimension)
        shapes = {one: space.with_value(best.shape, name, one) for one in numbers}
        fitting = {
            one: shape for one, shape in shapes.items() if shape and space.named(shape)[name] == one
        }
        if not fitting:
            return best, low
        for number, one in zip(fitting, (yield [*fitting.values()]), strict=True):
            if stays(one):
                best = one
                break
            low = number


def _between(low: int | None, high: int, dimension: Dimension) -> list[int]:
    """Some numbers above *low*, or from the least on, and below *high*."""
    unit = dimension.unit
    begin = min(dimension.numbers) if low is None else low + unit
    width = max(unit, (high - begin) // _STEPS // unit * unit)
    usual = (one for one in dimension.numbers if begin <= one < high)
    return sorted({*range(begin, high, width), *usual})
