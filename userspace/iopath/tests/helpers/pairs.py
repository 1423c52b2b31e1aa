# SPDX-License-Identifier: GPL-2.0
"""Results of two kernels that differ in a known way."""

from collections import Counter
from typing import Any

from helpers.examples import BOOTS, COUNTS, a_record, a_result
from helpers.printed import printed, words
from iopath.compare.changes import ExactComparison
from iopath.compare.exact import compare
from iopath.results.layers import Layers
from iopath.results.result import dump, parse
from iopath.show import terminal

Row = tuple[str, str, dict[str, Any]]  # a function: its name, its layer and its counts


def profiled(kernel: str, functions: list[Row], **lines: float) -> dict[str, Any]:
    """A record of dio.pread whose profile has these functions."""
    stacks = [((name,), layer, counts["instructions"]) for name, layer, counts in functions]
    record = a_record(kernel, "dio.pread", "read", 4096, stacks)
    profile = record["profile"]
    for row, (_, _, counts) in zip(profile["functions"], functions, strict=True):
        row.update(counts)
    for name in COUNTS:
        profile[name] = sum(row[name] for row in profile["functions"])
    costly = Counter()
    for _, _, counts in functions:
        costly.update(counts.get("costly", {}))
    profile["costly"] = dict(costly)
    profile["lines"].update(lines)
    profile["lines_noise"] = {"code_kernel": 10.0}
    counts = {name: profile[name] for name in COUNTS} | {
        name.replace("_", " "): count for name, count in costly.items()
    }
    for what in ("code", "data"):
        counts[f"{what} lines"] = (
            profile["lines"][f"{what}_user"] + profile["lines"][f"{what}_kernel"]
        )
    record["counts"] |= {
        name: [count] * BOOTS for name, count in counts.items() if name != "instructions"
    }
    return record


def row(name: str, instructions: float, layer: str = "block core", **counts: Any) -> Row:  # noqa: ANN401
    return name, layer, {"instructions": instructions, **counts}


PLAIN = [row("one", 500.0, locked=2.0), row("two", 600.0, reads=30.0), row("three", 300.0)]


def two(after: list[Row], before: list[Row] = PLAIN, **lines: float) -> dict[str, Any]:
    return a_result([profiled("old", before), profiled("new", after, **lines)])


def compared(whole: dict[str, Any]) -> ExactComparison:
    return compare(parse(whole), Layers())


def change(whole: dict[str, Any]) -> dict[str, Any]:
    """How the first rung differs, as the file has it."""
    return dump(compared(whole).rungs[0].differences["new"])


# What the median of short rounds does not show.


def long_run(
    whole: dict[str, Any], kernel: str, mean: float, later: float, functions: dict[str, float]
) -> None:
    """Give the long run of a kernel other figures than its median."""
    (record,) = (r for r in whole["results"] if r["kernel"]["name"] == kernel)
    record["mean"] = record["instructions_per_io"] + mean
    record["with_deferred"] = record["mean"] + later
    for name in ("mean", "with_deferred"):
        record[f"{name}_boots"] = [record[name]] * len(record["boots"])
    record["profile"]["long_run"] = [
        {"name": name, "module": "", "layer": "other", "mean": count if mean else 0,
         "deferred": 0 if mean else count}
        for name, count in functions.items()
    ]  # fmt: skip


# Functions with another name.


def functions(whole: dict[str, Any]) -> dict[str, tuple[float, str, str]]:
    return {r["name"]: (r["difference"], r["note"], r["layer"]) for r in change(whole)["functions"]}


LOCKED = [row("one", 501.0, locked=3.0), *PLAIN[1:]]


def shown(whole: dict[str, Any]) -> list[str]:
    """What compare prints, a single space between words."""
    return words(printed(terminal.show_all, compared(whole)))
