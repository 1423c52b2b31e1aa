# SPDX-License-Identifier: GPL-2.0
"""What a program cost on a kernel, by its system calls."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iopath.base import typed
from iopath.base.errors import IopathError

SCHEMA = 1
MODE = "program"

CALL, OWN, FAULT, LATER, BESIDE = "call", "own", "fault", "later", "beside"


@dataclass(frozen=True)
class Part:
    """A part of what executed. *kind* is CALL (a system call), OWN (the program's own code), FAULT
    (its exceptions), LATER (interrupts, soft interrupts, kernel threads) or BESIDE (idle, and
    iopath's own process), which is not in the whole.

    *instructions* are those of the kernel in a system call. *before* are the program's own since
    the call before. *functions* are instructions by function."""

    kind: str
    name: str
    times: int
    instructions: int
    before: int = 0
    functions: dict[str, int] = field(default_factory=dict)

    @property
    def each(self) -> float:
        """Instructions per start."""
        return self.instructions / self.times if self.times else 0.0


@dataclass(frozen=True)
class Boot:
    """What one boot counted. Of the instructions that were *begun*, the *tried* ones began again
    after an exception, and the *iterations* are those of string instructions that another iteration
    followed. Each other instruction is in one part."""

    seed: int
    begun: int
    tried: int
    iterations: int
    switches: int
    parts: list[Part]

    @property
    def whole(self) -> int:
        """All that was executed for the program."""
        return sum(part.instructions for part in self.parts if part.kind != BESIDE)

    def find(self, kind: str, name: str) -> Part:
        """A part; one that never began if there is none."""
        for part in self.parts:
            if (part.kind, part.name) == (kind, name):
                return part
        return Part(kind, name, 0, 0)

    def of(self, kind: str) -> list[Part]:
        return [part for part in self.parts if part.kind == kind]


@dataclass(frozen=True)
class Ran:
    """A program on the kernel *name*, once for each boot. *status* is that of its exit."""

    name: str
    release: str
    status: int
    boots: list[Boot]


@dataclass(frozen=True)
class Result:
    """What a command line cost on kernels."""

    schema: int
    mode: str
    program: str
    command: list[str]
    device: str
    mount: str
    qemu: str
    cpu: str
    cmdline: str
    kernels: list[Ran]


def dump(result: Result, comparisons: Sequence[object] = ()) -> str:
    data = typed.unstructure(result)
    if comparisons:
        data["comparisons"] = [typed.unstructure(one) for one in comparisons]
    return json.dumps(data, indent=1) + "\n"


def load(path: Path) -> Result:
    """The result in a file."""
    try:
        return typed.structure(json.loads(path.read_text()), Result)
    except (OSError, ValueError) as error:
        raise IopathError(f"cannot read {path}: {error}") from error
