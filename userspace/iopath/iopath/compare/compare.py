# SPDX-License-Identifier: GPL-2.0
"""Compare kernels with the first one: results of either kind."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

from iopath.base.errors import IopathError, UsageError
from iopath.compare import attribution, exact, times
from iopath.compare.changes import Comparison
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import ExactResult, HardwareResult, Result, Some

NOTHING = "nothing to compare with: give two kernels or result files, or more"

Named = tuple[str, Some]  # the name of a file, and its result


def join(parts: Sequence[Named[Some]]) -> Some:
    """One result of several of the same kind. The name of a kernel that several files have is
    followed by the name of the file."""
    if len({type(part) for _, part in parts}) > 1:
        timed = next(name for name, part in parts if isinstance(part, HardwareResult))
        raise IopathError(
            f"{timed} holds times of a machine, another file instructions of a guest:"
            " these cannot be compared"
        )
    often = Counter(name for _, part in parts for name in part.names)
    taken: set[str] = set()
    found = []
    for file, part in parts:
        names = {name: f"{name} ({file})" for name in part.names if often[name] > 1}
        for name in (name for name, shown in names.items() if shown in taken):
            raise UsageError(f"{file}: {name} is also in another file of the same name")
        taken |= {*names.values()}
        found.append(result.renamed(part, names) if names else part)
    return result.join(found)


@dataclass(frozen=True)
class Compared:
    """A result, and how its kernels differ from the first one."""

    whole: Result
    comparison: Comparison

    @property
    def wanted(self) -> dict[str, int]:
        return self.comparison.wanted


def compare_all(parts: Sequence[Named[Result]], layers: Layers, *, anyway: bool) -> Compared:
    """The joined result of *parts*, compared. Raises IopathError if something else differs than the
    kernel, unless *anyway*; then it is a label."""
    whole = join(parts)
    differing = incomparable(whole, parts)
    if differing and not anyway:
        raise IopathError(
            f"more than the kernel differs: {'; '.join(differing)}"
            " (--anyway compares them regardless)"
        )
    found = compared(whole, layers)
    found.comparison.labels[:0] = differing
    found.comparison.brief[:0] = differing
    return found


def compared(whole: Result, layers: Layers) -> Compared:
    return Compared(whole, compare(whole, layers))


@singledispatch
def incomparable(whole: Result, parts: Sequence[Named[Result]]) -> list[str]:
    """The differences of *parts* besides the kernels, in words."""
    raise TypeError(whole)


@singledispatch
def compare(whole: Result, layers: Layers) -> Comparison:
    """How the kernels of a result differ from its first one."""
    raise TypeError(whole)


@incomparable.register
def _(whole: ExactResult, parts: Sequence[Named[Result]]) -> list[str]:
    return exact.incomparable(whole)


@incomparable.register
def _(whole: HardwareResult, parts: Sequence[Named[Result]]) -> list[str]:
    return times.incomparable(parts)


@compare.register
def _(whole: ExactResult, layers: Layers) -> Comparison:
    _need_two(whole)
    attribution.relayer(whole.results, layers)
    return exact.compare(whole, layers)


@compare.register
def _(whole: HardwareResult, layers: Layers) -> Comparison:
    _need_two(whole)
    return times.compare(whole)


def _need_two(whole: Result) -> None:
    if len(whole.kernels) < 2:
        raise UsageError(NOTHING)
