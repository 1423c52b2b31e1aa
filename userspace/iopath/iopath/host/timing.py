# SPDX-License-Identifier: GPL-2.0
"""Measure the running machine: time, and the processor's counters if it has any.

Nothing is exact here. So every figure has its 95 % confidence interval and its noise: the
difference between two series of the same measurement. The rungs take turns, so that a change of the
machine during the measurement affects all of them alike.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from iopath import __version__
from iopath.base.cache import digest_file
from iopath.base.errors import IopathError
from iopath.base.programs import guest_program
from iopath.host import loop, samples, survey, targets
from iopath.host.samples import Sampled
from iopath.results.result import (
    SCHEMA,
    HardwareRecord,
    HardwareResult,
    HostMachine,
    KernelName,
    MeasuredKernel,
)
from iopath.rungs.runs import NOISE_PASSES, Run

PASSES = 20
_ROUND_NS = 5_000_000
_CHECKING = ("KASAN", "PROVE_LOCKING", "LOCKDEP", "KCSAN", "DEBUG_KMEMLEAK", "DEBUG_OBJECTS")

Step = Callable[[str, float], None]


class _Series:
    """The samples of one run."""

    def __init__(self, run: Run, cpu: int) -> None:
        self.run = run
        self._cpu = cpu
        self.samples: list[dict[str, float]] = []
        self.absent: dict[str, str] = {}
        self.requests: dict[str, float] = {}
        self.ios = run.ios
        self.take()
        wanted = math.ceil(_ROUND_NS / max(self.samples[0]["ns"], 1e-3) / run.rung.batch)
        self.ios = max(run.rung.batch, min(wanted * run.rung.batch, 1 << 24))

    @property
    def words(self) -> list[str]:
        return loop.command(self.run, self._cpu, ios=self.ios)

    def take(self) -> None:
        words = [*self.words, *(["--pmu"] if self.run.counted else [])]
        report = loop.run(words, self.run.title)
        found, self.absent = samples.sample(self.run, report)
        self.requests = samples.requests(report)
        self.samples.append(found)


def measure(
    runs: Sequence[Run],
    cpu: int,
    passes: int,
    step: Step,
    warn: Callable[[str], None],
    *,
    strict: bool,
) -> HardwareResult:
    """Measure *runs* on the running machine.

    A run that fails on this kernel or machine is left out with a warning, unless *strict*."""
    targets.check(runs)
    whole = result_of(cpu, [])
    for text in whole.machine.warnings:
        warn(text)
    series: list[_Series] = []
    for number, run in enumerate(runs):
        step("trying each rung", number / len(runs))
        try:
            series.append(_Series(run, cpu))
        except IopathError as error:
            if strict:
                raise
            warn(f"left out: {error}")
    if not series:
        raise IopathError("no rung can be measured")
    _take(series, NOISE_PASSES, "measuring the noise", step)
    noise = [one.samples for one in series]
    _take(series, passes, "measuring", step)
    kernel = KernelName(name=survey.NAME, release=whole.kernels[0].release)
    whole.results = [
        samples.record(
            Sampled(
                kernel, one.run, one.absent, loop.ROUNDS, one.ios, one.words, one.requests
            ),
            first, one.samples,
        )
        for one, first in zip(series, noise, strict=True)
    ]  # fmt: skip
    return whole


def result_of(cpu: int, records: list[HardwareRecord]) -> HardwareResult:
    """The result of this machine with *records*."""
    digest = digest_file(guest_program("ioloop"))
    return replace(described(survey.survey(cpu), survey.describe(), digest), results=records)


def described(machine: HostMachine, kernel: MeasuredKernel, ioloop: str) -> HardwareResult:
    """The result of a machine without a record; *ioloop* is the loop's digest."""
    checking = [name for name in _CHECKING if kernel.config.get(name) == "y"]
    if checking:
        machine.warnings.append(f"the kernel checks itself: {', '.join(checking)}")
    return HardwareResult(
        schema=SCHEMA,
        program=f"iopath {__version__}",
        mode="hardware",
        machine=machine,
        programs={"ioloop": ioloop},
        kernels=[kernel],
        results=[],
    )


def _take(series: Sequence[_Series], passes: int, what: str, step: Step) -> None:
    for one in series:
        one.samples = []
    for number in range(passes):
        # Back and forth, so that drift affects the first and the last rung alike.
        for one in series if number % 2 == 0 else reversed(series):
            step(what, number / passes)
            one.take()
