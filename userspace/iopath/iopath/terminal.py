# SPDX-License-Identifier: GPL-2.0
"""Print results and comparisons. What is printed depends on the kind of result."""

import io
import os
import re
import sys
from collections.abc import Iterable, Sequence
from functools import singledispatch
from typing import Any, TextIO

from rich.console import Console, Group, RenderableType
from rich.text import Text

from iopath import labels, tables, texts
from iopath.comparison import (
    Change,
    Comparison,
    ExactChange,
    ExactComparison,
    RungChange,
    TimeComparison,
)
from iopath.facts import facts
from iopath.kernels import DebianKernel
from iopath.result import ExactResult, HardwareResult, Key, Result
from iopath.rung import OPS, Rung
from iopath.rungs import select
from iopath.table import Table

_UNLIMITED = 10_000  # columns


class _Trimmed:
    """A file that removes blanks at the ends of lines."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        self._file.write(re.sub(r" +$", "", text, flags=re.MULTILINE))
        return len(text)

    def flush(self) -> None:
        self._file.flush()

    @property
    def encoding(self) -> str:
        return self._file.encoding


def stdout() -> Console:
    """The standard output. A terminal has a width. A file or a pipe has none, unless COLUMNS gives
    it one, so no line is wrapped. Characters that its encoding lacks are question marks."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    if sys.stdout.isatty():
        return Console(highlight=False)
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdigit() and int(columns) else _UNLIMITED
    return Console(file=_Trimmed(sys.stdout), width=width, highlight=False)  # type: ignore[arg-type]


def _print(console: Console, *parts: RenderableType) -> None:
    """Print texts and tables as they are, even if they are wider than the terminal."""
    console.print(Group(*parts), crop=False, overflow="ignore")


def _print_text(console: Console, text: str, style: str = "") -> None:
    """Print a text, wrapped between words."""
    _print(console, Text("\n".join(texts.wrap(text, console.width)), style))


# What was measured.


@singledispatch
def show(result: Result, console: Console) -> None:
    """Print what was measured on what, and the figures."""
    raise TypeError(result)


@show.register
def _(result: ExactResult, console: Console) -> None:
    show_header(result, console)
    _print(console, Text(), tables.ladder(result))


@show.register
def _(result: HardwareResult, console: Console) -> None:
    show_header(result, console)
    _print(console, Text(), tables.times(result))
    _print(console, Text())
    absent = {name: text for record in result.results[:1] for name, text in record.absent.items()}
    for text in dict.fromkeys(absent.values()):
        names = ", ".join(n.replace("_", " ") for n in absent if absent[n] == text)
        _print_text(console, f"not counted: {names}: {text}", "dim")


# Profiles.


@singledispatch
def show_profile(result: Result, top: int, console: Console) -> None:
    """Print where the instructions, or the time, of each rung go: by layer, then by function."""
    raise TypeError(result)


@show_profile.register
def _(result: ExactResult, top: int, console: Console) -> None:
    show_header(result, console)
    for record in result.results:
        profile = record.profile
        size = f" {record.size}" if record.size else ""
        _heading(
            f"{record.kernel.name} {record.title}",
            f"{size}: {texts.count(profile.total)} instructions per I/O"
            f" ({texts.count(profile.kernel)} in the kernel), by the guest's clock"
            f" {texts.count(record.instructions_per_io)}",
            console,
        )
        parts = [tables.layers(profile.layers, "instructions", profile.total)]
        parts.append(tables.functions(profile, top))
        if profile.source is not None:
            parts += [tables.inlined(profile.source, top), tables.lines(profile.source, top)]
        for part in parts:
            _print(console, Text(), part)


@show_profile.register
def _(result: HardwareResult, top: int, console: Console) -> None:
    show_header(result, console)
    for record in result.results:
        profile = record.profile
        _heading(
            record.title,
            f": {texts.count(profile.ns)} ns per I/O, by {profile.samples:,} samples of"
            f" {profile.event} in {profile.data}",
            console,
        )
        if profile.event != "cycles":
            text = (
                "no PMU: a timer takes the samples, so code that runs with interrupts off is"
                " counted where they are switched on again"
            )
            _print_text(console, text, "yellow")
        _print(console, Text(), tables.layers(profile.layers, "ns", profile.ns))
        _print(console, Text(), tables.sampled_functions(profile, top))


# Comparisons.

_RUNGS = 5  # in a digest
_LINES = 10  # rungs and functions in a digest
_FUNCTIONS = 15  # for each difference, of the whole


def show_comparison(comparison: Comparison, console: Console, top: int | None = None) -> None:
    """Print on one screen how kernels differ: the verdict, the rungs that matter most, and *top*
    functions that account for the first of them."""
    _show_verdicts(comparison, console)
    ranked = _ranked(comparison)
    rungs = [rung for _, _, rung in ranked][:_RUNGS]
    if rungs:
        ascii_only = not console.encoding.startswith("utf")
        table = tables.digest(comparison, rungs, console.width, ascii_only=ascii_only)
        _print(console, Text(), table)
    if more := texts.folded(comparison, comparison.others, len(rungs)):
        _print_text(console, f"{more} (--all)", "dim")
    for name, change, rung in ranked[:1]:
        if isinstance(change, ExactChange) and change.functions:
            heading = f": {comparison.base} to {name}, {texts.signed(change.difference)}"
            _heading(rung.title, f"{heading} instructions per I/O", console)
            _print(console, tables.movers(change, top or _LINES - len(rungs)))
    for number, label in enumerate(labels.brief(comparison.labels)):
        if not number:
            _print(console, Text())
        _print_text(console, f"differs besides the code: {label} (--all)", "dim")
    if comparison.has_unknown:
        _print_text(console, texts.UNKNOWN, "yellow")


def _ranked(comparison: Comparison) -> list[tuple[str, Change, RungChange]]:
    """The rungs that differ on any kernel, each with the kernel on which that matters most."""
    found: dict[Key, tuple[str, Change, RungChange]] = {}
    for name in comparison.others:
        for rung in comparison.ranked(name):
            change = rung.differences[name]
            if rung.key not in found or change.rank < found[rung.key][1].rank:
                found[rung.key] = name, change, rung
    return sorted(found.values(), key=lambda one: one[1].rank)


@singledispatch
def show_all(comparison: Comparison, console: Console, top: int | None = None) -> None:
    """Print how kernels differ, rung by rung, with *top* functions of each difference."""
    raise TypeError(comparison)


@show_all.register
def _(comparison: ExactComparison, console: Console, top: int | None = None) -> None:
    top = top or _FUNCTIONS
    _show_verdicts(comparison, console)
    _print(console, Text(), tables.comparison(comparison))
    base = comparison.base
    for name in comparison.others:
        if table := tables.metrics(comparison, name):
            _heading(f"{base} to {name}", ": what else differs per I/O", console)
            _print(console, table)
    for rung in comparison.rungs:
        for name, change in rung.differences.items():
            if change.is_explained:
                heading = f": {base} to {name}, {texts.signed(change.difference)}"
                _heading(rung.title, f"{heading} instructions per I/O", console)
                _print(console, tables.attribution(change, top, console.width))
                if layers := texts.by_layer(change):
                    _print_text(console, f"layers: {layers}", "italic")
            for text in change.findings:
                _heading(rung.title, f": {name}: {text}", console)
            _show_long_run(rung.title, f"{base} to {name}", change, top, console)
    _show_labels(comparison, console)


@show_all.register
def _(comparison: TimeComparison, console: Console, top: int | None = None) -> None:
    _show_verdicts(comparison, console)
    _print(console, Text(), tables.time_comparison(comparison))
    _show_labels(comparison, console)


def show_header(result: Result, console: Console) -> None:
    """Print what was measured on what."""
    _print(console, tables.side_by_side(facts(result), console.width))


def _heading(title: str, text: str, console: Console) -> None:
    """Print an empty line, and a title with more text, wrapped between words."""
    shown = Text("\n".join(texts.wrap(title + text, console.width)))
    shown.stylize("bold", 0, len(title))
    _print(console, Text(), shown)


def _show_verdicts(comparison: Comparison, console: Console) -> None:
    for name in comparison.others:
        text = f"{comparison.base} to {name}: {texts.verdict(comparison, name)}"
        _print_text(console, text, "bold")


def _show_labels(comparison: Comparison, console: Console) -> None:
    if comparison.labels:
        _print(console, Text())
    for label in comparison.labels:
        _print_text(console, f"differs  {label}", "dim")


def _show_long_run(rung: str, names: str, change: ExactChange, top: int, console: Console) -> None:
    """Print what the median of short rounds does not show, and the functions responsible."""
    for figure in change.telling:
        part = change.metrics[figure]
        text = f": {names}, {figure}, {texts.signed(part.difference)} instructions per I/O"
        _heading(rung, text, console)
        table = Table("function")
        table.number_column("difference")
        for row in (part.functions or ())[:top]:
            table.row(row.name, texts.signed(row.difference))
        _print(console, table)


# Other lists.


def show_kernels(kernels: Iterable[DebianKernel], cached: set[str], console: Console) -> None:
    """List the kernels there are, oldest first."""
    table = Table("kernel", "package version", "suite", "state")
    for kernel in kernels:
        if kernel.release in cached:
            state = "cached"
        elif kernel.missing:
            state = f"unavailable: {kernel.missing} is no longer on the mirror"
        else:
            state = "available"
        style = "dim" if kernel.missing else ""
        table.row(f"debian:{kernel.release}", kernel.version, kernel.suite, state, style=style)
    _print(console, table)


def show_rungs(rungs: Sequence[Rung], console: Console) -> None:
    """List rungs, and say which are measured only if they are named."""
    table = Table("rung")
    table.text_column("operations")
    table.text_column("needs", joined=True)
    table.text_column("measures", wraps=True, joined=True)
    for rung in rungs:
        ops = ", ".join(op for op in rung.ops(OPS) if op != "none")
        table.row(rung.name, ops, ", ".join(rung.requires), rung.about)
    _print(console, table)
    ladder = [rung.name for rung in select([])]
    text = f"Rungs after {ladder[-1]} are measured only if --rung names them."
    _print_text(console, text)


def show_scaling(records: Sequence[dict[str, Any]], console: Console) -> None:
    """Print I/Os per second and the cost of one over the number of CPUs."""
    table = Table("how", "devices")
    for name in ("CPUs", "I/Os per second", "spread", "ns per I/O and CPU", "of 1 CPU's rate"):
        table.number_column(name)
    alone = {r["how"]: r["ios_per_second"] for r in records if r["cpus"] == 1}
    for record in records:
        rate = record["ios_per_second"]
        table.row(
            record["how"], record["devices"], str(record["cpus"]), f"{rate:,.0f}",
            f"{100 * record['spread'] / rate:.1f} %", texts.count(record["ns_per_io"]),
            f"{rate / alone[record['how']]:.2f}",
        )  # fmt: skip
    _print(console, table)
