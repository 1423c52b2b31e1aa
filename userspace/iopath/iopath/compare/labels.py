# SPDX-License-Identifier: GPL-2.0
"""Labels: what differs between kernels besides their code."""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from iopath.base.versions import version_key
from iopath.results.kernelinfo import matters
from iopath.results.result import MeasuredKernel

_LISTED = 20  # more options than this are counted, not listed

_GROUPS = ("options", "other options", "options that some kernels lack")
_COMPILER = re.compile(r"\b(gcc|clang)\b.*?(\d+\.\d+(?:\.\d+)?)", re.IGNORECASE)


# The options that differ, as options() gives them.
Options = Mapping[str, Sequence[str]]


def labels(kernels: Sequence[MeasuredKernel], differing: Options) -> Iterator[str]:
    """What differs between the kernels besides their code."""
    arches = {kernel.name: kernel.arch for kernel in kernels}
    if len(set(arches.values())) > 1:
        yield "architecture: " + "; ".join(f"{name} {text}" for name, text in arches.items())
    compilers = {kernel.name: kernel.compiler for kernel in kernels}
    if len(set(compilers.values())) > 1:
        yield "compiler: " + "; ".join(f"{name} {text}" for name, text in compilers.items())
    yield from _option_labels(differing)
    shims = {kernel.name: kernel.shims for kernel in kernels}
    if len(set(shims.values())) > 1:
        yield "shims: " + "; ".join(f"{name} {text or 'none'}" for name, text in shims.items())


def options(kernels: Sequence[MeasuredKernel]) -> dict[str, list[str]]:
    """Every option that differs, with its value in each kernel; "" where a kernel does not have it.

    An option that a kernel does not have counts as switched off.
    """
    found = {}
    configs = [kernel.config for kernel in kernels]
    same = dict(set.intersection(*(set(config.items()) for config in configs)))
    for option in dict.fromkeys(itertools.chain(*configs)):
        if option in same:
            continue
        values = [config.get(option, "") for config in configs]
        if len({value or "n" for value in values}) > 1:
            found[option] = values
    return found


def brief(kernels: Sequence[MeasuredKernel], differing: Options) -> list[str]:
    """The labels in a few words. Options of modules are left out: guests do not load those."""
    found = []
    if len(arches := dict.fromkeys(kernel.arch for kernel in kernels)) > 1:
        found.append(" and ".join(map(str, arches)))
    if len({kernel.compiler for kernel in kernels}) > 1:
        found.append(_compilers([kernel.compiler for kernel in kernels]))
    groups = _groups(differing)
    matter, every = len(groups[_GROUPS[0]]), sum(len(groups[group]) for group in _GROUPS)
    if matter:
        found.append(_options(matter, "relevant"))
    if every > matter:
        found.append(_options(every - matter, "other"))
    if len({kernel.shims for kernel in kernels}) > 1:
        found.append("compatibility code of iopath's modules")
    return found


def _options(number: int, what: str) -> str:
    return f"1 {what} option" if number == 1 else f"{number} {what} options"


def version_of(compiler: str) -> tuple[str, str]:
    """The name of a compiler and its version: GCC, 14.2.0; the whole text if it has no version."""
    match = _COMPILER.search(compiler)
    names = {"gcc": "GCC", "clang": "Clang"}
    return (names[match[1].lower()], match[2]) if match else (compiler, "")


def built_by(one: MeasuredKernel, other: MeasuredKernel) -> Sequence[str]:
    """The names of the compilers that built the same commit for two kernels with the same relevant
    options; nothing if anything else differs."""
    compilers = [version_of(kernel.compiler) for kernel in (one, other)]
    same = (one.origin or "").startswith("git ") and one.origin == other.origin
    if not same or compilers[0] == compilers[1] or any(map(matters, options([one, other]))):
        return ()
    names = [name for name, _ in compilers]
    return names if names[0] != names[1] else [" ".join(part) for part in compilers]


def _compilers(texts: Sequence[str]) -> str:
    """The compilers in the order of the kernels, by their major versions if these differ: "GCC 12
    to 14" if the second kernel has the newer one."""
    found = list(dict.fromkeys(map(version_of, texts)))
    if not all(version for _, version in found):
        return "compilers"
    if len(found) == 1:
        return "two builds of {} {}".format(*found[0])
    names = dict.fromkeys(name for name, _ in found)
    if len(names) > 1:
        return " and ".join(f"{name} {version}" for name, version in found)
    majors = list(dict.fromkeys(version.partition(".")[0] for _, version in found))
    versions = majors if len(majors) > 1 else [version for _, version in found]
    keys = [version_key(version) for version in versions]
    if keys in (sorted(keys), sorted(keys, reverse=True)):
        versions = [versions[0], versions[-1]]
    return f"{next(iter(names))} {' to '.join(versions)}"


def _short(values: Sequence[str]) -> list[str]:
    """The values of an option; of lists (LSM) only the entries that some of them lack."""
    if any("," in value for value in values):
        lists = [value.split(",") for value in values]
        common = set.intersection(*map(set, lists))
        values = [",".join(entry for entry in one if entry not in common) for one in lists]
    return [value or "-" for value in values]


def _groups(differing: Options) -> dict[str, dict[str, Sequence[str]]]:
    """The options that differ: those that affect path length, other built-in options, options that
    some kernels lack. Options of modules are apart: guests do not load those modules."""
    groups: dict[str, dict[str, Sequence[str]]] = defaultdict(dict)
    for option, values in differing.items():
        if matters(option):
            groups["options"][option] = values
        elif "m" in values and {*values} <= {"m", "n", ""}:
            groups["options of modules"][option] = values
        elif "" in values:
            groups["options that some kernels lack"][option] = values
        else:
            groups["other options"][option] = values
    return groups


def _option_labels(differing: Options) -> Iterator[str]:
    groups = _groups(differing)
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
