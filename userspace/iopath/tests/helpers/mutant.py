# SPDX-License-Identifier: GPL-2.0
"""A promise that is broken in the source, to check that a test fails."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """The promise, the source file with a piece of it, what that becomes, and the test."""

    promise: str
    file: str
    old: str
    new: str
    test: str
