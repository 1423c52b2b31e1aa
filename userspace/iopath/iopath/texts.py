# SPDX-License-Identifier: GPL-2.0
"""Numbers and differences as text, alike in the terminal, in Markdown and in the page."""

from collections import Counter
from dataclasses import dataclass

from iopath.comparison import Change, Comparison, ExactChange, Metric, percent
from iopath.result import Row

_VERDICTS = {
    "longer": "longer",
    "shorter": "shorter",
    "same in sum": "the same in sum",
    "same": "the same",
    "unknown": "of unknown noise",
}
_FEW = 4  # layers in the verdict


def count(value: float) -> str:
    return f"{value:,.2f}"


def signed(value: float) -> str:
    return f"{value:+,.2f}"


def change(difference: float, share: float | None, digits: int = 2) -> str:
    """A difference, and its *share* in per cent."""
    part = "" if share is None else f" ({share:+.{digits}f} %)"
    return f"{signed(difference)}{part}"


def noise(found: Change) -> str:
    return "?" if found.noise is None else f"{found.noise:.2f}"


def metric(name: str, found: Metric) -> str:
    """By how much a metric differs; nothing if that is within the noise. Cache lines are shown with
    their noise even then. A difference of unknown noise has a question mark."""
    if not found.difference:
        return ""
    if found.telling is False and found.verdict != "unknown":
        return ""
    text = signed(found.difference)
    if found.verdict == "unknown":
        return f"{text}?"
    if name.endswith("lines"):
        return f"{text} ±{found.noise:.2f}"
    return "" if found.verdict == "same" else text


def by_layer(found: ExactChange) -> str:
    """By how much each layer differs."""
    return ", ".join(
        f"{part.layer} {signed(part.difference)}"
        for part in found.layers
        if abs(part.difference) >= 0.005
    )


@dataclass
class Cell:
    """A kernel's figure, and how it differs from the base's. Without a comparison there is no
    verdict."""

    instructions: float
    spread: float
    change: Change | None = None

    @property
    def text(self) -> str:
        """How it differs, if by more than the noise; with a question mark if that is not known."""
        if self.change is None:
            return ""
        if self.change.verdict == "same":
            return self.change.verdict_text
        return self.difference + ("?" if self.change.verdict == "unknown" else "")

    @property
    def difference(self) -> str:
        return change(self.change.difference, self.change.percent) if self.change else ""

    @property
    def verdict(self) -> str:
        return self.change.verdict if self.change else ""


def cell(row: Row, kernel: str, base: str, comparison: Comparison | None) -> Cell | None:
    """A kernel's cell of a row."""
    record, first = row.records.get(kernel), row.records.get(base)
    if record is None:
        return None
    made = Cell(record.instructions_per_io, max(record.spread, record.boot_spread))
    if comparison:
        made.change = comparison.of(row.key).get(kernel)
    elif first and kernel != base:
        before, after = first.instructions_per_io, record.instructions_per_io
        made.change = Change(
            difference=after - before, percent=percent(before, after), noise=None, verdict=""
        )
    return made


def verdict(comparison: Comparison, name: str) -> str:
    """How many rungs are longer or shorter on kernel *name*, and where the largest change is."""
    changes = [
        (rung.title, rung.differences[name])
        for rung in comparison.rungs
        if name in rung.differences
    ]
    numbers = Counter(change.verdict_text for _, change in changes)
    parts = [f"{numbers[word]} {text}" for word, text in _VERDICTS.items() if numbers[word]]
    noun = "rung" if len(changes) == 1 else "rungs"
    sentence = f"{len(changes)} {noun}: {', '.join(parts)}."
    for word, label in (("longer", "Worst"), ("shorter", "Best")):
        differing = [(title, change) for title, change in changes if change.verdict == word]
        if differing:
            title, change = max(differing, key=lambda one: abs(one[1].percent or 0.0))
            return f"{sentence} {label}: {title} {_with_layers(change)}."
    return sentence


def _with_layers(found: Change) -> str:
    text = change(found.difference, found.percent, 1)
    if not isinstance(found, ExactChange) or not found.layers:
        return text
    layers = sorted(found.layers, key=lambda part: -abs(part.difference))
    layers = [part for part in layers if abs(part.difference) >= 0.5][:_FEW]
    return f"{text}: " + ", ".join(f"{part.layer} {part.difference:+,.0f}" for part in layers)
