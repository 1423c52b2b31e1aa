# SPDX-License-Identifier: GPL-2.0
"""The rows of a program: what each part of it executed, a system call or another."""

from dataclasses import dataclass
from typing import Annotated

from iopath.results.schema import Natural, Several

# The kinds of parts: the whole, a system call, the program's own code, its exceptions, and what
# interrupts, soft interrupts and kernel threads execute. What is beside is not in the whole: the
# idle task, and iopath's own process.
EVERY, CALL, OWN, FAULT, LATER, BESIDE = "whole", "call", "own", "fault", "later", "beside"
WHOLE = "the whole"  # the name of its row
JUDGED = (EVERY, CALL)  # others depend on when the timer ticks

# Page tables are built and freed by execve and exit_group. How much that takes depends on where
# the pages of the program lie, which any change of the kernel's size moves: by up to 0.6 % where
# nothing else differed. This is the standard deviation, as a part of the figure.
_PAGES = ("execve", "execveat", "exit_group", WHOLE)
_PAGES_DEVIATION = 0.003


def known_deviation(part: str) -> float:
    """By which part of its figure a part of a program varies between builds of a kernel."""
    return _PAGES_DEVIATION if part in _PAGES else 0.0


@dataclass(kw_only=True)
class Calls:
    """What a part of a program executed, in each boot: how often it began, its instructions, and
    those of the program itself since the call before. Of a system call the instructions are the
    kernel's."""

    kind: Annotated[
        str,
        "whole; call: a system call, the kernel's instructions; own: the program's code; "
        "fault: its exceptions; later: interrupts, soft interrupts, kernel threads; beside: "
        "idle and iopath's own process, which are not in the whole.",
        ("enum", ("whole", "call", "own", "fault", "later", "beside")),
    ]
    times: Annotated[Several[Natural], "How often it began."]
    instructions: Annotated[Several[Natural], "Executed in all."]
    before: Annotated[Several[Natural], "Executed by the program itself since the calls before."]
