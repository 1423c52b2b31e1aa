# SPDX-License-Identifier: GPL-2.0
"""What features cost, as a table: on the terminal, and in Markdown."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from iopath.compare.changes import SCHEDULER
from iopath.results.layers import EBPF
from iopath.results.result import title
from iopath.rungs.feature import NOTHING, Base
from iopath.show import sharing_tables, tables, texts
from iopath.show.console import put, put_text
from iopath.studies.features import Cost

_LAYERS = 3  # layers that are named
_LARGEST = 2  # functions of each


def groups(costs: Sequence[Cost]) -> Iterator[tuple[str, list[str], list[list[Cost]]]]:
    """The rungs, each with its kernels and a row for each feature, the most expensive first: what
    runs in production, then layers, then tracers. The base that was measured again is shown only
    beside features."""
    kernels = list(dict.fromkeys(cost.kernel for cost in costs))
    beside = {
        (cost.tracer, cost.layer, cost.rung, cost.op) for cost in costs if cost.feature != NOTHING
    }
    costs = [
        cost
        for cost in costs
        if not beside or (cost.tracer, cost.layer, cost.rung, cost.op) in beside
    ]
    found: dict[tuple[bool, bool, str, str], dict[str, list[Cost]]] = {}
    for cost in costs:
        key = (cost.tracer, cost.layer, cost.rung, cost.op)
        found.setdefault(key, {}).setdefault(cost.feature, []).append(cost)
    for tracer, layer, rung, op in sorted(found, key=lambda key: key[:2]):
        what = "layers on " if layer else "tracers on " if tracer else ""
        rows = found[tracer, layer, rung, op].values()
        yield (
            f"{what}{title(rung, op)}",
            kernels,
            sorted(rows, key=lambda row: -max(cost.difference for cost in row)),
        )


def functions(cost: Cost) -> list[str]:
    """Where a difference comes from: layers with their functions, programs of eBPF and then the
    largest first, and their share of the differences of all functions."""
    layers: dict[str, list[tuple[float, str]]] = {}
    for part in cost.functions:
        layers.setdefault(part.layer, []).append((part.difference, part.name))
    moved = sum(abs(part.difference) for part in cost.functions)
    if not moved:
        return []
    said, shown = [], 0.0
    largest = sorted(
        layers.items(), key=lambda one: (one[0] != EBPF, -sum(abs(by) for by, _ in one[1]))
    )
    for layer, parts in largest[:_LAYERS]:
        if cost.cause and layer == SCHEDULER:
            by = sum(by for by, _ in parts)
            shown += sum(abs(by) for by, _ in parts)
            said.append(f"{cost.cause}: {layer} {texts.signed(by)}")
            continue
        some = sorted(parts, key=lambda part: -abs(part[0]))[:_LARGEST]
        shown += sum(abs(by) for by, _ in some)
        named = ", ".join(f"{name} {texts.signed(by)}" for by, name in some)
        said.append(f"{layer} {texts.signed(sum(by for by, _ in parts))}: {named}")
    return [*said, f"({100 * shown / moved:.0f} % shown)"]


def _head(kernels: Sequence[str]) -> list[str]:
    return ["feature", *kernels, "%", *EXPLAINED, "functions"]


# What the columns mean, for those who see them first.
EXPLAINED = {
    "total": "with deferred work and other tasks",
    "locked": "instructions with a lock prefix",
    "indirect": "calls and jumps to a computed address",
}


def _legend(kernels: Sequence[str], per: str) -> str:
    said = "; ".join(f"{name}: {what}" for name, what in EXPLAINED.items())
    last = f"on {kernels[-1]}, " if len(kernels) > 1 else ""
    return f"{last}instructions {per}; {said}"


def _cells(row: Sequence[Cost], kernels: Sequence[str], between: str) -> list[str]:
    """What a feature costs on each kernel, and more about the last one that has it. *between* is
    between layers."""
    by_kernel = {cost.kernel: cost for cost in row}
    cells = [row[0].feature]
    for kernel in kernels:
        cost = by_kernel.get(kernel)
        if cost is None or cost.missing:
            cells.append("-")
        else:
            cells.append("error" if cost.error else texts.signed(cost.difference))
    known = [cost for cost in row if not cost.missing and not cost.error]
    if not known:
        return [*cells, "", "", "", "", row[-1].error or row[-1].missing]
    cost = known[-1]
    counts = [texts.signed(n) if n else "" for n in (cost.locked, cost.indirect)]
    return [
        *cells,
        f"{cost.percent:+.1f}",
        "" if cost.total is None else texts.signed(cost.total),
        *counts,
        between.join(functions(cost)),
    ]


_SHARED = ("feature", "CPUs share", "writes", "locked", "lines")


def _shared(rows: Sequence[Sequence[Cost]]) -> list[list[str]]:
    """How each feature changes what several CPUs share, on the last kernel that has it."""
    found = []
    for row in rows:
        known = [cost for cost in row if cost.shared]
        for number, one in enumerate((known[-1].shared or ()) if known else ()):
            arrangements = ", ".join(one.arrangements)
            lines = sharing_tables.changed_lines(one, _LARGEST)
            name = "" if number else row[0].feature
            found.append([name, arrangements, *sharing_tables.writes(one), lines])
    return found


def _counted_together(rows: Sequence[Sequence[Cost]]) -> bool:
    return any(cost.shared is not None for row in rows for cost in row)


def show(base: Base, costs: Sequence[Cost], console: Console, command: str = "") -> None:
    """Print what features cost, rung by rung, or part by part of the program with this *command*
    line."""
    if command:
        put_text(console, f"program: {command}")
    put_text(console, f"base: {base.cmdline}")
    same = []
    for heading, kernels, rows in groups(costs):
        if command and not any(_says(cost) for row in rows for cost in row):
            same.append(heading)
            continue
        known = [cost for row in rows for cost in row if cost.base]
        bases = {cost.kernel: texts.count(cost.base) for cost in known}
        said = ", ".join(f"{kernel} {count}" for kernel, count in bases.items())
        put(console, Text())
        put_text(console, f"{heading}: {said} instructions without a feature")
        table = tables.Table("feature")
        for name in kernels:
            table.number_column(tables.narrow(name) if len(kernels) > 1 else name)
        for name in ("change", *EXPLAINED):
            table.number_column(name, below=True)
        table.text_column("functions", wraps=True, below=True)
        for row in rows:
            cells = _cells(row, kernels, "\n")
            share = 1 + len(kernels)
            cells[share] += " %" if cells[share] else ""
            table.row(*cells)
        put(console, table)
        if _counted_together(rows):
            _show_shared(_shared(rows), console)
    put(console, Text())
    if same:
        put_text(console, f"nothing is changed: {', '.join(same)}")
    per = "each time" if command else "per I/O"
    put_text(console, _legend(list(dict.fromkeys(cost.kernel for cost in costs)), per), "dim")
    for cost in costs:
        if cost.error:
            put_text(console, f"{cost.kernel}: {cost.feature} on {cost.title}: {cost.error}")


def _says(cost: Cost) -> bool:
    return abs(cost.difference) >= 0.01 or bool(cost.missing or cost.error)


def _show_shared(rows: Sequence[Sequence[str]], console: Console) -> None:
    if not rows:
        put(console, Text("\nno feature changes what CPUs share"))
        return
    put(console, Text("\nwrites per I/O to lines that another CPU touches:"))
    table = tables.Table(_SHARED[0], _SHARED[1])
    for name in _SHARED[2:-1]:
        table.number_column(name)
    table.text_column(_SHARED[-1], wraps=True, below=True)
    for row in rows:
        table.row(*row)
    put(console, table)


def markdown(base: Base, costs: Sequence[Cost], command: str = "") -> str:
    """The same in Markdown."""
    lines = ["# What features cost", ""]
    if command:
        lines += [f"Program: `{command}`", ""]
    lines += [f"Base: `{base.cmdline}`"]
    for heading, kernels, rows in groups(costs):
        head = _head(kernels)
        lines += ["", f"## {heading}", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        lines += [f"| {' | '.join(_cells(row, kernels, '; '))} |" for row in rows]
        if shared := _shared(rows):
            lines += ["", f"| {' | '.join(_SHARED)} |", "|---" * len(_SHARED) + "|"]
            lines += [f"| {' | '.join(row)} |" for row in shared]
    return "\n".join(lines) + "\n"
