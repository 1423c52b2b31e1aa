# SPDX-License-Identifier: GPL-2.0
"""The numbers that the page's script works on, as compact as they can be."""

from collections.abc import Mapping, Sequence

from iopath.compare import attribution, labels
from iopath.compare.changes import Comparison
from iopath.compare.sharing_changes import differing
from iopath.results.layers import Layers
from iopath.results.profiles import COSTLY
from iopath.results.result import ExactRecord, ExactResult, Result, Row, RungRecord
from iopath.results.shared import LineAccess, SharedLine, Sharing
from iopath.results.symbol import Symbol, plain
from iopath.show.palette import Palette

_NONE = -1  # instead of the number of a function that a profile lacks


def data(
    result: Result, steps: Mapping[str, Comparison], layers: Layers, palette: Palette
) -> dict[str, object]:
    """The profiles of all rungs and kernels, and how each two of them differ. *steps* compares
    each kernel with the one before it."""
    profiles = [record.profile for record in result.results if record.profile]
    used = dict.fromkeys(name for profile in profiles for name in profile.layers)
    order = [name for name in layers.names if name in used]
    order = list(dict.fromkeys([*order, *used, "other"]))
    columns = {name for profile in profiles for name in profile.columns}
    counts = [*result.counted, *(name for name in COSTLY if name in columns)]
    names = _Names(order, counts)
    rows = result.rows()
    between = _between(result, layers) if isinstance(result, ExactResult) else {}
    rungs = [
        {
            "title": row.title,
            "key": f"{row.rung}/{row.op}/{row.block_size}",
            "profiles": [
                names.profile(row.records[kernel])
                if kernel in row.records and row.records[kernel].profile
                else None
                for kernel in result.names
            ],
            "joined": {
                f"{one},{two}": _joined(row, result.names[one], result.names[two], names, *how)
                for (one, two), how in between.items()
                if all(
                    result.names[at] in row.records and row.records[result.names[at]].profile
                    for at in (one, two)
                )
            },
            **_shared(row, result.names, names),
        }
        for row in rows
    ]
    return {
        "kernels": result.names,
        "kernel": _kernel(result.names, steps),
        "profiled": result.profiled,
        "per": result.per,
        "starts": [_start(rows, steps.get(name), name) for name in result.names],
        "counts": counts,
        "names": names.texts,
        "canonical": names.canonical,
        "layerOf": names.layers,
        "layers": [[name, palette.number(name)] for name in order],
        "groups": [[group.name, group.colour, group.ink] for group in palette.groups],
        "rungs": rungs,
        "shared": any("shared" in rung for rung in rungs),
    }


def _shared(row: Row, kernels: Sequence[str], names: "_Names") -> dict[str, object]:
    """What CPUs share on each kernel, and the lines that differ between each two of them: the
    number of the line on either, or none. Empty if the rung ran on one CPU only."""
    found = [getattr(row.records.get(kernel), "sharing", None) for kernel in kernels]
    if not any(found):
        return {}
    return {
        "shared": [
            _sharing(row.records[kernel], sharing, names) if sharing else None
            for kernel, sharing in zip(kernels, found, strict=True)
        ],
        "differing": {
            f"{one},{two}": [
                [_place(before, first), _place(after, second)]
                for first, second in differing(before, after)
            ]
            for two, after in enumerate(found)
            for one, before in enumerate(found[:two])
            if before and after
        },
    }


def _place(sharing: Sharing, line: SharedLine | None) -> int:
    return sharing.lines.index(line) if line else _NONE


def _sharing(record: ExactRecord, sharing: Sharing, names: "_Names") -> dict[str, object]:
    def access(part: LineAccess) -> list[object]:
        function = names.symbol(Symbol(part.function, part.module), "other")
        return [function, part.cpu, part.at, int(part.locked), part.per_io, part.bytes or []]

    return {
        "alone": record.instructions_per_io,
        "arrangements": [
            [part.name, part.instructions_per_io, sum(part.rounds), sum(part.rounds_left_out)]
            for part in sharing.arrangements
        ],
        "lines": [
            {
                "arrangement": line.arrangement,
                "where": line.where,
                "kind": line.kind,
                "lines": line.lines,
                "perIo": [line.per_io(part) for part in (line.reads, line.writes, line.locked)],
                "reads": list(map(access, line.reads)),
                "writes": list(map(access, line.writes)),
            }
            for line in sharing.lines
        ],
    }


def _between(
    result: ExactResult, layers: Layers
) -> dict[tuple[int, int], tuple[attribution.Renamed, Sequence[str]]]:
    """The functions that are renamed between each two kernels, and the compilers if these are all
    that they differ by. By the kernels' numbers."""
    executed = list(attribution.executed(result).values())
    return {
        (one, two): (
            layers.renamed(executed[one], executed[two]),
            labels.built_by(result.kernels[one], result.kernels[two]),
        )
        for two in range(len(executed))
        for one in range(two)
    }


def _joined(
    row: Row,
    one: str,
    two: str,
    names: "_Names",
    renamed: attribution.Renamed,
    compilers: Sequence[str],
) -> dict[str, object]:
    """How two profiles differ, by function and by layer."""
    before, after = row.records[one], row.records[two]
    pairs = attribution.pair(before.profile, after.profile, renamed, compilers)
    change = after.instructions_per_io - before.instructions_per_io
    return {
        "functions": [
            [
                names.symbol(part.old, part.layer),
                names.symbol(part.new, part.layer),
                names.layer(part.layer),
                _small(part.before["instructions"]),
                _small(part.after["instructions"]),
                int(part.guessed),
                {name: part.changes[name] for name in COSTLY if part.changes[name]},
                part.inlined,
            ]
            for part in pairs
            if part.differs
        ],
        "layers": [
            [names.layer(part.layer), _small(part.before), _small(part.after)]
            for part in attribution.by_layer(pairs)
        ],
        "unattributed": round(change - attribution.attributed(pairs), 4),
    }


class _Names:
    """Numbers for functions. Each has a text, a layer, and the number of its name without the
    suffixes that compilers add."""

    def __init__(self, layers: Sequence[str], counts: Sequence[str]) -> None:
        self.texts: list[str] = []
        self.layers: list[int] = []
        self.canonical: list[int] = []
        self._numbers: dict[str, int] = {}
        self._counts = counts
        self._order = {name: number for number, name in enumerate(layers)}

    def layer(self, name: str) -> int:
        return self._order.get(name, self._order["other"])

    def symbol(self, symbol: Symbol | None, layer: str) -> int:
        return self.number(symbol.text, layer) if symbol else _NONE

    def number(self, text: str, layer: str = "other") -> int:
        if text not in self._numbers:
            number = len(self.texts)
            self._numbers[text] = number
            self.texts.append(text)
            self.layers.append(self.layer(layer))
            self.canonical.append(number)
            name, _, module = text.partition(" ")
            canonical = f"{plain(name)} {module}".rstrip()
            if canonical != text:
                self.canonical[number] = self.number(canonical, layer)
        return self._numbers[text]

    def profile(self, record: RungRecord) -> dict[str, object]:
        """A profile's functions, a row each, and its call tree. The *total* of the functions may be
        some hundredths less than the *figure*, since the clock counts its own reading."""
        profile = record.profile
        exact = isinstance(record, ExactRecord)
        return {
            "figure": record.instructions_per_io if exact else profile.total,
            "total": profile.total,
            "kernel": profile.kernel,
            "functions": [
                [
                    self.number(part.symbol.text, part.layer),
                    *(_small(part.count(count)) for count in self._counts),
                ]
                for part in profile.functions
            ],
            "stacks": self._tree(profile.stacks),
            **profile.beside,
        }

    def _tree(self, stacks: Sequence[tuple[str, float]]) -> list[float]:
        """The call tree from the top down: depth, function and own instructions of each node."""
        flat: list[float] = []
        above: tuple[str, ...] = ()
        for path, count in sorted((tuple(stack.split(";")), count) for stack, count in stacks):
            shared = 0
            while shared < min(len(above), len(path)) and above[shared] == path[shared]:
                shared += 1
            for depth in range(shared, len(path)):
                flat += [depth, self.number(path[depth]), 0]
            flat[-1] = _small(count)
            above = path
        return flat


def _small(value: float) -> float:
    """The number in its shortest form."""
    return int(value) if value == int(value) else value


def _start(rows: Sequence[Row], comparison: Comparison | None, name: str) -> int:
    """The row that is shown first: the one that the verdict names, or else the first I/O."""
    ranked = comparison.ranked(name) if comparison else []
    if ranked:
        return [row.key for row in rows].index(ranked[0].key)
    return next((index for index, row in enumerate(rows) if row.op != "none"), 0)


def _kernel(names: Sequence[str], steps: Mapping[str, Comparison]) -> int:
    """The kernel that is shown first: the one with the largest change of an I/O against the one
    before it, or else the last."""
    ranks = {
        name: ranked[0].differences[name].rank
        for name, step in steps.items()
        if (ranked := step.ranked(name)) and ranked[0].does_io
    }
    return names.index(min(ranks, key=lambda name: ranks[name])) if ranks else len(names) - 1
