# SPDX-License-Identifier: GPL-2.0
"""Compare measurements of machines: times and counters, with their intervals and their noise."""

from collections.abc import Sequence

from iopath.base.errors import IopathError
from iopath.compare import labels
from iopath.compare.changes import Change, TimeComparison, TimeRungChange, percent
from iopath.results.result import COUNTERS, HardwareResult, Row, TimeFigure

# Facts of two machines that must be equal before their kernels can be compared.
_SAME = ("cpu_model", "microcode", "cpus", "governor", "boost", "smt_siblings", "guest")


def incomparable(results: Sequence[tuple[str, HardwareResult]]) -> list[str]:
    """The differences besides the kernels, in words; none if the results are comparable."""
    first_name, first = results[0]
    found = []
    for name, other in results[1:]:
        texts = []
        for field in _SAME:
            one, two = getattr(first.machine, field), getattr(other.machine, field)
            if one != two:
                texts.append(f"{field}: {str(one)!r} and {str(two)!r}")
        if first.programs != other.programs:
            texts.append("ioloop")
        for module in first.kernels[0].modules:
            one, two = (part.kernels[0].modules.get(module) for part in (first, other))
            if one != two:
                texts.append(f"{module}: {one} and {two}")
        found += [f"{text} ({first_name}, {name})" for text in texts]
    return found


def difference(before: TimeFigure, after: TimeFigure) -> Change:
    """How a figure differs. It is more than noise if the intervals do not overlap, and if the
    difference is larger than that between two series of one measurement. Boots of a guest differ by
    more than the samples of one boot, so a single boot has no verdict."""
    change = after.median - before.median
    boots = [figure.boots for figure in (before, after) if figure.boots is not None]
    noise = max(
        before.noise + after.noise,
        *((figure.high - figure.low) / 2 for figure in (before, after)),
        sum(max(part) - min(part) for part in boots),
    )
    apart = before.high < after.low or after.high < before.low
    verdict = "same"
    if any(len(part) < 2 for part in boots):
        verdict = "unknown"
    elif apart and abs(change) > noise:
        verdict = "longer" if change > 0 else "shorter"
    return Change(
        difference=change,
        percent=percent(before.median, after.median) or 0.0,
        noise=noise,
        verdict=verdict,
    )


def compare(whole: HardwareResult) -> TimeComparison:
    """Compare every kernel of a result with its first one. The difference of a rung is in time."""
    if lacking := next((one for one in whole.results if not one.figures), None):
        raise IopathError(
            f"{lacking.kernel.name}: {lacking.title}: a profile has no times to compare: must be a"
            " result of iopath measure host"
        )
    base, *others = whole.names
    options = labels.options(whole.kernels)
    return TimeComparison(
        base=base,
        others=others,
        labels=list(labels.labels(whole.kernels, options)),
        brief=labels.brief(whole.kernels, options),
        rungs=[_rung(row, base, others) for row in whole.rows()],
    )


def _rung(row: Row, base: str, others: Sequence[str]) -> TimeRungChange:
    figures = {name: record.figures or {} for name, record in row.records.items()}
    counted = {
        name: {
            counter: difference(figures[base][counter], figures[name][counter])
            for counter in ("ns", *COUNTERS)
            if counter in figures[base] and counter in figures[name]
        }
        for name in others
        if base in figures and name in figures
    }
    return TimeRungChange(
        rung=row.rung,
        op=row.op,
        block_size=row.block_size,
        figures=figures,
        differences={name: changes.pop("ns") for name, changes in counted.items()},
        counted=counted,
    )
