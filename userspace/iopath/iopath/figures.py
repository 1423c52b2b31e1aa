# SPDX-License-Identifier: GPL-2.0
"""From the rounds that guests recorded to the figures of a rung."""

import statistics
from collections.abc import Sequence
from typing import Any

from iopath.errors import IopathError
from iopath.plan import Run

_OVERHEAD = 64  # instructions between two readings of the counter that are not the loop


def _rounds(record: dict[str, Any]) -> list[dict[str, Any]]:
    """All rounds of a run."""
    return [part for job in record["jobs"] for part in job["rounds"]]


def check_calibration(record: dict[str, Any]) -> None:
    """Check that the guest's clock counts instructions: a known loop must take its length."""
    expected = record["expected_instructions"]
    measured = [part["tsc"] for part in _rounds(record) if part["interrupts"] == 0]
    if not measured or not 0 <= min(measured) - expected <= max(measured) - expected <= _OVERHEAD:
        raise IopathError(
            f"the guest's clock does not count instructions: a loop of {expected} took"
            f" {', '.join(map(str, measured)) or 'too long'}"
        )


def clock(record: dict[str, Any]) -> int:
    """The time of all rounds of a run by the guest's clock."""
    return sum(part["tsc"] for part in _rounds(record))


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
    number the lower of the middle two, so that it is the figure of a boot. The guest's clock counts
    the instructions of a round. It also goes on while the guest waits for an interrupt, so where
    I/Os end by one, the plugin counts them.
    """
    figures, spreads, interrupted, whole = [], [], 0, []
    for output, long in zip(outputs, longs, strict=True):
        if run.rung.interrupts:
            rounds = [(count / run.ios, quiet) for count, quiet in long["rounds"]]
        else:
            rounds = [
                (part["tsc"] / part["ios"], part["interrupts"] == 0) for part in _rounds(output)
            ]
        calm = [figure for figure, quiet in rounds if quiet]
        if len(calm) < len(rounds) / 4:
            raise IopathError(
                f"{run.rung.name} {run.op}: only {len(calm)} of {len(rounds)} rounds had no"
                " interrupt; try a smaller block size"
            )
        figures.append(statistics.median(calm))
        spreads.append(max(calm) - min(calm))
        interrupted += len(rounds) - len(calm)
        whole += [figure for figure, _ in rounds]
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
