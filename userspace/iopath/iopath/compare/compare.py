# SPDX-License-Identifier: GPL-2.0
"""Compare kernels with the first one: results of either kind."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import singledispatch
from pathlib import Path
from typing import Any

from iopath.base.errors import IopathError, UsageError
from iopath.compare import attribution, exact, times
from iopath.compare.changes import Comparison
from iopath.results.layers import Layers
from iopath.results.result import ExactResult, HardwareResult, Result, alone, of_kernel

NOTHING = "nothing to compare with: give two kernels or result files, or more"

Named = tuple[str, Any]  # the name of a file, and its result


def in_order(
    names: Sequence[str], files: Mapping[str, Result], measured: Result | None
) -> list[Named]:
    """The results of *files* and of the kernels that were *measured*, in the order of *names*. The
    others are compared with the first one."""
    parts: list[Named] = []
    for name in names:
        if name in files:
            parts.append((Path(name).name, files[name]))
        elif measured:
            parts.append(("measured now", alone(measured, name)))
    return parts


def merge(parts: Sequence[Named]) -> Any:  # noqa: ANN401
    """One result of several of the same kind. The name of a kernel that several files have is
    followed by the name of the file."""
    if len({type(part) for _, part in parts}) > 1:
        timed = next(name for name, part in parts if isinstance(part, HardwareResult))
        raise IopathError(
            f"{timed} holds times of a machine, another file instructions of a guest:"
            " these cannot be compared"
        )
    names = [name for _, part in parts for name in part.names]
    kernels: list[Any] = []
    results: list[Any] = []
    for file, part in parts:
        for kernel in part.kernels:
            name = kernel.name
            shown = f"{name} ({file})" if names.count(name) > 1 else name
            if any(shown == other.name for other in kernels):
                raise UsageError(f"{file}: {name} is also in another file of the same name")
            kernels.append(replace(kernel, name=shown))
            results += [
                replace(record, kernel=replace(record.kernel, name=shown))
                for record in of_kernel(part.results, name)
            ]
    return replace(parts[0][1], kernels=kernels, results=results)


def compare_all(parts: Sequence[Named], layers: Layers, *, anyway: bool) -> tuple[Any, Comparison]:
    """The merged result of *parts*, and how its kernels differ from the first one. Raises
    IopathError if something else differs than the kernel, unless *anyway*; then it is a label."""
    whole = merge(parts)
    differing = incomparable(whole, parts)
    if differing and not anyway:
        raise IopathError(
            f"more than the kernel differs: {'; '.join(differing)}"
            " (--anyway compares them regardless)"
        )
    comparison = compare(whole, layers)
    comparison.labels = [*differing, *comparison.labels]
    comparison.brief = [*differing, *comparison.brief]
    return whole, comparison


@singledispatch
def incomparable(whole: Result, parts: Sequence[Named]) -> list[str]:
    """The differences of *parts* besides the kernels, in words."""
    raise TypeError(whole)


@singledispatch
def compare(whole: Result, layers: Layers) -> Any:  # noqa: ANN401
    """How the kernels of a result differ from its first one."""
    raise TypeError(whole)


@incomparable.register
def _(whole: ExactResult, parts: Sequence[Named]) -> list[str]:
    return exact.incomparable(parts)


@incomparable.register
def _(whole: HardwareResult, parts: Sequence[Named]) -> list[str]:
    return times.incomparable(parts)


@compare.register
def _(whole: ExactResult, layers: Layers) -> Any:  # noqa: ANN401
    _need_two(whole)
    attribution.relayer(whole.results, layers)
    return exact.compare(whole, layers)


@compare.register
def _(whole: HardwareResult, layers: Layers) -> Any:  # noqa: ANN401
    _need_two(whole)
    return times.compare(whole)


def _need_two(whole: Result) -> None:
    if len(whole.kernels) < 2:
        raise UsageError(NOTHING)
