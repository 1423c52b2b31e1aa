# SPDX-License-Identifier: GPL-2.0
"""The figures of iopath track as a chart: a panel for each rung over the same kernels, as steps,
and a list that says what each step is.

It is narrow, so that its text is read on a phone, too.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from iopath.base.errors import IopathError
from iopath.show import texts
from iopath.show.charts import INK, STYLE, short
from iopath.show.console import wrap
from iopath.track.index import Change, Index, Step, headline, ordered, rung_title
from iopath.track.store import Point
from iopath.track.watches import Config

# Okabe and Ito's, without those that are light.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", INK)
_BREAK = "#808080"  # of steps with other causes than the kernel

# Inches.
_WIDTH = 5.0
_LEFT, _RIGHT = 0.58, 0.08
_PANEL, _HEAD = 0.62, 0.28  # a panel and the title above it
_FOOT = 0.32  # the names of kernels
_LINE = 0.155  # of a text
_GAP = 0.12

_MARKED = 60  # points up to which each is marked
_NAMED = 10  # points up to which each is named
_LETTERS = 26  # steps that are named
_COLUMNS = 76  # of a text
_LETTER, _TALL = 0.062, 0.1  # inches of a character in a panel, at most

Box = tuple[float, float, float, float]  # left, right, low, high, in inches
Panels = Mapping[tuple[str, int], Mapping[str, Sequence[float | None]]]


@dataclass
class _Section:
    """What is drawn of a watch: its points, how they follow each other, the figures of each rung
    and operation, and the letters of its steps."""

    name: str
    points: list[Point]
    links: list[Step]
    panels: Panels
    letters: dict[str, str]
    colours: dict[str, str]

    @property
    def key(self) -> list[tuple[str, str]]:
        """The lines of the text below the panels, each with its letter."""
        found: list[tuple[str, str]] = []
        for step in self.links:
            if step.name in self.letters:
                found += _said(self.letters[step.name], step)
        rest = sum(1 for step in self.links if step.changes) - len(self.letters)
        if rest:
            found.append(("", f"and {rest} smaller step{'s' * (rest > 1)}"))
        return found

    @property
    def height(self) -> float:
        panels = len(self.panels) * (_PANEL + _HEAD)
        return panels + _FOOT + len(self.key) * _LINE + 2 * _GAP


def chart(index: Index, config: Config) -> Figure:
    """A panel for each rung and block size of a watch. The scales do not begin at zero; each spans
    at least 5 % of its figures."""
    sections = list(_sections(index, config))
    if not sections:
        raise IopathError("--svg: no kernel was measured, so there is nothing to draw")
    with matplotlib.rc_context(STYLE):
        handles = list(_legend(sections))
        top = (-(-len(handles) // 3) * 0.18 + 0.1) if handles else 0.0
        heads = [_HEAD * (len(sections) > 1)] * len(sections)
        height = top + sum(heads) + sum(section.height for section in sections)
        figure = Figure(figsize=(_WIDTH, height))
        figure.set_label(f"{config.title}: instructions per I/O")
        at = height - top
        for section, head in zip(sections, heads, strict=True):
            if head:
                _write(figure, at - 0.15, section.name, fontweight="bold", fontsize=10)
            _draw_section(figure, section, at - head)
            at -= head + section.height
        if handles:
            figure.legend(handles=handles, loc="upper center", ncols=min(3, len(handles)))
    return figure


def _sections(index: Index, config: Config) -> Iterator[_Section]:
    links = index.links()
    lines = list(
        dict.fromkeys(
            point.line for points in index.points().values() for point in points if not point.error
        )
    )
    colours = {line: _COLOURS[at % len(_COLOURS)] for at, line in enumerate(lines)}
    for name, points in index.points().items():
        measured = [point for point in points if not point.error]
        figures = [index.figures(point) for point in measured]
        panels: dict[tuple[str, int], dict[str, list[float | None]]] = {}
        for key in ordered({key for row in figures for key in row}, config):
            rung, op, size = key
            values = [row[key][0] if key in row else None for row in figures]
            panels.setdefault((rung, size), {})[op] = values
        if panels:
            own = [step for step in links if step.after.watch == name]
            yield _Section(name, measured, own, panels, _letters(own), colours)


def _letters(links: Sequence[Step]) -> dict[str, str]:
    """The letter of each step; of many, of the largest ones."""
    steps = [step for step in links if step.changes]
    largest = sorted(steps, key=lambda step: -abs(headline(step).percent or 0.0))[:_LETTERS]
    named = [step.name for step in steps if step in largest]
    return {name: chr(ord("a") + at) for at, name in enumerate(named)}


def _said(letter: str, step: Step) -> Iterator[tuple[str, str]]:
    """What a step is: the kernel or commit, its largest change, and by which function."""
    change, after = headline(step), step.after
    name = f"{after.title[:8]} {after.detail}" if after.commit else _brief(after)
    text = f"{name}: {change.title} {change.text}"
    if change.functions:
        text += f": {change.functions.partition(', ')[0]}"
    if step.breaks:
        text += f"; {', '.join(step.breaks)}"
    for number, line in enumerate(wrap(text, _COLUMNS)):
        yield "" if number else letter, line


def _legend(sections: Sequence[_Section]) -> Iterator[Line2D]:
    lines = dict.fromkeys(point.line for section in sections for point in section.points)
    if len(lines) > 1:
        for line in lines:
            colour = sections[0].colours[line]
            yield Line2D([], [], color=colour, linewidth=1.4, label=line)
    if any(_is_dashed(link) for section in sections for link in section.links):
        yield Line2D(
            [],
            [],
            color=_BREAK,
            linewidth=1,
            linestyle="--",
            label="another compiler or instrument",
        )
    ops = {op for section in sections for ops in section.panels.values() for op in ops}
    if {"read", "write"} <= ops:
        yield Line2D([], [], color=INK, linewidth=1.4, label="read")
        yield Line2D([], [], color=INK, linewidth=1.4, linestyle=":", label="write")


def _is_dashed(link: Step) -> bool:
    return bool(link.breaks) or link.apart


def _write(figure: Figure, at: float, text: str, left: float = 0.1, **style: object) -> None:
    """A text whose baseline is *at* inches above the lower edge."""
    figure.text(left / _WIDTH, at / figure.get_figheight(), text, **style)


def _draw_section(figure: Figure, section: _Section, top: float) -> None:
    height = figure.get_figheight()
    at = top
    for number, ((rung, size), ops) in enumerate(section.panels.items(), 1):
        at -= _HEAD + _PANEL
        place = (
            _LEFT / _WIDTH, at / height, (_WIDTH - _LEFT - _RIGHT) / _WIDTH, _PANEL / height
        )  # fmt: skip
        axes = figure.add_axes(place)
        axes.set_title(
            rung_title((rung, "none" if len(ops) > 1 else next(iter(ops)), size)), loc="left"
        )
        _draw(axes, section, (rung, size), ops)
        _name_kernels(axes, section.points, last=number == len(section.panels))
    at -= _FOOT + _GAP / 2
    for letter, text in section.key:
        at -= _LINE
        _write(figure, at, letter, fontweight="bold", fontsize=7.5)
        _write(figure, at, text, left=0.25, fontsize=7.5)


def _draw(
    axes: Axes,
    section: _Section,
    panel: tuple[str, int],
    ops: Mapping[str, Sequence[float | None]],
) -> None:
    places = {point.path: at for at, point in enumerate(section.points)}
    known = [value for values in ops.values() for value in values if value is not None]
    middle = (min(known) + max(known)) / 2
    half = max((max(known) - min(known)) * 0.62, middle * 0.025)
    axes.set_ylim(middle - half, middle + half)
    axes.set_xlim(-0.5, len(section.points) - 0.5 + 0.02 * len(section.points))
    marks: list[tuple[Change, str, int, float]] = []
    for op, values in ops.items():
        runs: dict[str, list[list[tuple[int, float]]]] = {}
        for at, value in enumerate(values):
            link = next((one for one in section.links if places[one.after.path] == at), None)
            if value is None:
                continue
            before = places[link.before.path] if link else at
            start = values[before]
            line = section.points[at].line
            own = runs.setdefault(line, [])
            if link and start is not None and _is_dashed(link):
                axes.plot(
                    [before, at, at], [start, start, value],
                    color=_BREAK, linewidth=0.9, linestyle="--", zorder=1,
                )  # fmt: skip
            if link and start is not None and not _is_dashed(link):
                if own and own[-1][-1][0] == before:
                    own[-1].append((at, value))
                else:
                    own.append([(before, start), (at, value)])
            else:
                own.append([(at, value)])
            if link and link.name in section.letters:
                marks += [
                    (change, section.letters[link.name], at, value)
                    for change in link.changes
                    if change.key == (panel[0], op, panel[1])
                ]
        for line, parts in runs.items():
            for part in parts:
                axes.plot(
                    *zip(*part, strict=True), color=section.colours[line], linewidth=1.4,
                    drawstyle="steps-post", linestyle=":" if op == "write" else "-",
                    marker="o" if len(section.points) <= _MARKED else None, markersize=2.2,
                )  # fmt: skip
    _mark(axes, marks, len(section.points))
    axes.yaxis.set_major_formatter(lambda value, _: short(value))
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.tick_params(axis="y", labelsize=7.5)
    axes.grid(axis="y", color="#808080", alpha=0.3, linewidth=0.5)


def _mark(axes: Axes, marks: Sequence[tuple[Change, str, int, float]], points: int) -> None:
    """Write the letters of steps beside them, each with its difference if there is room, the
    largest first. No text covers another one, and no text covers a line if possible."""
    across, up = (_WIDTH - _LEFT - _RIGHT) / (points * 1.02), axes.get_ylim()
    high = _PANEL / (up[1] - up[0])
    lines: list[Box] = []
    for line in axes.get_lines():
        drawn = line.get_path().vertices if line.get_drawstyle() == "default" else _steps(line)
        inches = [((x + 0.5) * across, (y - up[0]) * high) for x, y in drawn]
        lines += [
            (min(x, u), max(x, u), min(y, v), max(y, v))
            for (x, y), (u, v) in itertools.pairwise(inches)
        ]
    taken: list[Box] = []
    places = {at: ((at + 0.5) * across, (value - up[0]) * high) for *_, at, value in marks}
    # A letter at the lower edge can only be above its point.
    kept = {
        at: _box(x, y, "a", right=True, above=True)
        for at, (x, y) in places.items()
        if y < _TALL + 0.02
    }
    for change, letter, at, value in sorted(marks, key=lambda one: -abs(one[0].difference)):
        x, y = places[at]
        kept.pop(at, None)
        full = f"{letter} {texts.signed(change.difference)}"
        for text, avoided in (
            (full, [*taken, *lines, *kept.values()]), (letter, taken + lines), (letter, taken),
        ):  # fmt: skip
            place = next(
                (
                    (right, above, box)
                    for right, above in itertools.product((True, False), (True, False))
                    if _fits(box := _box(x, y, text, right=right, above=above), avoided)
                ),
                None,
            )
            if place:
                break
        right, above, box = place or (True, True, _box(x, y, letter, right=True, above=True))
        taken.append(box)
        axes.annotate(
            text, (at, value), (2 if right else -2, 2 if above else -2),
            textcoords="offset points", ha="left" if right else "right",
            va="bottom" if above else "top", fontsize=7, fontweight="bold",
        )  # fmt: skip


def _steps(line: Line2D) -> list[tuple[float, float]]:
    """The corners of a line that is drawn as steps."""
    points = list(zip(line.get_xdata(), line.get_ydata(), strict=True))
    corners = [(u, y) for (_, y), (u, _) in itertools.pairwise(points)]
    return [
        *itertools.chain.from_iterable(zip(points[:-1], corners, strict=True)),
        points[-1],
    ]


def _box(x: float, y: float, text: str, *, right: bool, above: bool) -> Box:
    """The place of a text beside a point, in inches."""
    wide, high = _LETTER * len(text), _TALL
    left = x + 0.02 if right else x - 0.02 - wide
    low = y + 0.02 if above else y - 0.02 - high
    return left, left + wide, low, low + high


def _fits(box: Box, others: Sequence[Box]) -> bool:
    """Whether a text is within its panel and free of others."""
    left, right, low, high = box
    inside = left >= 0 and right <= _WIDTH - _LEFT and low >= 0 and high <= _PANEL + 0.05
    return inside and all(
        right <= one[0] or left >= one[1] or high <= one[2] or low >= one[3] for one in others
    )


def _name_kernels(axes: Axes, points: Sequence[Point], *, last: bool) -> None:
    """Name the kernels below the last panel: few by their own names, Debian's by their series,
    which a line separates in each panel."""
    axes.tick_params(axis="x", length=0)
    if len(points) <= _NAMED or points[0].commit:
        step = -(-len(points) // _NAMED)
        axes.set_xticks(range(0, len(points), step))
        axes.tick_params(axis="x", length=2)
        if last:
            axes.set_xticklabels([_brief(point) for point in points[::step]], fontsize=7)
            for label in axes.get_xticklabels():
                label.set(rotation=25, ha="right", rotation_mode="anchor")
    else:
        middles, names, at = [], [], 0
        for name, group in itertools.groupby(points, _series):
            size = len(list(group))
            if at:
                axes.axvline(at - 0.5, color="#808080", alpha=0.4, linewidth=0.6)
            middles.append(at + (size - 1) / 2)
            names.append(name)
            at += size
        axes.set_xticks(middles)
        if last:
            axes.set_xticklabels(names, fontsize=8, fontweight="bold")
    if not last:
        axes.set_xticklabels([])


def _series(point: Point) -> str:
    """The series of a Debian kernel: "6.12"."""
    return ".".join(_brief(point).partition("~")[0].split(".")[:2])


def _brief(point: Point) -> str:
    """The upstream version of a Debian kernel, or a commit."""
    return point.title[:8] if point.commit else point.title.partition("-")[0]
