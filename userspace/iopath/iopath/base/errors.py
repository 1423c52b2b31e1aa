# SPDX-License-Identifier: GPL-2.0
"""Errors that a user sees: one line, and an exit status."""

from collections.abc import Iterable


class IopathError(Exception):
    """Something failed. The text is one line: what is wrong and, if known, what would be right."""

    status = 1


class UsageError(IopathError):
    """The command line is wrong."""

    status = 2


class Unreachable(IopathError):
    """A mirror, a disk or a scheduler failed. The same work may succeed later."""


class Lacking(IopathError):
    """A kernel lacks something that a measurement needs. The text names it."""


class Interrupted(IopathError):
    """A run has no figure, because too few of its rounds are without an interrupt."""


class NotMeasured(IopathError):
    """Not all could be measured, so there is no verdict: for git bisect run, neither good nor
    bad."""

    status = 125


class NoOutput(IopathError):
    """The standard output is full or closed."""


class Regressed(IopathError):
    """A rung grew by more than its limit."""


class Stopped(Exception):
    """The program was ended by stop_all."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown *word*: the known one that is most like it, if any."""
    import difflib  # slow to load

    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.75)
    return f": did you mean '{near[0]}'?" if near else ""
