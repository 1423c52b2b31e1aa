# SPDX-License-Identifier: GPL-2.0
"""Compare kernels, and boot them more often if that decides what is undecided."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from iopath.compare import compare, noise
from iopath.compare.changes import Comparison
from iopath.measure.session import Session
from iopath.results.layers import table
from iopath.results.result import Result
from iopath.rungs.runs import Settings


def compared(
    session: Session, names: Sequence[str], files: Mapping[str, Result], settings: Settings,
    *, anyway: bool = False,
) -> tuple[Any, Comparison]:  # fmt: skip
    """The result of the *files* and of the kernels among *names*, and how they differ from the
    first one. With fewer boots than a verdict takes, no more are added."""
    own = [name for name in names if name not in files]
    layers = table(settings.layers)

    def compare_with(measured: Result) -> tuple[Any, Comparison]:
        parts = compare.in_order(names, files, measured)
        return compare.compare_all(parts, layers, anyway=anyway)

    measured = session.measure(own, settings)
    found = compare_with(measured)
    wanted = found[1].wanted if settings.boots >= noise.FEWEST else {}
    boots = max(wanted.values(), default=0)
    if boots <= settings.boots:
        return found
    rungs = [rung for rung in settings.rungs if rung.name in wanted]
    if settings.program or 2 * len(rungs) > len(settings.rungs):
        rungs = [*settings.rungs]  # guests that have run are reused
    what = "the program is" if settings.program else f"{len(wanted)} rungs are"
    session.reporter.note(f"booting {boots} times: {what} undecided")
    more = session.measure(own, replace(settings, rungs=rungs, boots=boots))
    return compare_with(_replaced(measured, more))


def _replaced(measured: Result, more: Result) -> Result:
    """A result in which the records of *more* replace those of the same rungs."""
    found = {(record.kernel.name, record.key): record for record in more.results}
    results = [found.pop((one.kernel.name, one.key), one) for one in measured.results]
    return replace(measured, results=[*results, *found.values()])
