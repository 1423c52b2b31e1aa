# SPDX-License-Identifier: GPL-2.0
"""Labels: what differs between kernels besides their code."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from iopath.results.kernelinfo import matters
from iopath.results.result import Kernel

_LISTED = 20  # more options than this are counted, not listed

_GROUPS = ("options", "other options", "options that some kernels lack")
_KINDS = ("compiler", *_GROUPS, "options of modules", "shims")  # what labels begin with


def labels(kernels: Sequence[Kernel]) -> Iterator[str]:
    """What differs between the kernels besides their code."""
    arches = {kernel.name: kernel.arch for kernel in kernels}
    if len(set(arches.values())) > 1:
        yield "architecture: " + "; ".join(f"{name} {text}" for name, text in arches.items())
    compilers = {kernel.name: kernel.compiler for kernel in kernels}
    if len(set(compilers.values())) > 1:
        yield "compiler: " + "; ".join(f"{name} {text}" for name, text in compilers.items())
    yield from _option_labels(kernels)
    shims = {kernel.name: kernel.shims for kernel in kernels}
    if len(set(shims.values())) > 1:
        yield "shims: " + "; ".join(f"{name} {text or 'none'}" for name, text in shims.items())


def options(kernels: Sequence[Kernel]) -> dict[str, list[str]]:
    """Every option that differs, with its value in each kernel; "" where a kernel does not have it.

    An option that a kernel does not have counts as switched off.
    """
    found = {}
    for option in dict.fromkeys(option for kernel in kernels for option in kernel.config):
        values = [kernel.config.get(option, "") for kernel in kernels]
        if len({value or "n" for value in values}) > 1:
            found[option] = values
    return found


def brief(found: Sequence[str]) -> list[str]:
    """Labels in a few words: the kinds of those that each pair of kernels may have on one line, the
    others in full."""
    kinds = [label.partition(":")[0] for label in found]
    usual = [kind for kind in kinds if kind in _KINDS]
    full = [label for label, kind in zip(found, kinds, strict=True) if kind not in _KINDS]
    return [*full, ", ".join(usual)] if usual else full


def _short(values: Sequence[str]) -> list[str]:
    """The values of an option; of lists (LSM) only the entries that some of them lack."""
    if any("," in value for value in values):
        lists = [value.split(",") for value in values]
        common = set.intersection(*map(set, lists))
        values = [",".join(entry for entry in one if entry not in common) for one in lists]
    return [value or "-" for value in values]


def _option_labels(kernels: Sequence[Kernel]) -> Iterator[str]:
    """The options that differ: those that affect path length, other built-in options, options that
    some kernels lack. Options of modules come last: guests do not load those modules."""
    groups: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for option, values in options(kernels).items():
        if matters(option):
            groups["options"][option] = values
        elif "m" in values and {*values} <= {"m", "n", ""}:
            groups["options of modules"][option] = values
        elif "" in values:
            groups["options that some kernels lack"][option] = values
        else:
            groups["other options"][option] = values
    for name in _GROUPS:
        found = groups[name]
        if len(found) > _LISTED and name != "options":
            yield f"{name}: {len(found)} (--json lists them)"
        elif found:
            yield f"{name}: " + ", ".join(
                f"{option} {'/'.join(_short(values))}" for option, values in found.items()
            )
    if modules := groups["options of modules"]:
        yield f"options of modules: {len(modules)} (--json lists them)"
