# SPDX-License-Identifier: GPL-2.0
"""The call stacks of a result, and the text of them that flame graph tools read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from iopath.results.result import Result

_IOS = 1000  # these tools take whole numbers


@dataclass(frozen=True)
class Stacks:
    """The stacks "a;b;c" of a rung or a program on a kernel, each with what its last function took:
    instructions or ns of 1,000 I/Os, or of one run of a program. *layers* are those of
    functions."""

    kernel: str
    title: str
    unit: str
    counts: Sequence[tuple[str, int]]
    layers: Mapping[str, str] = field(default_factory=dict)


def of_result(result: Result) -> Iterator[Stacks]:
    """The stacks of all profiled records."""
    for record in result.results:
        if profile := record.profile:
            layers = {part.symbol.text: part.layer for part in profile.functions}
            counts = [(stack, round(count * _IOS)) for stack, count in profile.stacks]
            yield Stacks(record.kernel.name, record.title, result.counts[0], counts, layers)


def folded(found: Iterable[Stacks]) -> str:
    """A stack a line: "KERNEL;RUNG;a;b COUNT"."""
    lines = ((f"{one.kernel};{one.title}", *part) for one in found for part in one.counts)
    return "".join(f"{root};{stack} {count}\n" for root, stack, count in lines)
