# SPDX-License-Identifier: GPL-2.0
"""What a user is told when something goes wrong: one line, and an exit status."""


class IopathError(Exception):
    """Something failed. The text is one line: what is wrong and, if known, what would be right."""

    status = 1


class UsageError(IopathError):
    """The command asks for something that cannot be."""

    status = 2


class Regressed(IopathError):
    """A rung became longer than is allowed."""
