# SPDX-License-Identifier: GPL-2.0
"""The call stacks of a result, and the text of them that flame graph tools read."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from iopath.results.result import ExactResult, Result, of_kernel
from iopath.results.syscalls import BESIDE, SUMS

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
    """The stacks of all profiled records; of a program, the functions below each of its parts."""
    if isinstance(result, ExactResult) and result.device is not None:
        yield from _of_program(result)
        return
    for record in result.results:
        if profile := record.profile:
            layers = {part.symbol.text: part.layer for part in profile.functions}
            counts = [(stack, round(count * _IOS)) for stack, count in profile.stacks]
            yield Stacks(record.kernel.name, record.title, result.counts[0], counts, layers)


def _of_program(result: ExactResult) -> Iterator[Stacks]:
    for name in result.names:
        counts, layers = [], {}
        for record in of_kernel(result.results, name):
            if record.profile and record.calls and record.calls.kind not in (*SUMS, BESIDE):
                times = max(record.calls.times[0], 1)
                for part in record.profile.functions:
                    text = part.symbol.text
                    counts.append((f"{record.op};{text}", round(part.instructions * times)))
                    layers[text] = part.layer
        program = shlex.split(result.command)[0]
        yield Stacks(name, program, "instructions", counts, layers)


def folded(found: Iterable[Stacks]) -> str:
    """A stack a line: "KERNEL;RUNG;a;b COUNT"."""
    lines = ((f"{one.kernel};{one.title}", *part) for one in found for part in one.counts)
    return "".join(f"{root};{stack} {count}\n" for root, stack, count in lines)
