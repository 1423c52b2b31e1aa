# SPDX-License-Identifier: GPL-2.0
"""The rows of a program: what each part of it executed, a system call or another."""

from dataclasses import dataclass
from typing import Annotated

from iopath.results.schema import Natural, Several

# The kinds of parts: the whole, a system call, the program's own code, its exceptions, and what
# interrupts, soft interrupts and kernel threads execute. What is beside is not in the whole: the
# kernel's own work, such as the timer's tick and the idle task, and iopath's own process. Two are
# sums of others: the system calls that do I/O, for each I/O that the program counts, and what
# starts and ends processes.
EVERY, CALL, OWN, FAULT, LATER, BESIDE = "whole", "call", "own", "fault", "later", "beside"
IO, START = "io", "start"
SUMS = (EVERY, IO, START)
KINDS = (*SUMS, CALL, OWN, FAULT, LATER, BESIDE)
WHOLE, IO_CALLS, START_EXIT = "the whole", "I/O calls", "start and exit"  # the names of their rows
JUDGED = (EVERY, IO, CALL)  # others depend on when the kernel does them
NEW_PROCESSES = "start of processes"  # what a new task executes before it is in user mode

# fmt: off
_DO_IO = {
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2",
    "pwritev2", "sendfile64", "splice", "tee", "vmsplice", "copy_file_range", "io_submit",
    "io_getevents", "io_pgetevents", "io_uring_enter", "fsync", "fdatasync", "sync", "syncfs",
    "sync_file_range", "msync", "readahead", "fadvise64", "fallocate", "sendto", "sendmsg",
    "sendmmsg", "recvfrom", "recvmsg", "recvmmsg",
}
_START = {
    "execve", "execveat", "exit", "exit_group", "mmap", "munmap", "mprotect", "brk", "arch_prctl",
    "set_tid_address", "set_robust_list", "rseq", "prlimit64", "clone", "clone3", "fork", "vfork",
    "wait4", "waitid",
}
# fmt: on


def sum_of(kind: str, name: str) -> str:
    """The sum that a part belongs to beside the whole: IO, START or none. Which calls the loader
    makes is not known: files that it opens and reads count as the program's."""
    if kind == CALL and name in _DO_IO:
        return IO
    if (kind == CALL and name in _START) or name == NEW_PROCESSES:
        return START
    return ""


# Page tables are built and freed by execve and exit_group. How much that takes depends on where
# the pages of the program lie, which any change of the kernel's size moves: by up to 0.6 % where
# nothing else differed. This is the standard deviation, as a part of the figure.
_PAGES = ("execve", "execveat", "exit_group", START_EXIT, WHOLE)
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
        "whole; io, start: sums of the system calls that do I/O, and of what starts and ends "
        "processes; call: a system call, the kernel's instructions; own: the program's code; "
        "fault: its exceptions; later: interrupts, soft interrupts, kernel threads; beside: "
        "idle and iopath's own process, which are not in the whole.",
        ("enum", KINDS),
    ]
    times: Annotated[
        Several[Natural],
        "How often it began; of io the I/Os by the program's own count (fio, dd, ioloop), or 0: "
        "then instructions_per_io is of all.",
    ]
    instructions: Annotated[Several[Natural], "Executed in all."]
    before: Annotated[Several[Natural], "Executed by the program itself since the calls before."]
