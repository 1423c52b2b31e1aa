# SPDX-License-Identifier: GPL-2.0
"""Kernels that are functions: what an I/O costs on each, by its shape."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from iopath.measure.screening import Outcome
from iopath.rungs.runs import Run

Cost = Callable[[Run], Mapping[str, float] | str]  # by function; or the error


def options(run: Run) -> dict[str, str]:
    words = (word.removeprefix("--").partition("=") for word in run.rung.options)
    return {name: value for name, _, value in words}


def plain(run: Run) -> dict[str, float]:
    """A kernel: so much for each I/O, each page, and each engine; of two flags, more."""
    pages = -(-run.block_size // 4096)
    found = {"submit_bio": 500.0, "pin": 100.0 * pages, options(run)["ioengine"]: 300.0}
    if "dsync" in options(run):
        found["flush"] = 200.0
    return found


@dataclass
class Functions:
    """Screens on functions instead of kernels, and notes what was asked for."""

    costs: Mapping[str, Cost]
    asked: list[Run] = field(default_factory=list)

    def screen(
        self, groups: Sequence[Sequence[Run]], layouts: int = 1
    ) -> Mapping[str, list[list[Outcome]]]:
        self.asked += [run for members in groups for run in members]
        for members in groups:
            assert len({run.rung.target for run in members}) == 1
        return {
            name: [[_outcome(cost(run)) for run in members] for members in groups]
            for name, cost in self.costs.items()
        }


def _outcome(cost: Mapping[str, float] | str) -> Outcome:
    if not isinstance(cost, str):
        return Outcome(sum(cost.values()), cost)
    return Outcome(died=cost) if cost.startswith("the guest") else Outcome(error=cost)


def planted(run: Run) -> dict[str, float] | str:
    """A later kernel, with a cost of its own for some shapes, and a flag that it refuses."""
    found, given = plain(run), options(run)
    if run.block_size >= 65536 and int(given.get("mem_offset", 0)) and run.op == "read":
        found["unaligned"] = 400.0
    if int(given.get("segments", 1)) > 16:
        found["many_segments"] = 250.0
    if int(given.get("iodepth", 1)) == 33:
        found["depth_33"] = 90.0
    if "dsync" in given and given.get("prioclass") == "3":
        return "write: Invalid argument"
    if run.block_size // 512 % 2:
        found["pin"] *= 2
    return found
