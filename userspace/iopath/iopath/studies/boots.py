# SPDX-License-Identifier: GPL-2.0
"""How often kernels are booted, and with which rungs: as often as asked, and where a comparison is
undecided then, as often as it takes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from iopath.compare import compare as comparing
from iopath.compare import noise
from iopath.compare.compare import Compared
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import Result
from iopath.rungs.runs import Settings

if TYPE_CHECKING:
    from iopath.base.progress import Reporter

Results = dict[str, Result]  # by the name of the kernel


class Judged(Protocol):
    """What was judged."""

    @property
    def wanted(self) -> Mapping[str, int]:
        """The undecided rungs, and how many boots would decide each."""
        ...


class Measures(Protocol):
    """What measures: a session, or one that measures programs instead of kernels."""

    @property
    def reporter(self) -> "Reporter": ...

    @property
    def printed(self) -> Mapping[str, bytes]: ...

    def results(self, names: Sequence[str], settings: Settings) -> Results: ...


Found = TypeVar("Found", bound=Judged)


def asked(settings: Settings, boots: int | None) -> Settings:
    """The settings with the number of *boots* that was asked for, or else with the default.
    Programs and guests with several CPUs have no layouts, so their default is higher."""
    if boots:
        return replace(settings, boots=boots)
    often = noise.OFTEN if settings.program else noise.BOOTS
    return replace(settings, boots=often, shared_boots=noise.OFTEN)


def _are_few(settings: Settings) -> bool:
    """Whether fewer boots were asked for than are judged first."""
    usual = asked(settings, None)
    return settings.boots < usual.boots or settings.most_boots < usual.most_boots


def enough(settings: Settings, wanted: Mapping[str, int]) -> Settings | None:
    """The settings that decide the rungs *wanted*; None if none is, or if so few boots were asked
    for that nothing is decided."""
    boots = max(wanted.values(), default=0)
    if _are_few(settings) or boots <= settings.boots:
        return None
    rungs = [rung for rung in settings.rungs if rung.name in wanted]
    if settings.program or 2 * len(rungs) > len(settings.rungs):
        rungs = [*settings.rungs]  # guests that have run are reused
    return replace(settings, rungs=rungs, boots=boots)


def compare(
    session: Measures,
    settings: Settings,
    measured: Results,
    names: Mapping[str, str],
    layers: Layers,
) -> Compared:
    """Compare kernels that were *measured*, under the *names* that they are to have."""

    def judge(results: Results) -> Compared:
        parts = [result.renamed(results[kernel], {kernel: names[kernel]}) for kernel in results]
        return comparing.compared(result.join(parts), layers)

    return decide(session, settings, measured, judge)


def decide(
    session: Measures, settings: Settings, measured: Results, judge: Callable[[Results], Found]
) -> Found:
    """What *judge* makes of kernels that were *measured* with the *settings*. Where it is
    undecided, they are booted more often, and judged again."""
    found = judge(measured)
    more = enough(settings, found.wanted)
    if not more:
        return found
    what = "the program is" if settings.program else f"{len(found.wanted)} rungs are"
    session.reporter.note(f"booting {more.boots} times: {what} undecided")
    again = session.results([*measured], more)
    return judge({name: _replaced(measured[name], again[name]) for name in measured})


def _replaced(measured: Result, more: Result) -> Result:
    """A result in which the records of *more* replace those of the same rungs."""
    found = {record.key: record for record in more.results}
    results = [found.pop(one.key, one) for one in measured.results]
    return replace(measured, results=[*results, *found.values()])
