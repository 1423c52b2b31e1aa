# SPDX-License-Identifier: GPL-2.0
"""Numbers and differences as text, alike in the terminal, in Markdown and in the page."""

from iopath.comparison import Change, Metric


def count(value: float) -> str:
    return f"{value:,.2f}"


def signed(value: float) -> str:
    return f"{value:+,.2f}"


def change(difference: float, percent: float | None, digits: int = 2) -> str:
    share = "" if percent is None else f" ({percent:+.{digits}f} %)"
    return f"{signed(difference)}{share}"


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
