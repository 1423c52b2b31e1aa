# SPDX-License-Identifier: GPL-2.0
"""What a program of ten reads costs, as a kernel counts it."""

from iopath.counts.output import FORMAT
from iopath.results.metrics import TALLIES
from iopath.results.program import BESIDE, CALL, FAULT, OWN, Boot, Part, Ran

# The first line of the plugin's output.
HEADER = {
    "type": "pathcount",
    "format": FORMAT,
    "target": "x86_64",
    "counts": [metric.source.tally for metric in TALLIES],
}


def a_boot(read: int, fault: int = 70, seed: int = 1) -> Boot:
    parts = [
        Part(CALL, "read", 10, 10 * read, 20, {"vfs_read": 10 * read}),
        Part(OWN, "its own code", 0, 20, 0, {"user": 20}),
        Part(FAULT, "page fault", 1, fault, 0, {"handle_mm_fault": fault}),
        Part(BESIDE, "idle", 1, 1000, 0, {"do_idle": 1000}),
    ]
    return Boot(seed, 0, 0, 0, 0, parts)


def a_run(name: str, *boots: Boot) -> Ran:
    return Ran(name, name, 0, list(boots))
