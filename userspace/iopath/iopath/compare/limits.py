# SPDX-License-Identifier: GPL-2.0
"""Limits: when a difference is a regression."""

import math
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopath.base.errors import NotMeasured, Regressed, UsageError
from iopath.compare.changes import SHARING, Change, Comparison, RungChange
from iopath.results.metrics import METRICS
from iopath.results.ops import OPS

_NAMED = 3  # rows and metrics in a message
_METRICS = (*(metric.name for metric in METRICS), SHARING)


@dataclass(frozen=True)
class Limit:
    """The percentage by which a rung may grow in *metric*; if that is empty, in each metric that is
    gated. If *op* is empty, it holds for both operations."""

    rung: str
    op: str
    metric: str
    percent: float

    @property
    def text(self) -> str:
        return " ".join(filter(None, (self.rung, self.op, self.metric)))

    def applies(self, rung: RungChange) -> bool:
        return self.rung == rung.rung and self.op in ("", rung.op)


def gate(grown: Sequence[str], unknown: Sequence[str]) -> None:
    """Raise Regressed if anything has *grown*, or else NotMeasured if there is anything *unknown*,
    both in words."""
    if grown:
        raise Regressed("; ".join(grown))
    if unknown:
        raise NotMeasured(f"cannot judge {'; '.join(unknown)}")


def read(path: Path, rungs: Collection[str], unknown: Callable[[str], str]) -> list[Limit]:
    """A file of limits: TOML, "RUNG [OP] [METRIC]" = PERCENT. *rungs* are the names that a rung may
    have; *unknown* says that a name is none of them."""
    try:
        table = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a table of limits: {error}") from error
    if not table:
        raise UsageError(f'{path} has no limits: add lines like "dio.pread read" = 0.5')
    found: dict[str, Limit] = {}
    for name, value in table.items():
        limit = _limit(path, name, value, rungs, unknown)
        if limit.text in found:
            raise UsageError(f"{path}: {limit.text!r} has two limits: it must have one")
        found[limit.text] = limit
    return list(found.values())


def _limit(
    path: Path, name: str, value: object, rungs: Collection[str], unknown: Callable[[str], str]
) -> Limit:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise UsageError(
            f"{path}: invalid limit of {name!r}: must be a percentage, 0 or more, like"
            ' "dio.pread" = 0.5'
        )
    rung, *words = name.split() or [""]
    if rung not in rungs:
        raise UsageError(f"{path}: {name!r}: {unknown(rung)}")
    op = words.pop(0) if words and words[0] in OPS else ""
    metric = " ".join(words)
    if metric and metric not in _METRICS:
        raise UsageError(
            f"{path}: {name!r}: {metric!r} is neither an operation ({', '.join(OPS)})"
            f" nor a metric ({', '.join(_METRICS)})"
        )
    return Limit(rung, op, metric, float(value))


def regressions(
    comparison: Comparison, fail_above: float | None, limits: Sequence[Limit]
) -> tuple[list[str], list[str]]:
    """The rungs that grew by more than their limit, and what cannot be judged, in words.

    *fail_above* is the limit, in per cent, of the gated metrics of rungs that have no limit of
    their own. What cannot be judged lacks a figure or a verdict, and may have grown by more than
    its limit; or no rung has the name of a limit. Texts on a change also tell of the metrics that
    *limits* name.
    """
    _tell_too(comparison, limits)
    if not comparison.rungs:
        return [], ["there is no result to compare"]
    grown: list[str] = []
    unknown = [
        f"{limit.text}: no result is of that rung"
        for limit in limits
        if not any(limit.applies(rung) for rung in comparison.rungs)
    ]
    rows: dict[tuple[tuple[str, ...], str], dict[str, None]] = {}
    for rung in comparison.rungs:
        title = comparison.title(rung)
        for name in comparison.others:
            if missing := [one for one in (comparison.base, name) if one not in rung.figures]:
                if fail_above is not None or any(limit.applies(rung) for limit in limits):
                    unknown.append(f"{title}: {missing[0]} has no result of it")
                continue
            change = rung.differences[name]
            more, untold = _judge(change, _allowed(rung, change, fail_above, limits))
            if more:
                grown.append(
                    f"{title}: {name} takes more than {comparison.base}: {', '.join(more)}"
                )
            for reason, metrics in untold.items():
                rows.setdefault((tuple(metrics), reason), {})[title] = None
    return grown, unknown + [_untold([*titles], *what) for what, titles in rows.items()]


def _tell_too(comparison: Comparison, limits: Sequence[Limit]) -> None:
    """Have texts on changes tell of the metrics that *limits* name."""
    for rung in comparison.rungs:
        named = dict.fromkeys(one.metric for one in limits if one.applies(rung))
        for change in rung.differences.values():
            change.limited = [name for name in named if name not in ("", SHARING)]


def _untold(titles: Sequence[str], metrics: Sequence[str], reason: str) -> str:
    """What cannot be judged, rows and metrics of one reason together."""
    return f"{some(titles)} {some(metrics)}: {reason}"


def some(names: Sequence[str], between: str = ", ") -> str:
    """The first of the *names*, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{between.join(names[:_NAMED])}{more}"


def _allowed(
    rung: RungChange, change: Change, fail_above: float | None, limits: Sequence[Limit]
) -> dict[str, float]:
    """The limits of a rung's metrics. A limit of a metric goes before one of all metrics, and a
    limit of one operation before one of both."""
    shared = [*(change.shares or ())]
    judged = [*change.gated, *shared]
    allowed = {} if fail_above is None else dict.fromkeys(judged, fail_above)
    for limit in sorted(limits, key=lambda limit: (bool(limit.metric), bool(limit.op))):
        if limit.applies(rung):
            lacking = [SHARING] if change.shares is None else shared
            names = {"": judged, SHARING: lacking}.get(limit.metric, [limit.metric])
            allowed |= dict.fromkeys(names, limit.percent)
    return allowed


def _judge(change: Change, allowed: Mapping[str, float]) -> tuple[list[str], dict[str, list[str]]]:
    """The metrics of a rung that grew by more than *allowed*, and those that cannot be judged, by
    the reason."""
    grown: list[str] = []
    unknown: dict[str, list[str]] = {}
    for metric, percent in allowed.items():
        part = change.judged.get(metric) or change.metric(metric)
        if part is None:
            unknown.setdefault("a result does not have it: measure again", []).append(metric)
        elif part.verdict == "unknown":
            unknown.setdefault(part.reason or "the noise is not known", []).append(metric)
        elif part.grew:
            most = part.percent if part.most is None else part.most
            if most is None or most > percent:
                by = f"{part.difference:,.2f}" if most is None else f"{most:.2f} %"
                grown.append(f"{metric} {by} ({percent:g} % allowed)")
    return grown, unknown
