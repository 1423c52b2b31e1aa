# SPDX-License-Identifier: GPL-2.0
"""The order of versions of Debian's packages (deb-version(7))."""

import functools
import re

_LETTERS = 1 << 8  # letters come before all other characters


@functools.cache
def version_key(version: str) -> tuple:
    """What versions are sorted by."""
    epoch, _, rest = version.rpartition(":")
    upstream, dash, revision = rest.rpartition("-")
    parts = (upstream, revision or "0") if dash else (rest, "0")
    return int(epoch or 0), *(_part_key(part) for part in parts)


def _part_key(part: str) -> tuple:
    """Alternating texts and numbers. Only a tilde sorts before the end of a text."""
    found: list[tuple[int, ...] | int] = []
    for text, number in re.findall(r"(\D*)(\d*)", part):
        found += [(*map(_order, text), 0), int(number or 0)]
    return tuple(found)


def _order(character: str) -> int:
    if character == "~":
        return -1
    return ord(character) + (0 if character.isalpha() else _LETTERS)
