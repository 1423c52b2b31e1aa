# SPDX-License-Identifier: GPL-2.0
"""A result, and its comparison, as text for a mail or a commit message."""

from collections.abc import Sequence

from iopath.compare import sharing_changes
from iopath.compare.changes import Comparison, ExactChange, ExactComparison
from iopath.results.result import ExactResult
from iopath.show import sharing_tables, texts
from iopath.show.console import wrap
from iopath.show.facts import facts
from iopath.show.texts import Cell

_WIDTH = 100  # columns of a text
_HALF = 6  # columns of a bar to either side of its axis
_LARGEST = 5  # functions that are named for each changed rung


def markdown(result: ExactResult, comparison: ExactComparison | None) -> str:
    """The verdict, the figures, the functions and layers behind those that changed, and what was
    measured."""
    lines = [f"## {result.subject}"]
    if comparison:
        for name in comparison.others:
            lines += _digest(comparison, name)
        if comparison.has_unknown:
            lines += ["", texts.UNKNOWN]
        if comparison.bridge:
            lines += ["", *_wrap(f"{texts.basis(comparison.bridge)}.")]
        lines += ["", "### Figures"]
    lines += _figures(result, comparison)
    for row in result.rows():
        for kernel, change in (comparison.of(row.key) if comparison else {}).items():
            explained = change.is_explained or (change.verdict == "unknown" and change.functions)
            if explained or change.total:
                lines += ["", f"### {row.title}: {comparison.base} to {kernel}", ""]
                text = texts.change(change.difference, change.percent) + texts.beside_path(change)
                lines += [f"{text}, {change.verdict_text} (noise {texts.noise(change)})"]
                lines += _wrap(_time(change))
                lines += _wrap(_metrics(change))
                lines += _wrap(_parts(change))
            if explained:
                lines += _attribution(change)
    lines += _sharing(result)
    lines += ["", "### What was measured", ""]
    for name, text in facts(result):
        lines += _wrap(f"- {name}: {text}")
    if comparison and comparison.labels:
        lines += ["", "Besides their code, these kernels differ in:", ""]
        for label in comparison.labels:
            lines += _wrap(f"- {label}")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _time(change: ExactChange) -> str:
    """What a change takes on a machine, on one line; nothing if that is not estimated."""
    time, rate = texts.change_time(change)
    if not time:
        return ""
    return f"Estimated: {time} ns{f', {rate} {texts.RATE}' if rate else ''}."


def _digest(comparison: ExactComparison, name: str) -> list[str]:
    """The verdict on a kernel, and the rungs that differ, those that matter most first."""
    lines = ["", *_wrap(f"{comparison.base} to {name}: {texts.verdict(comparison, name)}")]
    ranked = comparison.ranked(name)
    if ranked:
        changes = [rung.differences[name] for rung in ranked]
        rungs = [rung.title for rung in ranked]
        if len(comparison.sizes) > 1:
            rungs = [f"{rung.title} {rung.size}".rstrip() for rung in ranked]
        columns = [
            ["part" if comparison.whole else "rung", *rungs],
            ["change", *map(texts.brief, changes)],
            ["in all", *map(texts.in_all, changes)]
            if comparison.whole
            else ["", *(f"`{bar}`" for bar in texts.bars(changes, _HALF))],
            ["most of it", *map(texts.top_mover, changes)],
        ]
        if comparison.bridge:
            times = [texts.change_time(change) for change in changes]
            columns += [[texts.TIME, *(time for time, _ in times)]]
            columns += [[texts.RATE, *(rate for _, rate in times)]]
        lines += ["", *_table(columns, right=(1, 2, 4, 5) if comparison.whole else (1, 4, 5))]
    if same := texts.folded(comparison, [name], len(ranked)):
        lines += ["", f"{same}."]
    return lines


def _sharing(result: ExactResult) -> list[str]:
    """The cache lines that CPUs share: of several kernels those that differ."""
    if len(result.names) > 1:
        found = [
            (f"{change.row.title}, {change.kernel}, {change.line.arrangement}", change.what,
             change.line)
            for change in sharing_changes.changes(result)
        ]  # fmt: skip
    else:
        found = [
            (f"{record.title} {record.size}".rstrip() + f", {line.arrangement}", "", line)
            for record in result.results
            for line in (record.sharing.lines if record.sharing else ())
        ]
    if not found:
        return []
    lines = ["", "### Cache lines that CPUs share", ""]
    for where, what, line in found:
        reads, writes, locked = (
            f"{line.per_io(part):.2f}" for part in (line.reads, line.writes, line.locked)
        )
        lines += _wrap(
            f"- {where}: {what} {line.kind} sharing of {sharing_tables.described(line)};"
            f" {writes} writes, {locked} of them locked, {reads} reads per I/O".replace(":  ", ": ")
        )
    return lines


def _figures(result: ExactResult, comparison: Comparison | None) -> list[str]:
    """The figures of each kernel, and without a comparison how they differ from the first's."""
    base, *others = result.names
    rows = result.rows()
    cells = {
        kernel: [texts.cell(row, kernel, base, comparison) for row in rows]
        for kernel in result.names
    }
    first = ["", *(row.title for row in rows)]
    lines = _tables(first, [[kernel, *map(_figure, cells[kernel])] for kernel in result.names])
    if others and not comparison:
        changes = [
            [kernel, *((found and found.text) or "-" for found in cells[kernel])]
            for kernel in others
        ]
        lines += ["", f"### Change against {base}", *_tables(first, changes)]
    return lines


def _figure(found: Cell | None) -> str:
    return texts.count(found.instructions) if found else "-"


def _metrics(change: ExactChange) -> str:
    """What else differs, on one line; nothing if nothing does."""
    named = ((name, texts.metric(name, part)) for name, part in change.metrics.items())
    differing = [f"{name} {text}" for name, text in named if text]
    return f"Besides: {', '.join(differing)}." if differing else ""


def _parts(change: ExactChange) -> str:
    """Who executes more or less, on one line, where the path does not show it."""
    if not (change.total and change.total.parts):
        return ""
    return f"{texts.DEFERRED.capitalize()} {texts.parts(change.total.parts, texts.signed)}."


def _attribution(change: ExactChange) -> list[str]:
    """The layers and functions that account for a difference; the functions add up to it."""
    largest, rest = change.functions[:_LARGEST], change.functions[_LARGEST:]
    table = [
        (part.name, texts.count(part.before), texts.count(part.after),
         texts.signed(part.difference), ", ".join(texts.notes(part)))
        for part in largest
    ]  # fmt: skip
    if rest:
        before, after = sum(part.before for part in rest), sum(part.after for part in rest)
        total = texts.signed(sum(part.difference for part in rest))
        table.append((texts.rest(len(rest)), texts.count(before), texts.count(after), total, ""))
    if abs(change.unattributed) >= 0.005:
        table.append(("not attributed", "", "", texts.signed(change.unattributed), ""))
    titles = ("function", "before", "after", "difference", "note")
    columns = [list(column) for column in zip(titles, *table, strict=True)]
    layers = texts.by_layer(change)
    head = _wrap(f"By layer: {layers}.") if layers else []
    return [*head, "", *_table(columns, right=(1, 2, 3))]


def _tables(first: list[str], columns: Sequence[list[str]]) -> list[str]:
    """Columns of figures to the right of *first*: in as many tables as their width asks for."""
    lines: list[str] = []
    some: list[list[str]] = []
    for column in columns:
        wide = [max(map(len, part)) + 3 for part in (first, *some, column)]
        if some and sum(wide) + 1 > _WIDTH:
            lines += ["", *_table([first, *some], right=range(1, len(some) + 1))]
            some = []
        some.append(column)
    return [*lines, "", *_table([first, *some], right=range(1, len(some) + 1))]


def _table(columns: Sequence[list[str]], right: Sequence[int]) -> list[str]:
    """A table that Markdown knows and that reads well as it is. The columns *right* are aligned to
    the right; the first cell of each is its title."""
    cells = [[text.replace("|", "\\|") for text in column] for column in columns]
    widths = [max(3, *map(len, column)) for column in cells]
    lines = []
    for index in range(len(cells[0])):
        texts = [
            column[index].rjust(width) if at in right else column[index].ljust(width)
            for at, (column, width) in enumerate(zip(cells, widths, strict=True))
        ]
        lines.append(f"| {' | '.join(texts)} |")
    rule = [
        f"{'-' * (width + 1)}:" if at in right else "-" * (width + 2)
        for at, width in enumerate(widths)
    ]
    lines.insert(1, f"|{'|'.join(rule)}|")
    return lines


def _wrap(text: str) -> list[str]:
    return wrap(text, _WIDTH, indent="  ")
