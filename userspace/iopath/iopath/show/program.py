# SPDX-License-Identifier: GPL-2.0
"""What a program costs, on the terminal."""

import shlex
from collections.abc import Mapping

from rich.console import Console

from iopath.compare import program as changes
from iopath.compare.program import Change, Comparison
from iopath.results.program import BESIDE, CALL, FAULT, LATER, OWN, Ran, Result
from iopath.show.table import Table

_FUNCTIONS = 1  # of a row
_LARGE = 10_000
_ROWS = 12  # of a table, if not all are shown


def show(result: Result, out: Console, *, every: bool, top: int | None) -> None:
    """Print what each kernel counted."""
    for number, ran in enumerate(result.kernels):
        if number:
            out.print()
        _show_one(result, ran, out, every=every, top=top or _FUNCTIONS)


def _show_one(result: Result, ran: Ran, out: Console, *, every: bool, top: int) -> None:
    boot = ran.boots[0]
    command = shlex.join([result.program, *result.command])
    _say(out, f"{ran.name}: {command}: {boot.whole:,} instructions")
    out.print()
    table = Table("")
    table.number_column("times")
    table.number_column("user before")
    table.number_column("kernel")
    table.number_column("in all")
    table.text_column("costliest function, each time", wraps=True)
    calls = sorted(boot.of(CALL), key=lambda part: -(part.instructions + part.before))
    shown = calls if every or len(calls) <= _ROWS + 1 else calls[:_ROWS]
    for part in shown:
        table.row(
            part.name, f"{part.times:,}", _figure(part.before / part.times), _figure(part.each),
            f"{part.before + part.instructions:,}", _functions(part.functions, part.times, top),
        )  # fmt: skip
    if rest := calls[len(shown) :]:
        table.row(
            f"{len(rest)} more", f"{sum(part.times for part in rest):,}", "", "",
            f"{sum(part.before + part.instructions for part in rest):,}", "(--all)",
        )  # fmt: skip
    last = boot.find(OWN, "its own code").instructions - sum(part.before for part in calls)
    if last:
        table.row("after its last call", "", "", "", f"{last:,}")
    for kind in (FAULT, LATER):
        parts = boot.of(kind)
        if parts:
            table.add_section()
        for part in parts:
            table.row(
                part.name, f"{part.times:,}", "", _figure(part.each), f"{part.instructions:,}",
                _functions(part.functions, part.times, top),
            )  # fmt: skip
    table.add_section()
    table.row("in all", "", "", "", f"{boot.whole:,}")
    out.print(table)
    beside = ", ".join(f"{part.name} {part.instructions:,}" for part in boot.of(BESIDE))
    out.print()
    _say(out, f"not in it: {beside or 'nothing'}")
    _show_noise(ran, out)


def _show_noise(ran: Ran, out: Console) -> None:
    if len(ran.boots) == 1:
        return
    varying = changes.varying(ran)
    if not varying:
        _say(out, f"{len(ran.boots)} boots: the same count")
        return
    whole = changes.figures(ran)["the whole"]
    parts = ", ".join(f"{name} by {one.width:,.0f}" for name, one in varying.items())
    _say(out, f"{len(ran.boots)} boots differ by {whole.width:,.0f}: {parts}")


def _functions(functions: Mapping[str, int], times: int, top: int) -> str:
    some = [*functions.items()][:top]
    return ", ".join(f"{name} {_number(count / max(times, 1))}" for name, count in some)


def _figure(value: float, sign: str = "") -> str:
    """A figure of two decimals, if it is not so large that they do not matter."""
    return f"{value:{sign},.2f}" if abs(value) < _LARGE else f"{value:{sign},.0f}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else _figure(value)


def show_changes(
    result: Result, comparison: Comparison, out: Console, *, every: bool, top: int | None
) -> None:
    """Print what differs between two kernels."""
    a, b = comparison.names
    command = shlex.join([result.program, *result.command])
    whole = comparison.whole
    _say(
        out,
        f"{a} to {b}: {command}: {whole[0]:,} to {whole[1]:,} instructions, {_percent(*whole)}",
    )
    out.print()
    table = Table("")
    table.number_column("times")
    table.number_column(f"on {a}")
    table.number_column("change")
    table.number_column("in all")
    table.text_column("most of it, each time", wraps=True)
    found = comparison.changes
    shown = found if every or len(found) <= _ROWS + 1 else found[:_ROWS]
    for one in shown:
        x, y = one.each
        each = (_figure(x), _figure(y - x, "+")) if any(one.times) else ("", "")
        table.row(one.name, _times(one), *each, f"{one.more:+,}", _most(one, top or _FUNCTIONS))
    if rest := found[len(shown) :]:
        more = sum(one.more for one in rest)
        table.row(f"{len(rest)} more", "", "", "", f"{more:+,}", "(--all)")
    table.add_section()
    table.row("in all", "", "", "", f"{comparison.more:+,}")
    out.print(table)
    for ran in result.kernels:
        if ran.name in comparison.names and len(ran.boots) > 1:
            out.print()
            _say(out, f"{ran.name}:")
            _show_noise(ran, out)


def _times(one: Change) -> str:
    x, y = one.times
    if not x and not y:
        return ""
    return f"{x:,}" if x == y else f"{x:,} to {y:,}"


def _most(one: Change, top: int) -> str:
    some = [*one.functions.items()][:top]
    times = max(*one.times, 1)
    return ", ".join(f"{name} {_figure(count / times, '+')}" for name, count in some)


def _percent(x: float, y: float) -> str:
    return f"{100 * (y / x - 1):+.1f} %" if x else "new"


def _say(out: Console, text: str) -> None:
    out.print(text, markup=False, highlight=False, soft_wrap=True)
