# SPDX-License-Identifier: GPL-2.0
"""A program as a scenario: a command line, what it needs in the guest, and what it runs on."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from iopath.base.arch import Arch
from iopath.rungs.builtin import MOUNTED_AT
from iopath.rungs.rung import Rung

FOLDER = "/program"  # in the guest


@dataclass(frozen=True)
class Program:
    """A command line: *path* is the program in the guest, of *arch*, *words* are its arguments.
    *files* are what it needs, by path in the guest, and *given* are those of the user. It runs on
    *rung*, or in a file system that this has *mounted*. *limit* is how many instructions may be
    executed, and *drain* for how many seconds what comes after its end is counted."""

    arch: Arch
    path: str
    words: Sequence[str]
    files: Mapping[str, bytes]
    rung: Rung
    mounted: bool
    limit: int
    drain: int = 0
    stdin: bytes | None = None
    given: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return Path(self.path).name

    @property
    def command(self) -> list[str]:
        return [self.name, *self.words]

    @property
    def work(self) -> str:
        """The folder that it runs in."""
        return MOUNTED_AT if self.mounted else f"{FOLDER}/work"

    @cached_property
    def inputs(self) -> dict[str, object]:
        """Everything that its counts depend on, but for the kernel and the guest's machine."""
        files = {**self.files, **self.given, "": self.stdin or b""}
        return {
            "arch": self.arch.name, "path": self.path, "words": list(self.words),
            "rung": self.rung.digest, "work": self.work, "drain": self.drain,
            "stdin": self.stdin is not None,
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        }  # fmt: skip
