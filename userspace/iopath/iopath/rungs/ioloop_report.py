# SPDX-License-Identifier: GPL-2.0
"""What iopath reads of ioloop's report. report.schema.json describes the whole report. A program of
a user's rung reports less (rounds.h): the rounds without their time in ns, and no sum of a job."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from iopath.base import typed
from iopath.base.errors import IopathError


@dataclass(frozen=True)
class LoopRound:
    """A round of a job. *tsc* is its time by the processor's clock, which counts instructions in a
    guest; *interrupts* is None if it is not known."""

    ios: int
    tsc: int
    interrupts: int | None
    ns: int = 0

    @property
    def quiet(self) -> bool:
        """Whether no interrupt came."""
        return self.interrupts == 0


@dataclass(frozen=True)
class Event:
    """What a counter of the processor counted, or the reason why it did not."""

    value: int | None
    reason: str = ""


@dataclass(frozen=True)
class LoopJob:
    """A process or a thread of ioloop that does I/O."""

    rounds: tuple[LoopRound, ...]
    ios: int = 0
    pmu: dict[str, Event] | None = None

    @property
    def ns(self) -> int:
        """The time of its rounds."""
        return sum(part.ns for part in self.rounds)


@dataclass(frozen=True)
class Device:
    """A device of ioloop, and what it counted, if it is one of blknull that counts: also by size,
    and the last requests, a line each."""

    counters: dict[str, int] | None = None
    sizes: tuple[int, ...] = ()
    seen: str = ""


@dataclass(frozen=True)
class Report:
    """One run of ioloop. A calibration knows how many instructions its loop has."""

    jobs: tuple[LoopJob, ...]
    expected_instructions: int | None = None
    devices: tuple[Device, ...] = ()

    @property
    def rounds(self) -> list[LoopRound]:
        """The rounds of all jobs."""
        return [part for job in self.jobs for part in job.rounds]

    @property
    def counted(self) -> Device:
        """What its devices that count have counted together; what the first was given last."""
        found = [one for one in self.devices if one.counters]
        counters: Counter[str] = Counter()
        for one in found:
            counters.update(one.counters)
        sizes = zip(*(one.sizes for one in found), strict=True)
        return Device(dict(counters), tuple(map(sum, sizes)), found[0].seen if found else "")

    @property
    def tsc(self) -> int:
        """The time of all rounds by the processor's clock."""
        return sum(part.tsc for part in self.rounds)


def joined(texts: Iterable[str]) -> Report:
    """One report of the jobs in several *texts*."""
    return Report(tuple(job for text in texts for job in read(text).jobs))


def read(text: str) -> Report:
    """The report in *text*."""
    try:
        return typed.structure(json.loads(text), Report)
    except ValueError as error:
        raise IopathError(f"cannot read ioloop's report: {error}") from error
