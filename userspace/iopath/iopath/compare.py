# SPDX-License-Identifier: GPL-2.0
"""Compare kernels: what differs beyond the noise, and which functions and layers account for it."""

import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from iopath.errors import IopathError, UsageError
from iopath.profile import Layers, title

# Instructions per I/O below which two figures are the same: what reading the clock blurs.
RESOLUTION = 0.05

# What must be the same for a difference to be the kernel's.
_SAME = ("mode", "qemu", "machine", "programs", "source")

Key = tuple[str, str, int]  # rung, op, block size


def merge(results: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """One result of several, each given with the name of its file.

    A kernel that several files have is called by its file, too.
    """
    names = [kernel["name"] for _, part in results for kernel in part["kernels"]]
    whole: dict[str, Any] = {**results[0][1], "kernels": [], "results": []}
    for file, part in results:
        for kernel in part["kernels"]:
            name = kernel["name"]
            shown = f"{name} ({file})" if names.count(name) > 1 else name
            if any(shown == other["name"] for other in whole["kernels"]):
                raise UsageError(f"{file}: {name} is in it, and in another file of that name")
            whole["kernels"].append({**kernel, "name": shown})
            whole["results"] += [
                {**record, "kernel": {**record["kernel"], "name": shown}}
                for record in part["results"]
                if record["kernel"]["name"] == name
            ]
    return whole


def incomparable(results: Sequence[tuple[str, dict[str, Any]]]) -> list[str]:
    """What differs between results besides the kernel, in words; nothing if they are comparable."""
    first_name, first = results[0]
    found = []
    for name, other in results[1:]:
        for field in _SAME:
            if first[field] != other[field]:
                found.append(
                    f"{field}: {_differing(first[field], other[field])} ({first_name}, {name})"
                )
        for field in ("zero_fill", "coherent"):
            if first["kernels"][0][field] != other["kernels"][0][field]:
                found.append(f"{field} ({first_name}, {name})")
    return found


def _differing(one: object, other: object) -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in one | other if one.get(key) != other.get(key)]
        return ", ".join(
            f"{key} {str(one.get(key))[:40]!r} and {str(other.get(key))[:40]!r}" for key in keys
        )
    return f"{str(one)[:40]!r} and {str(other)[:40]!r}"


def compare(result: Mapping[str, Any], layers: Layers) -> dict[str, Any]:
    """Compare every kernel of *result* with the first.

    The comparison: {"base", "others", "labels", "rungs"}; "labels" say what else than its code
    differs between the kernels; each of "rungs" has the figures of every kernel and for each other
    kernel the difference, a verdict ("same", "longer", "shorter", or "unknown" without a second
    boot to tell the noise), and, of profiled results, the layers and functions that account for it,
    largest first. Those and "unattributed" (what the clock and the profile differ by) add up to it.
    """
    names = [kernel["name"] for kernel in result["kernels"]]
    if len(names) < 2:
        raise UsageError("one kernel alone cannot be compared: give two or more")
    rows: dict[Key, dict[str, dict[str, Any]]] = defaultdict(dict)
    for record in result["results"]:
        key = (record["rung"], record["op"], record["block_size"])
        rows[key][record["kernel"]["name"]] = record
    return {
        "base": names[0],
        "others": names[1:],
        "labels": list(labels(result["kernels"])),
        "rungs": [_rung(key, records, names, layers) for key, records in rows.items()],
    }


def _rung(
    key: Key, records: Mapping[str, dict[str, Any]], names: Sequence[str], layers: Layers
) -> dict[str, Any]:
    base = records.get(names[0])
    differences = {}
    for name in names[1:]:
        if base and name in records:
            differences[name] = _difference(base, records[name], layers)
    return {
        "rung": key[0],
        "op": key[1],
        "block_size": key[2],
        "figures": {
            name: {"instructions": record["instructions_per_io"], "spread": record["boot_spread"]}
            for name, record in records.items()
        },
        "differences": differences,
    }


def _difference(before: dict[str, Any], after: dict[str, Any], layers: Layers) -> dict[str, Any]:
    one, other = before["instructions_per_io"], after["instructions_per_io"]
    noise = before["boot_spread"] + after["boot_spread"]
    difference = other - one
    if len(before["boots"]) < 2 or len(after["boots"]) < 2:
        verdict = "unknown"
    elif abs(difference) <= max(noise, RESOLUTION):
        verdict = "same"
    else:
        verdict = "longer" if difference > 0 else "shorter"
    functions = _attribute(before, after, layers)
    by_layer: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in functions:
        by_layer[row["layer"]][0] += row["before"]
        by_layer[row["layer"]][1] += row["after"]
    rows = [
        {"layer": name, "before": a, "after": b, "difference": b - a}
        for name, (a, b) in by_layer.items()
    ]
    attributed = sum(row["difference"] for row in functions)
    return {
        "difference": difference,
        "percent": 100 * difference / one if one else 0.0,
        "noise": noise,
        "verdict": verdict,
        "layers": sorted(rows, key=lambda row: -abs(row["difference"])),
        "functions": [row for row in functions if row["difference"] or row["note"]],
        "unattributed": difference - attributed if functions else difference,
    }


def _attribute(
    before: dict[str, Any], after: dict[str, Any], layers: Layers
) -> list[dict[str, Any]]:
    """What each function has more or less, largest first, by its name in both."""
    if "profile" not in before or "profile" not in after:
        return []
    sides: list[dict[tuple[str, str], float]] = []
    called: list[dict[tuple[str, str], str]] = []
    layer_of: dict[tuple[str, str], str] = {}
    for record in (before, after):
        counts: dict[tuple[str, str], float] = defaultdict(float)
        original: dict[tuple[str, str], str] = {}
        largest: dict[tuple[str, str], float] = defaultdict(float)
        for function in record["profile"]["functions"]:
            key = (layers.canonical(function["name"]), function["module"])
            counts[key] += function["instructions"]
            if function["instructions"] >= largest[key]:
                largest[key] = function["instructions"]
                original[key] = function["name"]
                layer_of[key] = function["layer"]
        sides.append(counts)
        called.append(original)
    rows = []
    for key in sides[0] | sides[1]:
        old, new = called[0].get(key), called[1].get(key)
        note = ""
        if old is None:
            note = "new"
        elif new is None:
            note = "gone"
        elif layers.canonical(old) != old.split(".")[0] and old != new:
            note = f"was {old}"
        rows.append(
            {
                "name": (new or old) + (f" [{key[1]}]" if key[1] else ""),
                "layer": layer_of[key],
                "before": sides[0].get(key, 0.0),
                "after": sides[1].get(key, 0.0),
                "difference": round(sides[1].get(key, 0.0) - sides[0].get(key, 0.0), 4),
                "note": note,
            }
        )
    rows.sort(key=lambda row: (-abs(row["difference"]), row["name"]))
    return rows


def labels(kernels: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What differs between the kernels apart from their code."""
    compilers = {kernel["name"]: kernel["compiler"] for kernel in kernels}
    if len(set(compilers.values())) > 1:
        yield "compiler: " + "; ".join(f"{name} {text}" for name, text in compilers.items())
    options = []
    for option in dict.fromkeys(option for kernel in kernels for option in kernel["config"]):
        values = [kernel["config"].get(option, "n") for kernel in kernels]
        if len(set(values)) > 1:
            options.append(f"{option} {'/'.join(values)}")
    if options:
        yield "options: " + ", ".join(options)
    shims = {kernel["name"]: _shims(kernel) for kernel in kernels}
    if len(set(shims.values())) > 1:
        yield "shims: " + "; ".join(f"{name} {text or 'none'}" for name, text in shims.items())


def _shims(kernel: dict[str, Any]) -> str:
    return ", ".join(
        filter(None, (facts.get("iopath_shims", "") for facts in kernel["modules"].values()))
    )


# Limits: when a difference is a regression.


def read_limits(path: Path) -> dict[str, float]:
    """A file of limits in per cent: TOML, "RUNG" or "RUNG OP" = PERCENT."""
    try:
        table = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not a table of limits: {error}") from error
    for name, value in table.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise UsageError(f'{path}: {name} is not a number of per cent, like "dio.pread" = 0.5')
    return {name: float(value) for name, value in table.items()}


def regressions(
    comparison: Mapping[str, Any], fail_above: float, limits: Mapping[str, float]
) -> list[str]:
    """The rungs that became longer by more than their limit in per cent, in words.

    Raises IopathError where the noise is not known.
    """
    found = []
    for rung in comparison["rungs"]:
        limit = limits.get(title(rung), limits.get(rung["rung"], fail_above))
        for name, change in rung["differences"].items():
            if change["verdict"] == "unknown":
                raise IopathError(
                    f"{title(rung)}: the noise is not known: measure with two boots or more"
                )
            if change["verdict"] == "longer" and change["percent"] > limit:
                found.append(
                    f"{title(rung)}: {name} takes {change['percent']:.2f} % more than"
                    f" {comparison['base']}, {limit:g} % is allowed"
                )
    return found
