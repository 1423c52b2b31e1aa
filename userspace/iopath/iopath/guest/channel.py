# SPDX-License-Identifier: GPL-2.0
"""The channel between a guest and the host: memory that both have, as userspace/guest/init.c says.

It begins with HEAD. Records follow, each a line "NAME STATUS LENGTH" and LENGTH bytes.
"""

import mmap
import struct
from dataclasses import dataclass

HEAD = struct.Struct("<8sQII")  # magic, bytes of records, state, number of records
MAGIC = b"iopath 1"
SIZE = 64 << 20  # bytes
DONE, STOPPED = 2, 4  # states: the plan is done; the start is done and a plan is awaited


@dataclass
class Record:
    """What one command of the plan left: its name, exit status and output."""

    name: str
    status: int
    data: bytes


def parse(data: bytes) -> list[Record]:
    """The records in *data*."""
    records = []
    at = 0
    while at < len(data):
        head = data.index(b"\n", at)
        name, status, size = data[at:head].decode(errors="replace").rsplit(" ", 2)
        at = head + 1 + int(size)
        records.append(Record(name, int(status), data[head + 1 : at]))
    return records


def read(memory: mmap.mmap) -> tuple[int, list[Record]]:
    """The state of a guest and what its plan has recorded so far."""
    magic, length, state, _ = HEAD.unpack_from(memory)
    if magic != MAGIC or state == STOPPED:
        return 0, []
    return state, parse(memory[HEAD.size : HEAD.size + length])
