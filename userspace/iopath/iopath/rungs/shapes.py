# SPDX-License-Identifier: GPL-2.0
"""Shapes of I/O: what a search combines to rungs (search.toml).

A shape has one value of each dimension, and is a rung of one operation and size: the table that
describes it is read as a table of a user's file is.
"""

import tomllib
from collections.abc import Container, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from random import Random

from iopath.base.errors import UsageError
from iopath.base.typed import JsonObject
from iopath.rungs import builtin
from iopath.rungs.runs import Run

Value = str | int

_MOST = 2 << 20  # bytes of a batch
_COPIED = 256 << 10  # the same where they are copied: the guest's clock counts each
_CHANGES = 3  # of a mutated shape, at most
_SYNTAX = str.maketrans({"\\": "\\\\", '"': '\\"', "\t": "\\t"})


@dataclass(frozen=True)
class Dimension:
    """A dimension of the space, see search.toml. *values* has the table of each value that has a
    name; *numbers* is empty then."""

    name: str
    values: Mapping[str, JsonObject] = field(default_factory=dict)
    numbers: tuple[int, ...] = ()
    option: str = ""
    key: str = ""
    unit: int = 1
    most: int = 0
    usual: int = 0  # of ten shapes
    together: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def every(self) -> Sequence[Value]:
        return self.numbers or [*self.values]

    @property
    def first(self) -> Value:
        return self.every[0]

    def table(self, value: Value) -> JsonObject:
        """The keys of a rung that a value stands for."""
        if not self.numbers:
            return self.values[str(value)]
        found: JsonObject = {}
        if value != self.first or not self.option:
            found |= {self.key: value} if self.key else {}
            found |= {"options": [f"{self.option}={value}"]} if self.option else {}
        return found

    def has(self, value: Value) -> bool:
        if self.numbers:
            least = min(self.numbers)
            return isinstance(value, int) and least <= value <= self.most
        return value in self.values

    def near(self, value: Value, random: Random) -> Value:
        """Another value; of a number often one that is near."""
        if not isinstance(value, int) or random.random() < 0.3:
            return random.choice([one for one in self.every if one != value] or [value])
        low = max(min(self.numbers), self.unit) if min(self.numbers) else 0
        steps = (value - self.unit, value + self.unit, value // 2, value * 2)
        fitting = [one for one in steps if low <= one <= self.most and one % self.unit == 0]
        return random.choice(fitting or [value])


@dataclass(frozen=True)
class Shape:
    """One value of each dimension of a space, in their order."""

    values: tuple[Value, ...]


def rung_name(named: Mapping[str, Value]) -> str:
    """The rung of a shape as --rung takes it: TARGET.ENGINE."""
    return f"{named['target']}.{named['engine']}"


class Space:
    """The shapes that dimensions make. Those of a rung that matches none of *patterns*, if there
    are any, are left out: a shape belongs to the rung TARGET.ENGINE."""

    def __init__(self, path: Path, patterns: Sequence[str] = ()) -> None:
        tables = tomllib.loads(path.read_text())
        self.dimensions = [_dimension(table) for table in tables["dimension"]]
        self._never: list[Mapping[str, Sequence[Value]]] = tables.get("never", [])
        self._patterns = patterns
        self._at = {one.name: number for number, one in enumerate(self.dimensions)}
        if patterns and not any(map(self._wanted, self._families())):
            raise UsageError(f"--rung {patterns[0]}: no shape is of such a rung, such as dio.pread")

    def _families(self) -> Iterator[Mapping[str, Value]]:
        for target in self.targets:
            for engine in self.engines:
                yield {"target": target, "engine": engine}

    def _wanted(self, named: Mapping[str, Value]) -> bool:
        name = rung_name(named)
        return not self._patterns or any(fnmatchcase(name, one) for one in self._patterns)

    @property
    def targets(self) -> Sequence[str]:
        return [str(one) for one in self.dimensions[self._at["target"]].every]

    @property
    def engines(self) -> Sequence[str]:
        return [str(one) for one in self.dimensions[self._at["engine"]].every]

    @cached_property
    def wanted_targets(self) -> list[str]:
        """The targets of shapes that are wanted."""
        found = (str(named["target"]) for named in self._families() if self._wanted(named))
        return [*dict.fromkeys(found)]

    @property
    def needed(self) -> set[str]:
        """The kernel options that values need."""
        tables = (table for one in self.dimensions for table in one.values.values())
        return {option for table in tables for option in table.get("needs", ())}

    def without(self, options: Container[str]) -> "Space":
        """The same without the values that need one of these kernel options."""
        found = copy(self)
        found.dimensions = [
            replace(one, values={
                name: table
                for name, table in one.values.items()
                if not any(option in options for option in table.get("needs", ()))
            })
            for one in self.dimensions
        ]  # fmt: skip
        return found

    def named(self, shape: Shape) -> dict[str, Value]:
        return {one.name: value for one, value in zip(self.dimensions, shape.values, strict=True)}

    def differing(self, shape: Shape) -> dict[str, Value]:
        """The values that are not the first of their dimension."""
        return {
            one.name: value
            for one, value in zip(self.dimensions, shape.values, strict=True)
            if value != one.first
        }

    def shape(self, named: Mapping[str, Value]) -> Shape | None:
        """The shape with these values, and otherwise the first ones; None if there is none. What
        does not go together becomes the first value, so that a shape has one form."""
        found = {one.name: named.get(one.name, one.first) for one in self.dimensions}
        for one in self.dimensions:
            if not one.has(found[one.name]):
                return None
            if any(found[name] not in values for name, values in one.together.items()):
                found[one.name] = one.first
        if not self._wanted(found) or self._impossible(found):
            return None
        return Shape(tuple(found.values()))

    def _impossible(self, named: Mapping[str, Value]) -> bool:
        size, segments = int(named["size"]), int(named["segments"])
        most = _MOST if named["cache"] == "direct" else _COPIED
        if size * int(named["depth"]) > most or size % segments or size // segments % 512:
            return True
        return any(
            all(named[name] in values for name, values in row.items()) for row in self._never
        )

    def with_value(self, shape: Shape, name: str, value: Value) -> Shape | None:
        return self.shape({**self.named(shape), name: value})

    def draw(self, random: Random, targets: Sequence[str]) -> Shape:
        """A shape by chance, on one of *targets*."""
        while True:
            named: dict[str, Value] = {}
            for one in self.dimensions:
                usual = random.random() * 10 < one.usual
                named[one.name] = one.first if usual else random.choice(one.every)
            named["target"] = random.choice(targets)
            if found := self.shape(named):
                return found

    def mutate(self, shape: Shape, random: Random, targets: Sequence[str]) -> Shape:
        """A shape that differs in few dimensions, on one of *targets*."""
        for _ in range(100):
            named = self.named(shape)
            if named["target"] not in targets:
                named["target"] = random.choice(targets)
            for _ in range(random.randint(1, _CHANGES)):
                one = random.choice(self.dimensions)
                if one.name != "target":
                    named[one.name] = one.near(named[one.name], random)
            found = self.shape(named)
            if found and found != shape:
                return found
        return self.draw(random, targets)

    def table(self, shape: Shape, name: str) -> JsonObject:
        """The table of its rung, as a file of rungs has it."""
        found: JsonObject = {"name": name}
        for one, value in zip(self.dimensions, shape.values, strict=True):
            for key, part in one.table(value).items():
                if isinstance(part, list) and key != "ops":
                    found[key] = [*found.get(key, []), *part]
                elif isinstance(part, dict):
                    found[key] = {**found.get(key, {}), **part}
                else:
                    found[key] = part
        batch = found.get("batch", 1)
        if self.named(shape)["cache"] != "direct":
            found["ios"] = max(1, min(found.get("ios", 100), _COPIED // found["bs"]))
        if "ios" in found:
            found["ios"] = -(-found["ios"] // batch) * batch
        return found

    def run(self, shape: Shape, name: str, region: int = 1) -> Run:
        """Its run."""
        rung = builtin.made(self.table(shape, name))
        (op,) = rung.can
        return Run(region, rung, op, rung.block_size or 0)

    def simpler(self, shape: Shape) -> dict[tuple[str, Value], Shape]:
        """Shapes with a simpler value of one dimension, by that: the first value, or another that
        is before the shape's own; targets, each of which takes guests, have the first only."""
        found: dict[tuple[str, Value], Shape] = {}
        for name, value in self.differing(shape).items():
            dimension = self.dimension(name)
            before = [dimension.first]
            if not dimension.numbers and name != "target":
                before = [*dimension.every[: dimension.every.index(value)]]
            for one in before:
                other = self.with_value(shape, name, one)
                if other and other != shape and other not in found.values():
                    found[name, one] = other
        return found

    def dimension(self, name: str) -> Dimension:
        return self.dimensions[self._at[name]]


def _dimension(table: JsonObject) -> Dimension:
    return Dimension(
        table["name"], table.get("value", {}), tuple(table.get("numbers", ())),
        table.get("option", ""), table.get("key", ""), table.get("unit", 1), table.get("most", 0),
        table["usual"], table.get("with", {}),
    )  # fmt: skip


@cache
def space(patterns: tuple[str, ...] = ()) -> Space:
    """The space of search.toml."""
    return Space(Path(__file__).parent / "search.toml", patterns)


def toml(table: JsonObject, kind: str = "rung") -> str:
    """A table [[KIND]] as text."""
    return "\n".join(
        [f"[[{kind}]]", *(f"{key} = {_toml(value)}" for key, value in table.items()), ""]
    )


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value.translate(_SYNTAX)}"'
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        parts = ", ".join(f"{_toml(key)} = {_toml(part)}" for key, part in value.items())
        return f"{{ {parts} }}" if parts else "{}"
    return str(value)


# fio's names of engines, and what of ioloop's options fio has as well.
_ENGINES = {
    "sync": "psync", "vsync": "pvsync2", "libaio": "libaio", "io_uring": "io_uring",
    "mmap": "mmap", "splice": "splice",
}  # fmt: skip
_SAME = (
    "direct", "iodepth", "offset", "invalidate", "size", "hipri", "nowait", "fixedbufs",
    "registerfiles", "uncached", "atomic", "prioclass", "prio",
)  # fmt: skip
_OTHERS = {"dsync": "sync=dsync", "hugepages": "iomem=mmaphuge", "userspace_reap": "userspace_reap"}


def fio(run: Run) -> str:
    """A job of fio that does the same; empty if fio cannot."""
    target = run.rung.target or ""
    if "biogen" in target:
        return ""
    lines = [f"filename={target}", f"bs={run.block_size}"]
    pattern = "fixed"
    for word in run.rung.options:
        name, _, value = word.removeprefix("--").partition("=")
        if name == "ioengine" and value in _ENGINES:
            lines.append(f"ioengine={_ENGINES[value]}")
        elif name == "pattern":
            pattern = value
        elif name in _SAME:
            lines.append(f"{name}={value or 1}")
        elif name in _OTHERS:
            lines.append(_OTHERS[name])
        else:
            return ""
    rw = run.op if pattern != "random" else f"rand{run.op}"
    lines.append(f"rw={rw}")
    if pattern == "fixed":
        lines = [line for line in lines if not line.startswith("size=")]
        lines.append(f"size={run.block_size}")
    return "\n".join(["[shape]", *lines, f"number_ios={run.ios}", "loops=1000000", ""])
