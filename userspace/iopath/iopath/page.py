# SPDX-License-Identifier: GPL-2.0
"""A result, and what a comparison made of it, as one web page or as text for a mail.

The page needs nothing but itself: no network, no server. Tables of functions and flame graphs are
drawn by its script, when they are looked at, from numbers that the page carries.
"""

import io
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from iopath import charts, compare
from iopath.layers import Layers
from iopath.report import (
    change_text,
    facts,
    host_facts,
    is_telling,
    metric_text,
    noise_text,
    verdict_text,
)
from iopath.result import matters
from iopath.symbols import Symbol, plain

_TEMPLATES = Path(__file__).parent / "templates"
_WIDTH = 100  # columns of a text
_LARGEST = 5  # functions that a text names for each changed rung

# What the page's script reads of a function, in this order: of a guest's, and of a machine's. The
# first is what everything is shown in.
_COUNTS = ("instructions", "reads", "writes", "locked", "calls", "indirect", "branches")
_SAMPLED = ("ns", "samples")


def render(
    result: dict[str, Any], comparison: dict[str, Any] | None, layers: Layers | None = None
) -> str:
    """One self-contained HTML page: of an exact result, or of a machine's profile.

    *layers* is the table that the result's functions are sorted by, iopath's own if there is none.
    """
    layers = layers or Layers()
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters["count"] = _count
    environment.filters["change"] = _change
    environment.filters["difference"] = change_text
    kernels = result["kernels"]
    rows = charts.rows(result)
    names = [kernel["name"] for kernel in kernels]
    options = {name for kernel in kernels for name in kernel["config"] if matters(name)}
    options |= compare.options(kernels).keys()
    profiled = any("profile" in record for record in result["results"])
    exact = result["mode"] == "exact"
    return environment.get_template("page.html").render(
        exact=exact,
        kernels=kernels,
        facts=facts(result) if exact else host_facts(result),
        options=[
            (name, [kernel["config"].get(name, "") for kernel in kernels])
            for name in sorted(options)
        ],
        labels=comparison["labels"] if comparison else [],
        unknown=_unknown(comparison),
        base=_base(result, comparison),
        rows=[
            (index, row, [_cell(row, name, result, comparison) for name in names])
            for index, row in enumerate(rows)
            if exact
        ],
        ladder=_inline(charts.ladder(result, layers), "ladder") if exact else "",
        history=_inline(charts.history(result), "history") if len(kernels) > 2 else "",
        profiled=profiled,
        data=_data(result, rows, comparison, layers) if profiled else None,
        css=_source("page.css"),
        script=_source("page.js"),
    )


def _source(name: str) -> Markup:
    """A style sheet or script, which the page holds as it is."""
    return Markup((_TEMPLATES / name).read_text())


def _base(result: dict[str, Any], comparison: dict[str, Any] | None) -> str:
    return comparison["base"] if comparison else result["kernels"][0]["name"]


def _unknown(comparison: dict[str, Any] | None) -> bool:
    """Whether of any change nobody can tell if it is noise."""
    return any(
        found["verdict"] == "unknown"
        for rung in (comparison["rungs"] if comparison else ())
        for found in rung["differences"].values()
    )


def _differences(row: charts.Row, comparison: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """What the comparison says of a row, by kernel."""
    for rung in comparison["rungs"] if comparison else ():
        if (rung["rung"], rung["op"], rung["block_size"]) == (row.rung, row.op, row.size):
            return rung["differences"]
    return {}


def _cell(
    row: charts.Row, kernel: str, result: dict[str, Any], comparison: dict[str, Any] | None
) -> dict[str, Any] | None:
    """A kernel's figure on a row and how it differs from the base's; the verdict only if there is
    a comparison to give it."""
    base = _base(result, comparison)
    record, first = row.records.get(kernel), row.records.get(base)
    if record is None:
        return None
    cell = {
        "instructions": record["instructions_per_io"],
        "spread": max(record["spread"], record["boot_spread"]),
        "difference": None,
        "percent": None,
        "verdict": "",
    }
    found = _differences(row, comparison).get(kernel)
    if found:
        return cell | {key: found[key] for key in ("difference", "percent", "verdict", "moved")}
    if comparison is None and first and kernel != base:
        before = first["instructions_per_io"]
        cell["difference"] = record["instructions_per_io"] - before
        cell["percent"] = 100 * cell["difference"] / before if before else None
    return cell


def _count(value: float) -> str:
    return f"{value:,.2f}"


def _change(cell: dict[str, Any] | None) -> str:
    """How a cell differs, if it does beyond the noise; with a question mark if nobody can tell."""
    if cell is None or cell["difference"] is None:
        return ""
    if cell["verdict"] == "same":
        return verdict_text(cell)
    return change_text(cell) + ("?" if cell["verdict"] == "unknown" else "")


def _inline(figure: Figure, name: str) -> Markup:
    """A chart as an element of the page, in the page's own colours; *name* keeps the ids of several
    charts apart."""
    buffer = io.StringIO()
    charts.write_svg(figure, buffer)
    text = buffer.getvalue()
    text = text[text.index("<svg ") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'\bxlink:href="#', f'href="#{name}-', text)
    text = text.replace("url(#", f"url(#{name}-").replace(charts.INK, "currentColor")
    return Markup(text)


# What the page's script works on.


def _data(
    result: dict[str, Any],
    rows: Sequence[charts.Row],
    comparison: dict[str, Any] | None,
    layers: Layers,
) -> dict[str, Any]:
    """The profiles, as compact as they go: functions are numbers into one list of names."""
    kernels = [kernel["name"] for kernel in result["kernels"]]
    looks = charts.looks(result, layers)
    order = [*looks, *([] if "other" in looks else ["other"])]
    counts = _COUNTS if result["mode"] == "exact" else _SAMPLED
    names = _Names(order, counts)
    rungs = []
    for row in rows:
        differences = _differences(row, comparison)
        rungs.append(
            {
                "title": row.title,
                "key": f"{row.rung}/{row.op}/{row.size}",
                "profiles": [
                    names.profile(row.records[kernel]["profile"])
                    if "profile" in row.records.get(kernel, {})
                    else None
                    for kernel in kernels
                ],
                "differences": {
                    kernels.index(kernel): {
                        "layers": [
                            [part[key] for key in ("layer", "before", "after", "difference")]
                            for part in found["layers"]
                        ],
                        "functions": [
                            [
                                part[key]
                                for key in (
                                    "name", "layer", "before", "after", "difference", "note",
                                )
                            ]
                            for part in found["functions"]
                        ],
                        "unattributed": found["unattributed"],
                    }
                    for kernel, found in differences.items()
                    if kernel in kernels and found["functions"]
                },
            }
        )  # fmt: skip
    other = charts.Look(charts.OTHER)
    base = kernels.index(_base(result, comparison)) if _base(result, comparison) in kernels else 0
    return {
        "kernels": kernels,
        "base": base,
        "start": _start(rows, comparison),
        "counts": counts,
        "names": names.texts,
        "canonical": names.canonical,
        "renamed": _renamed(result, names, layers),
        "layerOf": names.layers,
        "layers": [
            [name, _background(looks.get(name, other)), looks.get(name, other).ink]
            for name in order
        ],
        "rungs": rungs,
    }


def _renamed(result: dict[str, Any], names: "_Names", layers: Layers) -> list[Any]:
    """For each two kernels the functions with another name in the other one: pairs of numbers, of
    the name and of the newer name."""
    executed = compare.executed_names(result)
    return [
        [
            sorted(
                [names.number(name), names.number(newest)]
                for name, newest in layers.renamed(before, after).items()
                if name != newest
            )
            for after in executed.values()
        ]
        for before in executed.values()
    ]


def _background(look: charts.Look) -> str:
    """A layer's look in CSS."""
    if not look.hatch:
        return look.colour
    angle = {"/": 135, ".": 90, "x": 45}[look.hatch[0]]
    return f"repeating-linear-gradient({angle}deg,{look.colour} 0 7px,#fff9 7px 8px),{look.colour}"


class _Names:
    """Numbers for functions; each has a text, a layer, and the number of its name without what
    compilers add to it."""

    def __init__(self, layers: Sequence[str], counts: Sequence[str]) -> None:
        self.texts: list[str] = []
        self.layers: list[int] = []
        self.canonical: list[int] = []
        self._numbers: dict[str, int] = {}
        self._counts = counts
        self._order = {name: number for number, name in enumerate(layers)}

    def number(self, text: str, layer: str = "other") -> int:
        if text not in self._numbers:
            number = len(self.texts)
            self._numbers[text] = number
            self.texts.append(text)
            self.layers.append(self._order.get(layer, self._order["other"]))
            self.canonical.append(number)
            name, _, module = text.partition(" ")
            canonical = f"{plain(name)} {module}".rstrip()
            if canonical != text:
                self.canonical[number] = self.number(canonical, layer)
        return self._numbers[text]

    def profile(self, profile: dict[str, Any]) -> dict[str, Any]:
        """A profile's functions, a row each, and its call tree."""
        functions = [
            [
                self.number(Symbol(part["name"], part["module"]).text, part["layer"]),
                *(_small(part[count]) for count in self._counts),
            ]
            for part in profile["functions"]
        ]
        drawn = {
            "total": profile[self._counts[0]],
            "functions": functions,
            "stacks": self._tree(profile["stacks"]),
        }
        if self._counts == _SAMPLED:
            inside = (part["ns"] for part in profile["functions"] if part["module"] != "user")
            return drawn | {"kernel": sum(inside)}
        return drawn | {
            "kernel": profile["kernel"],
            "lines": profile["lines"],
            "faults": profile["faults"],
            "switches": profile["switches"],
            "unmatched": profile["unmatched_returns"],
        }

    def _tree(self, stacks: Sequence[Sequence[Any]]) -> list[float]:
        """The call tree from the top down: depth, function and own instructions of each node."""
        flat: list[float] = []
        above: tuple[str, ...] = ()
        for path, count in sorted((tuple(stack.split(";")), count) for stack, count in stacks):
            shared = 0
            while shared < min(len(above), len(path)) and above[shared] == path[shared]:
                shared += 1
            for depth in range(shared, len(path)):
                flat += [depth, self.number(path[depth]), 0]
            flat[-1] = _small(count)
            above = path
        return flat


def _small(value: float) -> float:
    """The number in its shortest form."""
    return int(value) if value == int(value) else value


def _start(rows: Sequence[charts.Row], comparison: dict[str, Any] | None) -> int:
    """The row that a reader wants first: the most changed, or else the first I/O."""
    changed = [
        (abs(found["percent"] or 0), -index)
        for index, row in enumerate(rows)
        for found in _differences(row, comparison).values()
        if (found["verdict"] != "same" or found["moved"]) and found["functions"]
    ]
    if changed:
        return -max(changed)[1]
    return next((index for index, row in enumerate(rows) if row.op != "none"), 0)


# For a mail.


def markdown(result: dict[str, Any], comparison: dict[str, Any] | None) -> str:
    """The figures, and what made those that changed, for a mail or a commit message."""
    kernels = [kernel["name"] for kernel in result["kernels"]]
    base = _base(result, comparison)
    rows = charts.rows(result)
    lines = ["## Instructions per I/O", ""]
    for name, text in facts(result):
        lines += _wrap(f"- {name}: {text}")
    if comparison and comparison["labels"]:
        lines += ["", "Beside their code, these kernels differ in:", ""]
        for label in comparison["labels"]:
            lines += _wrap(f"- {label}")
    cells = {
        (index, kernel): _cell(row, kernel, result, comparison)
        for index, row in enumerate(rows)
        for kernel in kernels
    }
    first = ["", *(row.title for row in rows)]
    figures = [
        [kernel, *(_figure(cells[index, kernel]) for index in range(len(rows)))]
        for kernel in kernels
    ]
    lines += _tables(first, figures)
    others = [kernel for kernel in kernels if kernel != base]
    if others:
        lines += ["", f"### Change against {base}"]
        if _unknown(comparison):
            lines += ["", "? may be noise: that takes four boots or more to tell"]
        changes = [
            [kernel, *(_change(cells[index, kernel]) or "-" for index in range(len(rows)))]
            for kernel in others
        ]
        lines += _tables(first, changes)
    for row in rows:
        for kernel, found in _differences(row, comparison).items():
            if is_telling(found) or (found["verdict"] == "unknown" and found["functions"]):
                lines += ["", f"### {row.title}: {base} to {kernel}", ""]
                noise = f"(noise {noise_text(found)})"
                lines += [f"{change_text(found)}, {verdict_text(found)} {noise}"]
                lines += _wrap(_metrics(found))
                lines += _attribution(found)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _figure(cell: dict[str, Any] | None) -> str:
    return _count(cell["instructions"]) if cell else "-"


def _metrics(found: dict[str, Any]) -> str:
    """What else differs, on one line; nothing if nothing does."""
    texts = ((name, metric_text(name, part)) for name, part in found["metrics"].items())
    differing = [f"{name} {text}" for name, text in texts if text]
    return f"Besides: {', '.join(differing)}." if differing else ""


def _attribution(found: dict[str, Any]) -> list[str]:
    """The layers and functions that account for a difference; the functions add up to it."""
    texts = [
        f"{part['layer']} {part['difference']:+,.2f}"
        for part in found["layers"]
        if abs(part["difference"]) >= 0.005
    ]
    largest, rest = found["functions"][:_LARGEST], found["functions"][_LARGEST:]
    table = [
        (
            part["name"], _count(part["before"]), _count(part["after"]),
            f"{part['difference']:+,.2f}", part["note"],
        )
        for part in largest
    ]  # fmt: skip
    if rest:
        before, after, change = (
            sum(part[key] for part in rest) for key in ("before", "after", "difference")
        )
        table.append((f"{len(rest)} more", _count(before), _count(after), f"{change:+,.2f}", ""))
    if abs(found["unattributed"]) >= 0.005:
        table.append(("not attributed", "", "", f"{found['unattributed']:+,.2f}", ""))
    titles = ("function", "before", "after", "difference", "note")
    columns = [list(column) for column in zip(titles, *table, strict=True)]
    return [*_wrap(f"By layer: {', '.join(texts)}."), "", *_table(columns, right=(1, 2, 3))]


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
    return textwrap.wrap(
        text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
