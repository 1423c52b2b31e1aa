# SPDX-License-Identifier: GPL-2.0
"""From the rounds that guests recorded to the figures of a rung."""

import statistics
from collections.abc import Sequence
from typing import Any

from iopath.errors import IopathError
from iopath.plan import Run

_OVERHEAD = 64  # instructions between two readings of the counter that are not the loop


def _calm(record: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """All rounds of a run, and those that are known to have had no interrupt."""
    rounds = [part for job in record["jobs"] for part in job["rounds"]]
    return rounds, [part for part in rounds if part["interrupts"] == 0]


def check_calibration(record: dict[str, Any]) -> None:
    """Check that the guest's clock counts instructions: a known loop must take its length."""
    expected = record["expected_instructions"]
    _, calm = _calm(record)
    measured = [part["tsc"] for part in calm]
    if not measured or not 0 <= min(measured) - expected <= max(measured) - expected <= _OVERHEAD:
        raise IopathError(
            f"the guest's clock does not count instructions: a loop of {expected} took"
            f" {', '.join(map(str, measured)) or 'too long'}"
        )


def clock(record: dict[str, Any]) -> int:
    """The time of all rounds of a run by the guest's clock."""
    return sum(part["tsc"] for part in _calm(record)[0])


def figure(
    name: str,
    release: str,
    run: Run,
    outputs: Sequence[dict[str, Any]],
    longs: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """The record of one rung, from ioloop's output and the figures of the long run of each boot.

    The figure of a boot is the median of the rounds without an interrupt. Its spread is their
    largest less their smallest. The figure of the rung is the median of the boots: of an even
    number the lower of the middle two, so that it is the figure of a boot.
    """
    figures, spreads, interrupted, whole = [], [], 0, []
    for output in outputs:
        rounds, calm_rounds = _calm(output)
        calm = [part["tsc"] / part["ios"] for part in calm_rounds]
        if len(calm) < len(rounds) / 4:
            raise IopathError(
                f"{run.rung.name} {run.op}: only {len(calm)} of {len(rounds)} rounds had no"
                " interrupt; try a smaller block size"
            )
        figures.append(statistics.median(calm))
        spreads.append(max(calm) - min(calm))
        interrupted += len(rounds) - len(calm)
        whole += [part["tsc"] / part["ios"] for part in rounds]
    middle = statistics.median_low(figures)
    means, deferred = ([long[name] for long in longs] for name in ("mean", "with_deferred"))
    return {
        "kernel": {"name": name, "release": release},
        "rung": run.rung.name,
        "op": run.op,
        "block_size": run.block_size,
        "instructions_per_io": round(middle, 4),
        "spread": round(max(spreads), 4),
        "boots": [round(figure, 4) for figure in figures],
        "boot_spread": round(max(figures) - min(figures), 4),
        "profile_boot": figures.index(middle),
        "mean": statistics.median_low(means),
        "mean_boots": means,
        "with_deferred": statistics.median_low(deferred),
        "with_deferred_boots": deferred,
        "long_run_ios": run.long_ios,
        "mean_with_interrupts": round(statistics.fmean(whole), 4),
        "rounds": len(whole),
        "rounds_with_interrupts": interrupted,
        "ios_per_round": run.ios,
        "batch": run.rung.batch,
        "command": run.rung.command(run.op, run.block_size, run.region),
    }
