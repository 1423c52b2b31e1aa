# SPDX-License-Identifier: GPL-2.0
"""How the cost of features is measured."""

from iopath.studies import features


def test_command_line() -> None:
    """A feature's mitigations replace the base's."""
    join = features._command_line
    assert join("a mitigations=off b", "mitigations=auto pti=on") == "a b mitigations=auto pti=on"
    assert join("a mitigations=off", "") == "a mitigations=off"
