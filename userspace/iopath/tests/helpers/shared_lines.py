# SPDX-License-Identifier: GPL-2.0
"""The lines that two CPUs share, from a guest's plugin and memory."""

from typing import Any

from iopath.base import typed
from iopath.counts import sharing
from iopath.rungs import builtin, together
from iopath.rungs.runs import Run, Settings, make_runs


def a_run(name: str) -> Run:
    return make_runs(Settings(rungs=builtin.select([name]), ops=("read",), cpus=2))[0][0]


def a_line(
    at: str, writes: float = 1.0, kind: str = "true", *, locked: bool = False, by: str = "f"
) -> dict[str, Any]:
    rows = [
        {"function": by, "module": "", "cpu": cpu, "at": at, "locked": locked, "per_io": writes}
        for cpu in (0, 1)
    ]
    return {
        "arrangement": "files", "where": at, "place": "slab", "kind": kind, "lines": 1,
        "reads": [], "writes": rows,
    }  # fmt: skip


def a_boot(lines: list[dict[str, Any]], **part: list[float]) -> dict[str, Any]:
    arrangement = {
        "name": "files", "instructions_per_io": [3000.0, 3000.0], "called_per_io": [100.0, 100.0],
        "rounds": [12, 12], "rounds_left_out": [0, 0], "command": [],
    }  # fmt: skip
    return {"arrangement": arrangement | part, "lines": lines}


def merged(boots: list[dict[str, Any]], rung: str) -> dict[str, Any]:
    """What the record of a rung has of these boots of one arrangement, as JSON."""
    run = a_run(rung)
    (region,) = (
        str(shared.region)
        for shared in together.runs([run], Settings(rungs=[run.rung], cpus=2))
        if shared.arrangement == together.FILES
    )
    return typed.unstructure(sharing.merged([sharing.read({region: boot}) for boot in boots], run))


# Lines in a result.


def a_shared_line(
    where: str, kind: str, touched: list[tuple[str, int, list[int]]], arrangement: str = "threads"
) -> dict[str, Any]:
    """A line: what is done, on which CPU, and to which bytes."""
    line = {"arrangement": arrangement, "where": where, "place": "slab", "kind": kind, "lines": 1}
    for name in ("reads", "writes"):
        line[name] = [
            {"function": f"f_{name}", "module": "", "cpu": cpu, "at": where, "bytes": [run],
             "locked": name == "writes", "per_io": 1.5}
            for what, cpu, run in touched if what == name
        ]  # fmt: skip
    return line


SAME = a_shared_line("same", "true", [("writes", 0, [8, 11]), ("writes", 1, [8, 11])])
COUNTER = a_shared_line(
    "struct file.f_count",
    "true",
    [("writes", 0, [56, 63]), ("writes", 1, [56, 63]), ("reads", 1, [0, 3])],
)
PACKED = a_shared_line("packed", "false", [("writes", 0, [0, 7]), ("writes", 1, [8, 15])])


def shared(result: dict[str, Any]) -> dict[str, Any]:
    """A result whose preads also ran on two CPUs, with lines for the first kernel and for the
    others."""
    first = result["kernels"][0]["name"]
    for record in result["results"]:
        if record["op"] == "read":
            arrangement = {
                "name": "threads", "instructions_per_io": [610.5, 611.25], "rounds": [11, 12],
                "rounds_left_out": [1, 0], "command": [],
            }  # fmt: skip
            lines = [SAME, COUNTER] if record["kernel"]["name"] == first else [PACKED, SAME]
            record |= {"cpus": 2, "sharing": {"arrangements": [arrangement], "lines": lines}}
    return result
