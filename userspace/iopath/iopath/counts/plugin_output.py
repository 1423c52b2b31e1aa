# SPDX-License-Identifier: GPL-2.0
"""What the plugin pathcount wrote (Documentation/pathcount.rst), as far as iopath reads it."""

import itertools
import json
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from iopath.base.arch import Arch, named
from iopath.base.errors import IopathError
from iopath.base.typed import JsonObject
from iopath.results.metrics import OF_ROUND, PLACES, TALLIES

_OTHER_TASKS = 1  # the context of what is neither the task nor entered from it

FORMAT = 4
_OF_ROUND = tuple(metric.source.round for metric in OF_ROUND)
_PLACES = {metric.source.places[0] for metric in PLACES if metric.source.places}
_BUILD = "build both from one source (make userspace)"


class MiscountError(IopathError):
    """The plugin counted nothing, or its regions were not as they should be."""


@dataclass(frozen=True)
class Block:
    """A straight run of instructions as the emulator translated it: the length and the kind of each
    instruction."""

    address: int
    lengths: Sequence[int]
    kinds: str

    @property
    def addresses(self) -> list[int]:
        """Where its instructions begin."""
        return list(itertools.accumulate(self.lengths[:-1], initial=self.address))


@dataclass(frozen=True)
class Round:
    """A round of a region. It is *quiet* if no interrupt came, or as many as belong to its I/Os;
    *user* are the instructions in user mode, *others* those of other tasks, outside of interrupts.
    A repeated string instruction is one of the *instructions*; its other *iterations* are
    not, but the guest's clock counts them. *counts* has those of the table of metrics, by the
    plugin's name. The number of distinct *places*, such as cache lines, by name and kind, is
    counted in some rounds only, and so is the *model*: the misses by the state of the CPU before.
    """

    instructions: int
    iterations: int
    user: int
    others: int
    quiet: bool
    unmatched: int
    counts: Mapping[str, int]
    places: Mapping[str, Mapping[str, int]]
    model: Mapping[str, Mapping[str, int]] | None


class Executed(NamedTuple):
    """The executions of a block: the number of its first instructions, and how many *times* they
    were executed. *counts* has the counts of metrics.py, in that order, such as memory accesses. If
    a string instruction ends the block, its bytes are counted, too. *instructions* includes a
    string instruction only after its last iteration."""

    block: int
    instructions: int
    times: int
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Node:
    """A function in the call tree of a region; *site* is where it was called from. *median* has
    what it executed in the median round; *rows* and *order* tell *quiet* and *disturbed*, in all
    rounds."""

    address: int
    parent: int | None
    site: int | None
    median: Sequence[Executed]
    rows: Mapping[str, Sequence[Sequence[int]]]
    order: Sequence[int]

    @property
    def quiet(self) -> list[Executed]:
        return _executed(self.rows.get("quiet", ()), self.order)

    @property
    def disturbed(self) -> list[Executed]:
        return _executed(self.rows.get("disturbed", ()), self.order)


@dataclass
class Region:
    """What was counted between the markers of one region. *median* is the round of median length of
    the quiet ones."""

    median: int | None
    rounds: list[Round] = field(default_factory=list)
    nodes: dict[int, Node] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """What was executed beside the task in one place of the calls: *parent* is the place of the
    caller in the list, *kind* and *site* are as the plugin writes them."""

    parent: int | None
    kind: str
    address: int
    site: int
    instructions: int


class ContextEntry(NamedTuple):
    """Where a context was entered, and how often."""

    address: int
    times: int


class InContext(NamedTuple):
    """How many *times* the first instructions of a block were executed, and on whose behalf: in a
    context of a flat region, or for a bucket of a program."""

    block: int
    instructions: int
    context: int
    times: int


class FlatRound(NamedTuple):
    """A round of a region that is counted flat, in all contexts; *entries* by context."""

    instructions: int
    iterations: int
    switches: int
    entries: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Flat:
    """What a CPU executed in a region that is counted flat. In a guest with several CPUs, *lengths*
    are the instructions of its task in each round that was not left out, and nothing is known of
    *each* round and of parts."""

    entries: dict[int, ContextEntry]  # by context
    counts: Sequence[InContext]
    rounds: int
    switches: int  # to another task
    iterations: int  # of string instructions, see Round
    cpu: int
    left_out: int
    lengths: list[int]
    parts: Sequence[Part]  # callers come first
    each: Sequence[FlatRound] = ()


@dataclass(frozen=True)
class Access:
    """What an instruction on a CPU does to a line: *at* is the address of the first byte."""

    cpu: int
    pc: int
    locked: bool
    store: bool
    bytes: int
    times: int
    at: int
    physical: int


@dataclass(frozen=True)
class Use:
    """An access to a shared line, in a context, and the number of rounds that it happened in."""

    line: int
    context: int
    rounds: int
    access: Access


@dataclass(frozen=True)
class Bucket:
    """What a part of a program's instructions is counted for; the fields are as the plugin writes
    them."""

    kind: str
    address: int
    beside: bool
    user: bool
    times: int
    instructions: int
    before: int


@dataclass(frozen=True)
class CallRegion:
    """A region that is counted by system calls."""

    begun: int
    tried: int
    iterations: int
    switches: int
    unmatched: int
    last: int
    counts: Sequence[InContext]


@dataclass
class Output:
    """The plugin's output of one guest."""

    arch: Arch
    blocks: dict[int, Block] = field(default_factory=dict)
    regions: dict[int, Region] = field(default_factory=dict)
    flats: dict[int, list[Flat]] = field(default_factory=lambda: defaultdict(list))  # of each CPU
    uses: dict[int, list[Use]] = field(default_factory=lambda: defaultdict(list))  # by region
    buckets: list[Bucket] = field(default_factory=list)
    calls: CallRegion | None = None


def read(lines: Iterable[str], trees: Container[int] | None = None) -> Output:
    """The plugin's output, with the call trees of all regions or of those in *trees*. Raises
    IopathError if it is not complete."""
    if trees is not None:
        lines = (line for line in lines if not _is_node(line) or _region_of(line) in trees)
    try:
        return _read(map(json.loads, lines))
    except ValueError as error:
        raise IopathError(f"pathcount's output cannot be read: {error}") from error
    except KeyError as error:
        raise IopathError(f"pathcount's output cannot be read: it lacks {error}") from error


_NODE = '{"type":"node","region":'


def _is_node(line: str) -> bool:
    return line.startswith(_NODE)


def _region_of(line: str) -> int:
    """The region of a node."""
    return int(line[len(_NODE) : line.index(",", len(_NODE))])


def _read(records: Iterable[JsonObject]) -> Output:
    found = None
    order: Sequence[int] = ()
    for record in records:
        kind = record["type"]
        if kind == "pathcount":
            if record["format"] != FORMAT:
                raise IopathError(
                    f"pathcount writes format {record['format']}, this iopath reads {FORMAT}:"
                    f" {_BUILD}"
                )
            found = Output(named(record["target"]))
            order = _order(record["counts"])
        elif found is None:
            raise ValueError(f"it begins with {kind}")
        elif kind == "end":
            if record["errors"]:
                raise MiscountError(f"pathcount: {'; '.join(record['errors'])}")
            return found
        elif kind == "block":
            found.blocks[record["block"]] = Block(
                int(record["addr"], 16), record["lens"], record["kinds"]
            )
        elif kind == "region":
            found.regions[record["region"]] = Region(record["median_round"])
        elif kind == "round":
            found.regions[record["region"]].rounds.append(_round(record))
        elif kind == "node":
            found.regions[record["region"]].nodes[record["node"]] = _node(record, order)
        elif kind == "flat":
            found.flats[record["region"]].append(_flat(record))
        elif kind == "access":
            found.uses[record["region"]].append(_use(record))
        elif kind == "bucket":
            found.buckets.append(_bucket(record))
        elif kind == "calls":
            found.calls = _calls(record)
    raise IopathError("pathcount's output ends early")


def _order(names: Sequence[str]) -> list[int]:
    """Where the plugin's output has the counts of a block, in the order of the metrics."""
    wanted = [metric.source.tally for metric in TALLIES]
    if missing := [name for name in wanted if name not in names]:
        raise IopathError(f"pathcount does not count {', '.join(missing)}: {_BUILD}")
    return [names.index(name) for name in wanted]


def _round(record: JsonObject) -> Round:
    shares = record.get("contexts", ())
    user = sum(user for _, user, _ in shares)
    others = sum(user + kernel for context, user, kernel in shares if context == _OTHER_TASKS)
    return Round(
        record["instructions"], record["iterations"], user, others, record["quiet"],
        record["unmatched"], {name: record.get(name, 0) for name in _OF_ROUND},
        {name: record[name] for name in _PLACES if name in record}, record.get("model"),
    )  # fmt: skip


def _node(record: JsonObject, order: Sequence[int]) -> Node:
    site = record.get("site")
    return Node(
        int(record["addr"], 16), record.get("parent"), int(site, 16) if site else None,
        _executed(record.get("median", ()), order), record, order,
    )  # fmt: skip


def _executed(rows: Iterable[Sequence[int]], order: Sequence[int]) -> list[Executed]:
    """Counts at the end of a row that are 0 are not written."""
    return [
        Executed(
            block, executed, times,
            tuple(counts[at] if at < len(counts) else 0 for at in order),
        )
        for block, executed, times, *counts in rows
    ]  # fmt: skip


def _flat(record: JsonObject) -> Flat:
    entries = {
        context: ContextEntry(int(address, 16), times)
        for context, address, times in record["entries"]
    }
    parts = [
        Part(None if parent < 0 else parent, kind, int(address, 16), int(site, 16), instructions)
        for parent, kind, address, site, instructions in record.get("parts", ())
    ]
    return Flat(
        entries, [InContext(*row) for row in record["counts"]], record["rounds"],
        record["switches"], record["iterations"], record.get("cpu", 0),
        record.get("left_out", 0), record.get("lengths", []), parts,
        [FlatRound(*row) for row in record.get("each", ())],
    )  # fmt: skip


def _use(record: JsonObject) -> Use:
    touched, line = int(record["bytes"], 16), int(record["line"], 16)
    first = (touched & -touched).bit_length() - 1
    access = Access(
        record["cpu"], int(record["pc"], 16), record["kind"] == "L", record["store"], touched,
        record["times"], int(record["virt"], 16) + first, line + first,
    )  # fmt: skip
    return Use(line, record["context"], record["rounds"], access)


def _bucket(record: JsonObject) -> Bucket:
    return Bucket(
        record["kind"], int(record["addr"], 16), record["beside"], record["user"],
        record["times"], record["instructions"], record["before"],
    )  # fmt: skip


def _calls(record: JsonObject) -> CallRegion:
    return CallRegion(
        record["begun"], record["tried"], record["iterations"], record["switches"],
        record["unmatched"], record["last"], [InContext(*row) for row in record["counts"]],
    )  # fmt: skip
