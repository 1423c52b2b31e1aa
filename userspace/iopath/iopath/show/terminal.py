# SPDX-License-Identifier: GPL-2.0
"""Print results and comparisons. What is printed depends on the kind of result."""

from collections.abc import Sequence
from functools import singledispatch

from rich.console import Console
from rich.text import Text

from iopath.compare import noise
from iopath.compare.changes import (
    Change,
    Comparison,
    ExactChange,
    ExactComparison,
    RungChange,
    TimeComparison,
)
from iopath.results.result import ExactResult, HardwareResult, Key, Result, of_kernel
from iopath.results.syscalls import SUMS
from iopath.show import tables, texts
from iopath.show.console import put, put_text, wrap
from iopath.show.facts import facts
from iopath.show.table import Table

# What was measured.


@singledispatch
def show(result: Result, console: Console, *, every: bool = False, top: int | None = None) -> None:
    """Print the figures; of a program, of *every* system call, with *top* functions of each."""
    raise TypeError(result)


@show.register
def _(
    result: ExactResult, console: Console, *, every: bool = False, top: int | None = None
) -> None:
    if result.command:
        _show_program(result, console, every=every, top=top or 1)
        return
    put(console, tables.ladder(result))
    for record in result.results:
        if record.has_more and record.all_parts:
            said = texts.executed(record.all_parts)
            put_text(
                console, f"{record.kernel.name} {record.title}: {texts.DEFERRED} {said}", "dim"
            )
    _show_requests(result, console)


def _show_requests(result: ExactResult, console: Console) -> None:
    """Print what became of requests, and what is not counted of them."""
    found = [(record, said) for record in result.results if (said := texts.requests(record))]
    for record, said in found:
        title = f"{record.kernel.name} {record.title} {record.size}"
        put_text(console, f"{title}: {said} per I/O", "dim")
    for name in dict.fromkeys(record.kernel.name for record, _ in found):
        if missing := texts.uncounted(of_kernel(result.results, name)):
            put_text(console, f"{name}: not counted, as functions are inlined: {missing}", "dim")


def _show_program(result: ExactResult, console: Console, *, every: bool, top: int) -> None:
    for name in result.names:
        records = of_kernel(result.results, name)
        put_text(console, f"{name}: {result.command}: {texts.program(records)}")
        put(console, Text(), tables.calls(records, every=every, top=top), Text())
        put_text(console, f"not in it: {tables.beside(records)}")
        if differ := texts.boots(records):
            put_text(console, differ)


@show.register
def _(
    result: HardwareResult, console: Console, *, every: bool = False, top: int | None = None
) -> None:
    put(console, tables.times(result))
    for record in result.results:
        if record.requests:
            said = ", ".join(f"{name} {texts.count(n)}" for name, n in record.requests.items())
            put_text(console, f"{record.title} {record.size}: {said}", "dim")
    absent = {name: text for record in result.results[:1] for name, text in record.absent.items()}
    for number, text in enumerate(dict.fromkeys(absent.values())):
        if not number:
            put(console, Text())
        names = ", ".join(n.replace("_", " ") for n in absent if absent[n] == text)
        put_text(console, f"not counted: {names}: {text}", "dim")


# Profiles.


@singledispatch
def show_profile(result: Result, console: Console, top: int | None, *, every: bool = False) -> None:
    """Print where the instructions, or the time, of each rung go: by layer, then by function. *top*
    functions are shown, or all, with the counts that any of them has, or *every* count."""
    raise TypeError(result)


@show_profile.register
def _(result: ExactResult, console: Console, top: int | None, *, every: bool = False) -> None:
    for number, record in enumerate(result.results):
        profile = record.profile
        size = f" {record.size}" if record.size else ""
        _heading(
            f"{record.kernel.name} {record.title}",
            f"{size}: {texts.count(record.instructions_per_io)} instructions per I/O"
            f" ({texts.count(profile.kernel)} in the kernel)",
            console,
            first=not number,
        )
        parts = [tables.layers(profile.layers, "instructions", profile.total)]
        parts.append(tables.functions(record, top, every=every))
        if profile.source is not None:
            parts += [tables.inlined(profile.source, top), tables.lines(profile.source, top)]
        for part in parts:
            put(console, Text(), part)


@show_profile.register
def _(result: HardwareResult, console: Console, top: int | None, *, every: bool = False) -> None:
    for number, record in enumerate(result.results):
        profile = record.profile
        _heading(
            record.title,
            f": {texts.count(profile.ns)} ns per I/O, by {profile.samples:,} samples of"
            f" {profile.event} in {profile.data}",
            console,
            first=not number,
        )
        if profile.event != "cycles":
            text = (
                "no PMU: a timer takes the samples, so code that runs with interrupts off is"
                " counted where they are switched on again"
            )
            put_text(console, text, "yellow")
        put(console, Text(), tables.layers(profile.layers, "ns", profile.ns))
        put(console, Text(), tables.sampled_functions(profile, top))


# Comparisons.

_RUNGS = 5  # in a digest
_CALLS = 12  # parts of a program
_LINES = 10  # rungs and functions in a digest
_FUNCTIONS = 15  # for each difference, of the whole


def show_comparison(comparison: Comparison, console: Console, top: int | None = None) -> None:
    """Print on one screen how kernels differ: the verdict, the rungs that matter most, and *top*
    functions that account for the first of them."""
    _show_verdicts(comparison, console)
    ranked = _ranked(comparison)
    rungs = _chosen(comparison, [rung for _, _, rung in ranked])
    if rungs:
        ascii_only = not console.encoding.startswith("utf")
        table = tables.digest(comparison, rungs, console.width, ascii_only=ascii_only)
        put(console, Text(), table)
    for name, change, rung in ranked[:_RUNGS]:
        if isinstance(change, ExactChange) and change.total and change.total.parts:
            said = texts.parts(change.total.parts, texts.signed)
            put_text(console, f"{rung.title}, {name}: {texts.DEFERRED} {said}", "dim")
    if more := texts.folded(comparison, comparison.others, len(rungs)):
        put_text(console, f"{more} (--all)", "dim")
    if isinstance(comparison, ExactComparison):
        _show_basis(comparison, console)
    for name, change, rung in ranked[:1]:
        if isinstance(change, ExactChange) and change.functions:
            heading = f": {comparison.base} to {name}, {texts.signed(change.difference)}"
            _heading(rung.title, f"{heading} {rung.unit}", console)
            put(console, tables.movers(change, top or max(_LINES - len(rungs), _RUNGS)))
    if comparison.brief:
        put(console, Text())
        put_text(console, f"{texts.besides(comparison.brief)} (--all)", "dim")
    if comparison.has_unknown:
        put_text(console, texts.UNKNOWN, "yellow")


def _chosen(comparison: Comparison, ranked: Sequence[RungChange]) -> list[RungChange]:
    """The first rungs, with those that the verdict on the last kernel names; of a program the sums,
    and the parts that change most in all."""
    last = comparison.others[-1]
    named = {rung.key for rung in comparison.extremes(last).values()}

    def order(rung: RungChange) -> tuple[bool, float]:
        calls = rung.differences[last].calls if comparison.whole else None
        if calls:
            return calls.kind not in SUMS, -abs(calls.more)
        return rung.key not in named, 0.0

    first = sorted(ranked, key=order)[: _CALLS if comparison.whole else _RUNGS]
    return [rung for rung in ranked if rung in first]


def _ranked(comparison: Comparison) -> list[tuple[str, Change, RungChange]]:
    """The rungs that differ on any kernel, each with the kernel on which that matters most."""
    found: dict[Key, tuple[str, Change, RungChange]] = {}
    for name in comparison.others:
        for rung in comparison.ranked(name):
            change = rung.differences[name]
            if rung.key not in found or change.rank < found[rung.key][1].rank:
                found[rung.key] = name, change, rung
    return sorted(found.values(), key=lambda one: (not one[2].does_io, *one[1].rank))


@singledispatch
def show_all(comparison: Comparison, console: Console, top: int | None = None) -> None:
    """Print how kernels differ, rung by rung, with *top* functions of each difference."""
    raise TypeError(comparison)


@show_all.register
def _(comparison: ExactComparison, console: Console, top: int | None = None) -> None:
    top = top or _FUNCTIONS
    _show_verdicts(comparison, console)
    put(console, Text(), tables.comparison(comparison))
    _show_basis(comparison, console)
    base = comparison.base
    for name in comparison.others:
        if table := tables.metrics(comparison, name):
            _heading(f"{base} to {name}", ": what else differs per I/O", console)
            put(console, table)
    for rung in comparison.rungs:
        for name, figure in rung.figures.items():
            if len(figure.levels) > 1:
                levels = noise.in_boots(figure.levels, figure.of, figure.decides)
                _heading(rung.title, f": {name}: {levels}", console)
    for rung in comparison.rungs:
        for name, change in rung.differences.items():
            if change.is_explained:
                heading = f": {base} to {name}, {texts.signed(change.difference)}"
                _heading(rung.title, f"{heading} {rung.unit}", console)
                put(console, tables.attribution(change, top))
                if layers := texts.by_layer(change):
                    put_text(console, f"layers: {layers}", "italic")
            for text in change.findings:
                _heading(rung.title, f": {name}: {text}", console)
            _show_long_run(rung.title, f"{base} to {name}", change, top, console)
    _show_labels(comparison, console)


@show_all.register
def _(comparison: TimeComparison, console: Console, top: int | None = None) -> None:
    _show_verdicts(comparison, console)
    put(console, Text(), tables.time_comparison(comparison))
    _show_labels(comparison, console)


def show_facts(result: Result, console: Console) -> None:
    """Print below the figures what was measured, and on what."""
    put(console, Text(), tables.side_by_side(facts(result), console.width))


def _heading(title: str, text: str, console: Console, *, first: bool = False) -> None:
    """Print an empty line, unless it is the *first* line, and a title with more text, wrapped
    between words."""
    shown = Text("\n".join(wrap(title + text, console.width)))
    shown.stylize("bold", 0, len(title))
    put(console, *([] if first else [Text()]), shown)


def _show_verdicts(comparison: Comparison, console: Console) -> None:
    for name in comparison.others:
        text = f"{comparison.base} to {name}: {texts.verdict(comparison, name)}"
        put_text(console, text, "bold")


def _show_basis(comparison: ExactComparison, console: Console) -> None:
    """Print what times are estimated by."""
    if comparison.bridge:
        put_text(console, texts.basis(comparison.bridge), "dim")


def _show_labels(comparison: Comparison, console: Console) -> None:
    if comparison.labels:
        put(console, Text())
    for label in comparison.labels:
        put_text(console, f"differs  {label}", "dim")


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
        put(console, table)
