# SPDX-License-Identifier: GPL-2.0
"""What a program of ten reads costs, as a kernel counts it."""

import json
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from helpers.examples import a_result
from iopath.base.arch import X86_64
from iopath.counts.calls import Boot, Started, complete, records
from iopath.counts.plugin_output import FORMAT
from iopath.results.layers import Layers
from iopath.results.metrics import TALLIES
from iopath.results.result import ExactResult, KernelName, dump, parse
from iopath.results.syscalls import BESIDE, CALL, FAULT, OWN
from iopath.rungs.builtin import DEVICES
from iopath.rungs.program import Program
from iopath.rungs.runs import Settings

# The first line of the plugin's output.
HEADER = {
    "type": "pathcount",
    "format": FORMAT,
    "target": "x86_64",
    "counts": [metric.source.tally for metric in TALLIES],
}


def a_boot(read: int, fault: int = 70, more: Boot | None = None) -> Boot:
    """*read* is what a read takes, *more* are other parts."""
    return complete(
        {
            (CALL, "read"): Started(10, 10 * read, 20, {"vfs_read": 10 * read}),
            **(more or {}),
            (OWN, "its own code"): Started(0, 20, 0, {"program [user]": 20}),
            (FAULT, "page fault"): Started(1, fault, 0, {"handle_mm_fault": fault}),
            (BESIDE, "idle"): Started(1, 1000, 0, {"do_idle": 1000}),
        }
    )


def a_program(
    ran: Mapping[str, Sequence[Boot]], command: Sequence[str] = ("dd", "bs=4k", "a b")
) -> ExactResult:
    """The result of a program that has *ran* on kernels, as a file has it."""
    found = [
        dump(record)
        for name, boots in ran.items()
        for record in records(KernelName(name=name, release=name), command, "", boots, Layers())
    ]
    made = parse(json.loads(json.dumps(a_result(found) | {"device": "null"})))
    assert isinstance(made, ExactResult)
    return made


PROGRAM = Program(X86_64, "/bin/dd", ["bs=4k"], {}, DEVICES["null"], False, 10)

SETTINGS = Settings([PROGRAM.rung], boots=7, program=PROGRAM)


def a_session(measure: Callable[[str], ExactResult], **more: object) -> Any:  # noqa: ANN401
    return SimpleNamespace(measure=lambda names, settings: measure(names[0]), **more)
