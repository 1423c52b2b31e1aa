# SPDX-License-Identifier: GPL-2.0
"""The rows of a program: what each part of it executed, a system call or another."""

from dataclasses import dataclass

# The kinds of parts: the whole, a system call, the program's own code, its exceptions, and what
# interrupts, soft interrupts and kernel threads execute. What is beside is not in the whole: the
# kernel's own work, such as the timer's tick and the idle task, and iopath's own process.
EVERY, CALL, OWN, FAULT, LATER, BESIDE = "whole", "call", "own", "fault", "later", "beside"
WHOLE = "the whole"  # the name of its row
JUDGED = (EVERY, CALL)  # others depend on when the kernel does them


@dataclass(kw_only=True)
class Calls:
    """What a part of a program executed, in each boot: how often it began, its instructions, and
    those of the program itself since the call before. Of a system call the instructions are the
    kernel's."""

    kind: str
    times: list[int]
    instructions: list[int]
    before: list[int]
