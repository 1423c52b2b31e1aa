# SPDX-License-Identifier: GPL-2.0
"""Errors that a user sees: one line, and an exit status."""


class IopathError(Exception):
    """Something failed. The text is one line: what is wrong and, if known, what would be right."""

    status = 1


class UsageError(IopathError):
    """The command line is wrong."""

    status = 2


class Regressed(IopathError):
    """A rung grew by more than its limit."""
