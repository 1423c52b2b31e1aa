# SPDX-License-Identifier: GPL-2.0
"""The tables of results, profiles and comparisons, for the terminal."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.text import Text

from iopath.compare.changes import (
    Change,
    Comparison,
    ExactChange,
    ExactComparison,
    RungChange,
    TimeComparison,
    percent,
)
from iopath.results.profiles import COSTLY, COUNTS, SampledProfile, SourceLine
from iopath.results.result import COUNTERS, ExactRecord, ExactResult, HardwareResult, RungRecord
from iopath.results.syscalls import BESIDE, CALL, EVERY, FAULT, IO, KINDS, LATER, OWN, START, sum_of
from iopath.show import texts
from iopath.show.console import wrap
from iopath.show.table import Table


def side_by_side(rows: Sequence[tuple[str, str]], width: int) -> Text:
    """Names and texts side by side."""
    indent = max(cell_len(name) for name, _ in rows) + 2
    space = "\n" + " " * indent
    room = max(width - indent, 20)
    return Text("\n").join(
        Text.assemble((name.ljust(indent), "dim"), space.join(wrap(text, room)))
        for name, text in rows
    )


def _op(record: RungRecord) -> str:
    return "" if record.op == "none" else record.op


# Exact results.


def ladder(result: ExactResult) -> Table:
    """The figures: rows are rungs, columns are kernels, changes are against the first kernel. If
    the path of any rung does not show what an I/O costs, all executed instructions are shown, too.
    """
    base, *others = result.names
    rows = result.rows()
    several = len({row.block_size for row in rows if row.block_size}) > 1
    whole = any(record.has_more for record in result.results)
    table = Table("rung", "op", "size")
    for name in (base, *others):
        table.number_column(name)
        table.number_column("spread", style="dim", joined=True)
        if whole:
            table.number_column("total", joined=True)
        if name != base:
            table.number_column("change", joined=True)
    previous = ""
    for row in rows:
        record = next(iter(row.records.values()))
        cells = ["" if row.rung == previous and not several else row.rung, _op(record), record.size]
        previous = row.rung
        first = row.records.get(base)
        for name in (base, *others):
            record = row.records.get(name)
            cells.append(texts.count(record.instructions_per_io) if record else "-")
            cells.append(f"{record.spread:.2f}" if record else "")
            if whole:
                total = record.total if record else None
                cells.append("-" if total is None else texts.count(total))
            if name != base:
                cells.append(_change(first, record))
        table.row(*cells)
    return table


_PARTS = 12  # of a program, if not all are shown


def calls(records: Sequence[ExactRecord], *, every: bool, top: int) -> Table:
    """The parts of a program on a kernel, in its first boot, with *top* functions of each. First
    are the system calls that do I/O, and last what starts and ends it, each below their sum.
    Without *every* system call, the costliest are shown."""
    table = Table("")
    for title in ("times", "program,\nbefore\nthe call", "kernel,\neach time", "in all"):
        table.number_column(title)
    table.text_column("costliest function, each time", wraps=True, below=True)
    parts = [one for one in records if one.calls and (one.boots[0] or one.calls.times[0])]
    of = {kind: [one for one in parts if one.calls.kind == kind] for kind in KINDS}
    called = sorted(of[CALL], key=lambda record: -_in_all(record))
    costly = called if every or len(called) <= _PARTS + 1 else called[:_PARTS]

    def rows(found: Iterable[ExactRecord], kind: str) -> None:
        mine = [one for one in found if sum_of(one.calls.kind, one.op) == kind]
        indent = _INDENT * bool(of.get(kind))
        shown = [one for one in mine if one in costly or one not in called]
        if len(shown) + 1 == len(mine):
            shown = mine
        for record in shown:
            name, *cells = _call_cells(record, top)
            table.row(f"{indent}{name}", *cells)
        if rest := mine[len(shown) :]:
            times = sum(record.calls.times[0] for record in rest)
            in_all = f"{sum(map(_in_all, rest)):,}"
            table.row(f"{indent}{len(rest)} others (--all)", f"{times:,}", "", "", in_all)

    for record in of[IO]:
        table.row(*_call_cells(record, 0))
    rows(called, IO)
    table.add_section()
    rows(called, "")
    own = sum(map(_in_all, of[OWN]))
    if last := own - sum(record.calls.before[0] for record in called):
        table.row("after its last call", "", "", "", f"{last:,}")
    for kind in (FAULT, LATER):
        table.add_section()
        rows(of[kind], "")
    table.add_section()
    for record in of[START]:
        table.row(*_call_cells(record, 0))
    rows([*called, *of[LATER]], START)
    table.add_section()
    table.row("in all", "", "", "", f"{sum(map(_in_all, of[EVERY])):,}", style="bold")
    return table


_INDENT = "  "


def _in_all(record: ExactRecord) -> int:
    return record.calls.instructions[0] + record.calls.before[0]


def _call_cells(record: ExactRecord, top: int) -> list[str]:
    times = record.calls.times[0]
    functions = record.profile.functions[:top] if record.profile else ()
    named = (f"{one.symbol.text} {texts.whole(one.instructions)}" for one in functions)
    before = texts.large(record.calls.before[0] / times) if times and _has_before(record) else ""
    once = record.calls.kind == START or not (times or record.calls.kind == CALL)
    return [
        record.op, "" if once else f"{times:,}", "" if once else before,
        "" if once else texts.large(record.boots[0]), f"{_in_all(record):,}", ", ".join(named),
    ]  # fmt: skip


def _has_before(record: ExactRecord) -> bool:
    return record.calls.kind in (CALL, IO)


def beside(records: Sequence[ExactRecord]) -> str:
    """What is not in the whole of a program, in words."""
    found = [one for one in records if one.calls and one.calls.kind == BESIDE]
    return ", ".join(f"{one.op} {_in_all(one):,}" for one in found) or "nothing"


def _change(first: RungRecord | None, other: RungRecord | None) -> str:
    if not first or not other:
        return ""
    before, after = first.instructions_per_io, other.instructions_per_io
    return texts.change(after - before, percent(before, after), 1)


def layers(found: dict[str, float], unit: str, total: float) -> Table:
    """The share of each layer, the largest first."""
    table = Table("layer")
    table.number_column(unit)
    table.number_column("share")
    for name, part in sorted(found.items(), key=lambda part: -part[1]):
        table.row(name, texts.count(part), f"{100 * part / total:.1f} %")
    return table


def functions(record: ExactRecord, top: int | None, *, every: bool = False) -> Table:
    """The counts of the *top* functions with the most instructions: those that any of them has, or
    *every* count."""
    profile = record.profile
    shown = profile.functions[:top]
    columns = [
        name
        for name in profile.columns
        if every or any(round(function.count(name), 2) for function in shown)
    ]
    table = Table("function")
    table.text_column("layer")
    for name in columns:
        title = name.replace("_", "\n")
        table.number_column(title, style="dim" if name in COUNTS[1:] else "")
    for function in shown:
        cells = [texts.count(function.count(name)) for name in columns]
        table.row(function.symbol.text, function.layer, *cells)
    rest = profile.functions[len(shown) :]
    if rest:
        cells = [texts.count(sum(part.count(name) for part in rest)) for name in columns]
        hint = "" if every else " (--all)"
        table.row(f"{texts.rest(len(rest))}{hint}", "", *cells, style="dim")
    apart = record.instructions_per_io - profile.total
    if abs(apart) >= 0.005:
        table.row("clock against profile", "", texts.signed(apart), style="dim")
    table.add_section()
    cells = [texts.count(profile.count(name)) for name in columns[1:]]
    table.row("all", "", texts.count(record.instructions_per_io), *cells, style="bold")
    return table


def inlined(source: Iterable[SourceLine], top: int | None) -> Table:
    """The instructions of each function: its own, and those of functions inlined there."""
    found: dict[str, dict[str, float]] = {}
    for row in source:
        parts = found.setdefault(row.function, {})
        parts[row.inlined] = parts.get(row.inlined, 0.0) + row.instructions
    table = Table("function", "inlined there")
    table.number_column("instructions")
    for function, parts in list(found.items())[:top]:
        table.row(function, "", texts.count(sum(parts.values())), style="bold")
        for name, part in sorted(parts.items(), key=lambda part: -part[1]):
            table.row("", name or "(its own)", texts.count(part))
    return table


def lines(source: Iterable[SourceLine], top: int | None) -> Table:
    """The source lines with the most instructions."""
    found: dict[tuple[str, str], float] = {}
    for row in source:
        key = (row.line, row.inlined or row.function)
        found[key] = found.get(key, 0.0) + row.instructions
    table = Table("line", "function")
    table.number_column("instructions")
    for (line, function), part in sorted(found.items(), key=lambda part: -part[1])[:top]:
        table.row(line, function, texts.count(part))
    return table


def _changes_of(comparison: Comparison, *titles: str) -> Table:
    """A table with the columns of a comparison."""
    table = Table(*titles)
    table.number_column(comparison.base)
    for name in comparison.others:
        table.number_column(name)
        table.number_column("change", joined=True)
        table.number_column("noise", style="dim", joined=True)
        table.text_column("verdict", joined=True)
        _deferred_column(table, comparison.rungs, name)
        _time_columns(table, comparison)
    return table


def _deferred_column(table: Table, rungs: Sequence[RungChange], name: str) -> None:
    """A column for what the path does not show. If there is no room, it is below the rows."""
    if any(texts.deferred(rung.differences.get(name)) for rung in rungs):
        title = texts.DEFERRED.replace(" ", "\n", 1)
        table.number_column(title, joined=True, below=True)


def _deferred_cells(
    rungs: Sequence[RungChange], name: str, change: Change | None
) -> list[str | Text]:
    if any(texts.deferred(rung.differences.get(name)) for rung in rungs):
        return [texts.deferred(change)]
    return []


def _time_columns(table: Table, comparison: Comparison) -> None:
    """Columns of estimated time, if there is a bridge to it."""
    if isinstance(comparison, ExactComparison) and comparison.bridge:
        table.number_column(texts.TIME)
        table.number_column(texts.RATE, joined=True)


def _time_cells(comparison: Comparison, change: Change | None) -> list[str]:
    if isinstance(comparison, ExactComparison) and comparison.bridge:
        return [*texts.change_time(change)]
    return []


def _colour(change: Change) -> str:
    return {"longer": "red", "shorter": "green"}.get(change.verdict, "")


def _change_cells(change: Change | None) -> list[str | Text]:
    if change is None:
        return ["", "", ""]
    return [
        texts.change(change.difference, change.percent),
        texts.noise(change),
        Text(change.verdict_text, style=_colour(change)),
    ]


def _rung_table(found: Comparison) -> Table:
    """A table with a column for rungs, and one for sizes if there are several."""
    return Table("rung", "size") if len(found.sizes) > 1 else Table("rung")


def _rung_cells(found: Comparison, rung: RungChange) -> list[str | Text]:
    return [rung.title, rung.size] if len(found.sizes) > 1 else [rung.title]


def _figure(rung: RungChange, kernel: str) -> str:
    figure = rung.figure(kernel)
    return "-" if figure is None else texts.count(figure)


def comparison(found: ExactComparison) -> Table:
    """The figures of every kernel, and how they differ from the first kernel's."""
    table = _changes_of(found, "rung", "size")
    for rung in found.rungs:
        cells: list[str | Text] = [rung.title, rung.size]
        for name in (found.base, *found.others):
            figure = rung.figures.get(name)
            cells.append(texts.count(figure.instructions) if figure else "-")
            if name != found.base:
                change = rung.differences.get(name)
                cells += _change_cells(change)
                cells += [*_deferred_cells(found.rungs, name, change), *_time_cells(found, change)]
        table.row(*cells)
    return table


_HALF = 9  # columns of a bar to either side of its axis


def narrow(kernel: str) -> str:
    """The name of a kernel on two lines."""
    return kernel.replace(":", ":\n", 1)


def digest(
    found: Comparison, rungs: Sequence[RungChange], width: int, *, ascii_only: bool
) -> Table:
    """Some rungs of a comparison, in a line each: both figures, how they differ, with a bar, and
    what moved them most. If *width* has no room for all, the bar is left out, then the difference,
    which follows from the figures. One rung alone has no bar, which could only be full."""
    short = [*map(narrow, found.names)]
    if len(found.others) == 1 and found.whole:
        made = _digest_of_calls(found, rungs)
        return made if made.least <= width else _digest_of_calls(found, rungs, in_all=False)
    if len(found.others) > 1:
        made = _digest_of_several(found, rungs, found.names)
        return made if made.least <= width else _digest_of_several(found, rungs, short)
    changes = [rung.differences[found.others[0]] for rung in rungs]
    bars = texts.bars(changes, _HALF, ascii_only=ascii_only) if len(rungs) > 1 else None
    made = _digest(found, rungs, found.names, bars)
    for titles, share, wraps in (
        (found.names, False, False),
        (short, False, False),
        (short, True, False),
        (short, True, True),
    ):
        if made.least > width:
            made = _digest(found, rungs, titles, share=share, wraps=wraps)
    return made


def _digest(
    found: Comparison,
    rungs: Sequence[RungChange],
    titles: Sequence[str],
    bars: Sequence[str] | None = None,
    *,
    share: bool = False,
    wraps: bool = False,
) -> Table:
    """The figures of two kernels, and how they differ, if *share* only in per cent."""
    (name,) = found.others
    table = _rung_table(found)
    for title in titles:
        table.number_column(title, joined=True)
    table.number_column("change", joined=True)
    _deferred_column(table, rungs, name)
    if bars:
        table.text_column("", joined=True)
    table.text_column("most of it", wraps=wraps, joined=True)
    _time_columns(table, found)
    for at, rung in enumerate(rungs):
        change = rung.differences[name]
        colour = _colour(change)
        cells = [*_rung_cells(found, rung), *(_figure(rung, kernel) for kernel in found.names)]
        text = texts.share(change) if share else texts.brief(change)
        cells.append(Text(text.removesuffix(texts.beside_path(change)), colour))
        cells += _deferred_cells(rungs, name, change)
        if bars:
            cells.append(Text(bars[at], colour))
        cells += [texts.top_mover(change), *_time_cells(found, change)]
        table.row(*cells)
    return table


def _digest_of_calls(
    found: Comparison, rungs: Sequence[RungChange], *, in_all: bool = True
) -> Table:
    """How the parts of a program differ: each time, and *in_all*."""
    table = Table("", wraps=True)
    for title in ("times", "before", "change"):
        table.number_column(title, joined=True)
    table.number_column("%", joined=True)
    if in_all:
        table.number_column("in all", joined=True)
    table.text_column("most of it", wraps=True, joined=True)
    sums = {rung.differences[found.others[0]].calls.kind for rung in rungs}
    for rung in rungs:
        change = rung.differences[found.others[0]]
        times = dict.fromkeys(f"{number:,.1f}".removesuffix(".0") for number in change.calls.times)
        mark = "?" if change.verdict == "unknown" else ""
        if (change.noise or 0) >= 0.005:
            mark = f" ±{texts.large(change.noise)}"
        indent = _INDENT * (change.calls.part_of in sums)
        table.row(
            indent + rung.title, " to ".join(times) if any(change.calls.times) else "",
            texts.large(rung.figure(found.base) or 0.0),
            Text(texts.large(change.difference, "+") + mark, _colour(change)),
            "" if change.percent is None else f"{change.percent:+.1f}",
            *([f"{change.calls.more:+,.0f}"] if in_all else []), texts.top_mover(change),
        )  # fmt: skip
    return table


def _digest_of_several(
    found: Comparison, rungs: Sequence[RungChange], titles: Sequence[str]
) -> Table:
    """The changes on each kernel in per cent."""
    table = _rung_table(found)
    for title in titles:
        table.number_column(title)
    for rung in rungs:
        cells = [*_rung_cells(found, rung), _figure(rung, found.base)]
        for name in found.others:
            change = rung.differences.get(name)
            text = texts.share(change) if change else "-"
            if time := texts.change_time(change)[0]:
                text += f", {time} ns"
            cells.append(Text(text, _colour(change) if change else ""))
        table.row(*cells)
    return table


def metrics(found: ExactComparison, name: str) -> Table | None:
    """The metrics of a kernel that differ by more than the noise; None if there are none."""
    rows = []
    for rung in found.rungs:
        change = rung.differences.get(name)
        parts = change.metrics if change else {}
        cells = {metric: texts.metric(metric, part) for metric, part in parts.items()}
        # Cache lines within the noise are listed only if something else differs.
        if any(cells[metric] and part.verdict != "same" for metric, part in parts.items()):
            rows.append((rung, cells))
    if not rows:
        return None
    titles = dict.fromkeys(
        metric for _, cells in rows for metric in cells if any(row.get(metric) for _, row in rows)
    )
    table = Table("rung", "size")
    for metric in titles:
        table.number_column(metric)
    for rung, cells in rows:
        table.row(rung.title, rung.size, *(cells.get(metric, "") for metric in titles))
    return table


# The counts of a function that are listed beside its instructions.
_NAMED = (*COSTLY, "locked", "indirect", "reads", "writes")


def movers(change: ExactChange, top: int) -> Table:
    """The functions that account for most of a difference, in a line each. Those that switch to
    another task, or no longer do, are one line, which comes first."""
    table = Table()
    table.number_column("")
    table.text_column("", joined=True)
    table.text_column("", wraps=True, joined=True)
    functions = change.functions
    if layer := change.switching:
        table.row(texts.signed(layer.difference), layer.layer, change.cause)
        functions = [row for row in functions if row.layer != layer.layer]
        top -= 1
    for row in functions[:top]:
        name = ", ".join([row.name, *texts.notes(row)])
        table.row(texts.signed(row.difference), row.layer, name)
    rest = functions[top:]
    if rest:
        total = texts.signed(sum(row.difference for row in rest))
        table.row(total, "", texts.the_others(len(rest)), style="dim")
    return table


def attribution(change: ExactChange, top: int) -> Table:
    """The functions that account for a difference."""
    table = Table("function")
    table.text_column("layer", below=True)
    for name in ("before", "after", "difference"):
        table.number_column(name, joined=True)
    table.text_column("", wraps=True, below=True)
    for row in change.functions[:top]:
        counts = ", ".join(texts.counts(row, _NAMED))
        figures = [texts.count(row.before), texts.count(row.after), texts.signed(row.difference)]
        notes = [part for part in (row.note, counts) if part]
        table.row(row.name, row.layer, *figures, "; ".join(notes))
    rest = change.functions[top:]
    if rest:
        total = texts.signed(sum(row.difference for row in rest))
        table.row(texts.rest(len(rest)), "", "", "", total, style="dim")
    if abs(change.unattributed) >= 0.005:
        apart = texts.signed(change.unattributed)
        table.row("clock against profile", "", "", "", apart, style="dim")
    table.add_section()
    table.row("all", "", "", "", texts.signed(change.difference), style="bold")
    return table


# Time, with intervals, and the processor's counters.


def times(result: HardwareResult) -> Table:
    """The ladder of a machine."""
    records = result.results
    counted = [name for name in COUNTERS if any(name in (r.figures or {}) for r in records)]
    table = Table("rung", "op", "size")
    for text in ("ns", "95 %", "A/A", *(name.replace("_", " ") for name in counted)):
        table.number_column(text, style="dim" if text in ("95 %", "A/A") else "")
    for record in records:
        figures = record.figures or {}
        ns = figures["ns"]
        cells = [record.rung, _op(record), record.size, texts.count(ns.median)]
        cells += [f"{texts.count(ns.low)} to {texts.count(ns.high)}"]
        cells += [f"{100 * ns.noise / ns.median:.2f} %"]
        cells += [texts.count(figures[n].median) if n in figures else "-" for n in counted]
        table.row(*cells)
    return table


def time_comparison(found: TimeComparison) -> Table:
    """How the figures of machines differ: time, and below it what was counted."""
    table = _changes_of(found, "rung", "size", "per I/O")
    for rung in found.rungs:
        heads = [rung.title, rung.size]
        for unit in ("ns", *COUNTERS):
            if not any(unit in figures for figures in rung.figures.values()):
                continue
            cells: list[str | Text] = [*heads, unit.replace("_", " ")]
            heads = ["", ""]
            for name in (found.base, *found.others):
                figure = rung.figures.get(name, {}).get(unit)
                cells.append(texts.count(figure.median) if figure else "-")
                if name != found.base:
                    counted = rung.counted.get(name, {})
                    change = rung.differences.get(name) if unit == "ns" else counted.get(unit)
                    cells += _change_cells(change)
            table.row(*cells)
    return table


def sampled_functions(profile: SampledProfile, top: int | None) -> Table:
    """The functions that take most of the time."""
    table = Table("function", "layer")
    for name in ("ns", "share", "samples"):
        table.number_column(name, style="" if name == "ns" else "dim")
    for row in profile.functions[:top]:
        share = f"{100 * row.ns / profile.ns:.1f} %"
        table.row(row.symbol.text, row.layer, texts.count(row.ns), share, str(row.samples))
    rest = profile.functions[top:] if top else []
    if rest:
        more = texts.count(sum(row.ns for row in rest))
        table.row(f"{texts.rest(len(rest))} (--all)", "", more, style="dim")
    table.add_section()
    table.row("all", "", texts.count(profile.ns), style="bold")
    return table
