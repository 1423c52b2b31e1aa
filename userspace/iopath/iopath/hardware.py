# SPDX-License-Identifier: GPL-2.0
"""Compare measurements of machines: times, with their confidence intervals and noise."""

from collections.abc import Mapping, Sequence
from typing import Any

from iopath.errors import UsageError
from iopath.samples import COUNTERS

# What two results must have in common for their difference to be the kernel's.
_SAME = ("cpu_model", "microcode", "cpus", "governor", "boost", "smt_siblings", "guest")


def incomparable(results: Sequence[tuple[str, dict[str, Any]]]) -> list[str]:
    """What differs between measurements of machines besides the kernel, in words."""
    first_name, first = results[0]
    found = []
    for name, other in results[1:]:
        for field in _SAME:
            one, two = first["machine"][field], other["machine"][field]
            if one != two:
                found.append(f"{field}: {str(one)!r} and {str(two)!r} ({first_name}, {name})")
        if first["programs"] != other["programs"]:
            found.append(f"ioloop ({first_name}, {name})")
        for module in first["kernels"][0]["modules"]:
            one, two = (part["kernels"][0]["modules"].get(module) for part in (first, other))
            if one != two:
                found.append(f"{module}: {one} and {two} ({first_name}, {name})")
    return found


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """How a figure differs, and whether that is beyond the noise: the intervals do not overlap, and
    the same measured twice does not differ as much. Boots of a guest differ by more than the
    samples of one boot do, so there a single boot of either is no verdict."""
    change = after["median"] - before["median"]
    boots = [figure["boots"] for figure in (before, after) if "boots" in figure]
    noise = max(
        before["noise"] + after["noise"],
        *((figure["high"] - figure["low"]) / 2 for figure in (before, after)),
        sum(max(part) - min(part) for part in boots),
    )
    apart = before["high"] < after["low"] or after["high"] < before["low"]
    verdict = "same"
    if any(len(part) < 2 for part in boots):
        verdict = "unknown"
    elif apart and abs(change) > noise:
        verdict = "longer" if change > 0 else "shorter"
    return {
        "difference": change,
        "percent": 100 * change / before["median"] if before["median"] else 0.0,
        "noise": noise,
        "verdict": verdict,
    }


def compare(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Compare the measurements of machines with the first, as compare.compare does exact ones: the
    difference of a rung is that of its time."""
    names = [kernel["name"] for kernel in whole["kernels"]]
    if len(names) < 2:
        raise UsageError("one measurement alone cannot be compared: give two or more")
    rows: dict[tuple[str, str, int], dict[str, dict[str, Any]]] = {}
    for record in whole["results"]:
        key = (record["rung"], record["op"], record["block_size"])
        rows.setdefault(key, {})[record["kernel"]["name"]] = record["figures"]
    rungs = []
    for (rung, op, size), figures in rows.items():
        base = figures.get(names[0])
        differences, counted = {}, {}
        for name in names[1:]:
            if base and name in figures:
                differences[name] = difference(base["ns"], figures[name]["ns"])
                counted[name] = {
                    counter: difference(base[counter], figures[name][counter])
                    for counter in COUNTERS
                    if counter in base and counter in figures[name]
                }
        rungs.append(
            {"rung": rung, "op": op, "block_size": size, "figures": figures,
             "differences": differences, "counted": counted}
        )  # fmt: skip
    return {"base": names[0], "others": names[1:], "labels": [], "rungs": rungs}
