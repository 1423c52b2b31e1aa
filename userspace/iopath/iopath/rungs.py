# SPDX-License-Identifier: GPL-2.0
"""The ladder: the ways of doing one I/O on one device, so that differences are layers."""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

from iopath.errors import UsageError

OPS = ("read", "write")
DEVICE = "/dev/blknull0"
BIOGEN = "/dev/biogen0"  # bound to a device of its own, for it takes that exclusively
MQ = "/dev/blknull2"
NULL_BLK = "/dev/nullb0"  # the kernel's own null device, which takes requests, too

# Rounds are short against the kernel's timer tick (4 ms, four million instructions), so that most
# see none, and many, so that their median is the path itself.
ROUNDS = 60
LONG = 120  # rounds' I/Os in the one long run that also counts what comes seldom or later
_IOS = 100  # I/Os in a round
_MOST = 16 << 20  # bytes of a batch: a longer one would outlast the timer tick
_CACHED = "--size=1m"  # as much of the device as is read into the page cache beforehand
_LARGE = 64 << 10  # bytes; larger I/Os come fewer to a round


@dataclass(frozen=True)
class Rung:
    """One way of doing I/O: its name, what it does to which the loop's options apply, and how many
    I/Os it submits at a time. A rung without a device has the single op "none"."""

    name: str
    about: str
    options: tuple[str, ...]
    batch: int = 1
    device: str | None = DEVICE
    can: tuple[str, ...] = OPS  # what the rung can do

    def ops(self, wanted: Sequence[str]) -> Sequence[str]:
        return [op for op in wanted if op in self.can] if self.device else ("none",)

    def fits(self, block_size: int) -> bool:
        """Whether a batch is short enough to be measured between two ticks of the timer."""
        return self.batch * block_size <= _MOST

    def ios(self, block_size: int) -> int:
        """How many I/Os make a round."""
        few = max(10, _IOS * _LARGE // max(block_size, _LARGE))
        return -(-few // self.batch) * self.batch if self.device else 10 * _IOS

    def long_ios(self, block_size: int) -> int:
        """How many I/Os make the long run."""
        return LONG * self.ios(block_size) // (1 if self.device else 10)

    def command(
        self, op: str, block_size: int, region: int, *, ios: int = 0, rounds: int = ROUNDS
    ) -> list[str]:
        """ioloop's command line for one run, which prints JSON; with *ios* to a round, if given."""
        words = ["/bin/ioloop", *self.options, f"--number_ios={ios or self.ios(block_size)}"]
        if self.device:
            words += [f"--filename={self.device}", f"--rw={op}", f"--bs={block_size}"]
            words += ["--pattern=fixed"]
        return [
            *words,
            f"--rounds={rounds}", f"--region={region}", "--cpus_allowed=0",
            "--output-format=json",
        ]  # fmt: skip


_URING = ("--ioengine=io_uring", "--direct=1", "--iodepth=32")
_FIXED = (*_URING, "--fixedbufs", "--registerfiles")

# Ways of doing I/O that both the block device and biogen's character device know:
# name, what it is, options, I/Os at a time.
_SHAPES: tuple[tuple[str, str, tuple[str, ...], int], ...] = (
    ("pread", "pread and pwrite", ("--ioengine=sync", "--direct=1"), 1),
    ("preadv", "preadv2 and pwritev2", ("--ioengine=vsync", "--direct=1"), 1),
    ("aio.1", "io_submit, one at a time", ("--ioengine=libaio", "--direct=1", "--iodepth=1"), 1),
    ("aio.100", "io_submit of 100", ("--ioengine=libaio", "--direct=1", "--iodepth=100"), 100),
    ("uring", "io_uring, 32 at a time", _URING, 32),
    ("uring.fixed", "the same with registered buffers and files", _FIXED, 32),
)

_LADDER = (
    Rung("null", "the loop alone", ("--ioengine=null",), device=None),
    Rung("syscall", "an empty system call", ("--ioengine=syscall",), device=None),
    Rung(
        "gen.sync",
        "bios from a kernel thread, one at a time",
        ("--ioengine=biogen", "--iodepth=1"),
        device=BIOGEN,
    ),
    Rung(
        "gen.batch",
        "bios from a kernel thread, 100 in flight",
        ("--ioengine=biogen", "--iodepth=100"),
        batch=100,
        device=BIOGEN,
    ),
    *(
        Rung(f"raw.{name}", f"{about}, direct to bio", options, batch, BIOGEN)
        for name, about, options, batch in _SHAPES
    ),
    *(
        Rung(f"dio.{name}", f"{about}, O_DIRECT", options, batch)
        for name, about, options, batch in _SHAPES
    ),
    Rung("buf.pread", "pread and pwrite, cached", ("--ioengine=buffered", "--direct=0", _CACHED)),
    Rung(
        "splice",
        "splice to a pipe and on to /dev/null, cached",
        ("--ioengine=splice", "--direct=0", _CACHED),
        can=("read",),
    ),
)

# Through requests of blk-mq. What is not on the ladder is measured if asked for by name.
_REQUESTS = (
    *_SHAPES,
    ("uring.polled", "io_uring, 32 at a time, polled", (*_URING, "--hipri"), 32),
)

RUNGS = (
    *_LADDER,
    *(
        Rung(f"{family}.{name}", f"{about}, {driver}", options, batch, device)
        for family, driver, device in (
            ("mq", "blknull in mode mq", MQ),
            ("nullb", "null_blk", NULL_BLK),
        )
        for name, about, options, batch in _REQUESTS
    ),
)


def select(patterns: Sequence[str]) -> list[Rung]:
    """The rungs whose names match any of *patterns* (shell wildcards), in their order; without a
    pattern, the ladder."""
    if not patterns:
        return list(_LADDER)
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(rung.name, pattern) for rung in RUNGS):
            names = ", ".join(rung.name for rung in RUNGS)
            raise UsageError(f"no rung is called {pattern}; there are {names}")
    return [
        rung
        for rung in RUNGS
        if any(fnmatch.fnmatchcase(rung.name, pattern) for pattern in patterns)
    ]
