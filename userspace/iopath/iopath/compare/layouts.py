# SPDX-License-Identifier: GPL-2.0
"""What each layout of a rung's rounds has (ioloop's layout.c), and what of it decides a figure."""

from collections.abc import Callable, Mapping, Sequence

from iopath.results.result import ExactRecord

_MASK = (1 << 64) - 1
_FEW = 3  # layouts of fewer may have something in common by chance: one row in fifty


def of_layout(number: int) -> Mapping[str, int]:
    """What is there before the rounds of a layout, in words."""
    found = dict.fromkeys(("files are open", "pages are taken", "pages are free"), 0)
    if not number:
        return found
    draw = _draws(number * 0x9E3779B97F4A7C15 & _MASK)
    pairs = draw(12)
    more = 2 * draw(2)
    events = sum(draw(2) for _ in range(pairs))
    closed = sum(draw(2) for _ in range(pairs))
    taken, step = 1 + draw(24), 1 + 2 * draw(16)
    freed = {at * step % taken for at in range(taken) if draw(2)}
    return dict(zip(found, (2 * (pairs - closed) + events + more, taken, len(freed)), strict=True))


def _draws(state: int) -> Callable[[int], int]:
    """The numbers that layout.c draws: each below what it is asked for."""

    def draw(below: int) -> int:
        nonlocal state
        state ^= state << 13 & _MASK
        state ^= state >> 7
        state ^= state << 17 & _MASK
        return (state >> 16) % below

    return draw


def deciding(record: ExactRecord, levels: Sequence[tuple[float, int]]) -> str:
    """What all layouts with the higher of two *levels* have and no other, with the difference, if
    anything: "+70.00 where 20 or more files are open". It is not known which layouts have values
    if some have none."""
    values = record.layouts[0] if record.layouts else []
    if len(levels) != 2 or f"--layouts={len(values)}" not in record.command:
        return ""
    low, high = sorted(value for value, _ in levels)
    parts = [of_layout(number) for number in range(len(values))]
    for part in parts[0]:
        has: tuple[list[int], list[int]] = [], []
        for value, layout in zip(values, parts, strict=True):
            has[value > (low + high) / 2].append(layout[part])
        fewer, more = has
        if min(map(len, has)) < _FEW:
            return ""
        if max(fewer) < min(more):
            return f"{high - low:+,.2f} where {min(more):,} or more {part}"
        if max(more) < min(fewer):
            return f"{high - low:+,.2f} where {max(more):,} or fewer {part}"
    return ""
