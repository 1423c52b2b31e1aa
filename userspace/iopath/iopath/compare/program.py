# SPDX-License-Identifier: GPL-2.0
"""What differs between kernels in what a program costs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from iopath.results.layers import Layers
from iopath.results.program import BESIDE, CALL, OWN, Boot, Part, Ran
from iopath.results.symbol import plain


@dataclass(frozen=True)
class Spread:
    """A figure of several boots: the first one's, the least and the most."""

    value: float
    least: float
    most: float

    @property
    def width(self) -> float:
        return self.most - self.least


@dataclass(frozen=True)
class Change:
    """A part that differs: its times and its instructions, those of each time for the kernel of a
    system call, and the difference by function."""

    kind: str
    name: str
    times: tuple[int, int]
    each: tuple[float, float]
    instructions: tuple[int, int]
    functions: dict[str, int]

    @property
    def more(self) -> int:
        return self.instructions[1] - self.instructions[0]

    @property
    def is_of_call(self) -> bool:
        """Whether a system call takes more or less each time."""
        return self.kind == CALL and self.each[0] != self.each[1]


@dataclass(frozen=True)
class Comparison:
    """The kernels *names*, their wholes, and what differs, the largest difference first."""

    names: tuple[str, str]
    whole: tuple[int, int]
    changes: list[Change]

    @property
    def more(self) -> int:
        return self.whole[1] - self.whole[0]


def compare(first: Ran, second: Ran, layers: Layers) -> Comparison:
    """What differs between the first boots. *layers* know functions that were renamed."""
    a, b = first.boots[0], second.boots[0]
    renamed = layers.renamed(_executed(a), _executed(b))
    keys = dict.fromkeys((part.kind, part.name) for part in (*a.parts, *b.parts))
    pairs = [(a.find(*key), b.find(*key)) for key in keys if key[0] != BESIDE]
    changes = [_change(x, y, renamed) for x, y in pairs if _differ(x, y)]
    changes.sort(key=lambda one: (-abs(one.more), one.kind, one.name))
    return Comparison((first.name, second.name), (a.whole, b.whole), changes)


def _differ(x: Part, y: Part) -> bool:
    return (x.times, x.functions) != (y.times, y.functions)


def _executed(boot: Boot) -> set[str]:
    return {plain(name) for part in boot.parts for name in part.functions}


def _change(x: Part, y: Part, renamed: Mapping[str, str]) -> Change:
    functions: dict[str, int] = defaultdict(int)
    for part, sign in ((x, -1), (y, 1)):
        for function, instructions in part.functions.items():
            name = plain(function)
            functions[renamed.get(name, name)] += sign * instructions
    ordered = sorted(functions.items(), key=lambda item: (-abs(item[1]), item[0]))
    return Change(
        x.kind, x.name, (x.times, y.times), (x.each, y.each), (x.instructions, y.instructions),
        {name: more for name, more in ordered if more},
    )  # fmt: skip


def spread(values: Sequence[float]) -> Spread:
    return Spread(values[0], min(values), max(values))


WHOLE = "the whole"


def figures(ran: Ran) -> dict[str, Spread]:
    """What is judged: the whole, and the kernel's instructions in each system call."""
    found = {WHOLE: spread([boot.whole for boot in ran.boots])}
    for name in _calls(ran.boots):
        found[name] = spread([boot.find(CALL, name).each for boot in ran.boots])
    return found


def _calls(boots: Iterable[Boot]) -> list[str]:
    return list(dict.fromkeys(part.name for boot in boots for part in boot.of(CALL)))


def followed(comparison: Comparison) -> str:
    """The figure that a search follows. It is the system call with the largest difference, if this
    is at least half of the difference of the whole. Otherwise it is the whole."""
    sizes = {
        one.name: abs(one.each[1] - one.each[0]) * min(one.times)
        for one in comparison.changes
        if one.is_of_call
    }
    name = max(sizes, key=sizes.__getitem__, default=WHOLE)
    return name if 2 * sizes.get(name, 0) >= abs(comparison.more) else WHOLE


def varying(ran: Ran) -> dict[str, Spread]:
    """The parts whose instructions differ between boots, the widest spread first."""
    keys = dict.fromkeys((part.kind, part.name) for boot in ran.boots for part in boot.parts)
    found = {}
    for kind, name in keys:
        if kind == BESIDE:
            continue
        one = spread([boot.find(kind, name).instructions for boot in ran.boots])
        if one.width:
            found["the program's own code" if kind == OWN else name] = one
    return dict(sorted(found.items(), key=lambda item: -item[1].width))


def regressions(first: Ran, second: Ran, percent: float) -> tuple[list[str], list[str]]:
    """What grew by more than *percent*, and what cannot be judged because boots differ by more."""
    grown, unknown = [], []
    before, after = figures(first), figures(second)
    for name, b in after.items():
        a = before.get(name)
        if a is None or not a.value:
            continue
        text = f"{second.name}: {name} {100 * (b.value / a.value - 1):+.1f} %"
        limit = 1 + percent / 100
        if b.least > a.most * limit:
            grown.append(text)
        elif b.most > a.least * limit:
            unknown.append(f"{text}, but boots differ by more")
    return grown, unknown
