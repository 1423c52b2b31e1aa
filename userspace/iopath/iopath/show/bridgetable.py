# SPDX-License-Identifier: GPL-2.0
"""Print a bridge between instructions and time, and what it estimates of other kernels."""

from rich.console import Console
from rich.text import Text

from iopath.compare import bridge
from iopath.results.bridgefile import AGREE, Bridge, BridgedRung
from iopath.results.result import MORE, ExactResult
from iopath.show import texts
from iopath.show.console import put, put_text
from iopath.show.table import Table
from iopath.show.tables import side_by_side

_LEAST = 0.05  # instructions; a smaller difference is not listed


def show(found: Bridge, exact: ExactResult, console: Console) -> None:
    """Print the bridge, and what differs on the other kernels of the exact result."""
    line = f"ns per I/O = {found.fixed_ns:.1f} + {found.ns_per_instruction:.4f} * instructions"
    facts = [
        ("machine", found.cpu_model),
        ("kernel", f"{found.release} ({found.kernel})"),
        ("time", line),
        ("error", texts.error(found)),
        *(("warning", text) for text in found.warnings),
    ]
    put(console, side_by_side(facts, console.width), Text(), _rungs(found))
    for text in _of_pmu(found.rungs):
        put_text(console, text, "yellow")
    for kernel in exact.kernels:
        if kernel.arch != found.arch:
            text = f"{kernel.name} is of {kernel.arch}: its time is not estimated"
            put(console, Text())
            put_text(console, text, "dim")
        elif kernel.name != found.kernel:
            put(console, Text())
            _show_other(found, exact, kernel.name, console)


def _rungs(found: Bridge) -> Table:
    """What was counted and measured of each rung, and the prediction of the others."""
    counted = any(rung.pmu_instructions is not None for rung in found.rungs)
    cycles = any(rung.cycles is not None for rung in found.rungs)
    table = Table("rung", "op", "size")
    table.number_column("instructions")
    table.number_column("ns")
    table.number_column("by the\nothers", joined=True)
    table.number_column("error", joined=True)
    if cycles:
        table.number_column("cycles")
    if counted:
        table.number_column("PMU\ninstructions")
        table.number_column("differs", joined=True)
    for rung in found.rungs:
        op = "" if rung.op == "none" else rung.op
        cells: list[str | Text] = [
            rung.rung, op, rung.size, texts.count(rung.instructions), texts.count(rung.ns),
            texts.count(rung.predicted_ns), texts.signed(rung.predicted_ns - rung.ns),
        ]  # fmt: skip
        if cycles:
            cells.append("-" if rung.cycles is None else texts.count(rung.cycles))
        if counted:
            cells += _pmu_cells(rung)
        table.row(*cells)
    return table


def _pmu_cells(rung: BridgedRung) -> list[str | Text]:
    if rung.pmu_instructions is None:
        return ["-", ""]
    percent = "" if rung.pmu_percent is None else f"{rung.pmu_percent:+.1f} %"
    flagged = Text(percent if rung.agrees else f"{percent} !", "" if rung.agrees else "yellow")
    return [texts.count(rung.pmu_instructions), flagged]


def _of_pmu(rungs: list[BridgedRung]) -> list[str]:
    """Remarks on the PMU's counts."""
    absent: dict[str, list[str]] = {}
    for rung in rungs:
        if rung.absent:
            absent.setdefault(rung.absent, []).append(rung.title)
    if len(absent) and all(rung.absent for rung in rungs):
        return [
            f"not counted on this machine: {'; '.join(absent)}. The bridge is made of time alone:"
            " whether the machine executes the instructions that the guest counts is not checked."
        ]
    said = [f"not counted on this machine: {', '.join(names)}: {why}"
            for why, names in absent.items()]  # fmt: skip
    if apart := [rung.title for rung in rungs if not rung.agrees]:
        said.append(
            f"! {texts.rungs(len(apart))} of {len(rungs)}: the PMU's count differs by more than"
            f" {AGREE:g} % and {MORE:g} instructions: the machine executes another path than the"
            " guest (mitigations, command line, configuration)"
        )
    return said


def _show_other(found: Bridge, exact: ExactResult, kernel: str, console: Console) -> None:
    """Print the difference in time of each rung on another kernel, on the same machine."""
    counted = {record.key: record.path for record in exact.results if record.kernel.name == kernel}
    table = Table("rung", "op", "size")
    table.number_column("instructions")
    table.number_column(texts.TIME, joined=True)
    table.number_column(texts.RATE, joined=True)
    shown = 0
    times = bridge.estimates(found, exact, kernel)
    for rung in found.rungs:
        time = times.get(rung.key)
        if time and abs(counted[rung.key] - rung.instructions) > _LEAST:
            shown += 1
            op = "" if rung.op == "none" else rung.op
            table.row(
                rung.rung, op, rung.size, texts.signed(counted[rung.key] - rung.instructions),
                texts.time(time), texts.rate(time),
            )  # fmt: skip
    heading = f"{found.kernel} to {kernel}, estimated for this machine"
    if shown:
        put_text(console, heading, "bold")
        put(console, table)
    else:
        put_text(console, f"{heading}: no rung differs", "bold")
