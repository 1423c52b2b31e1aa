# SPDX-License-Identifier: GPL-2.0
"""Limits: when a difference is a regression."""

import math
import tomllib
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from iopath import noise
from iopath.compare_exact import METRICS
from iopath.comparison import LONG_RUN, Comparison, RungChange
from iopath.errors import IopathError, UsageError
from iopath.rung import OPS, Rung
from iopath.rungs import RUNGS, unknown

SHARING = "sharing"  # its limit is a number of new shared lines (sharing_changes.py)
_METRICS = ("instructions", *LONG_RUN, *METRICS, SHARING)


@dataclass(frozen=True)
class Limit:
    """The percentage by which a rung may grow in *metric*. If *op* is empty, it holds for both
    operations."""

    rung: str
    op: str
    metric: str
    percent: float

    @property
    def text(self) -> str:
        metric = "" if self.metric == "instructions" else self.metric
        return " ".join(filter(None, (self.rung, self.op, metric)))

    def applies(self, rung: RungChange) -> bool:
        return self.rung == rung.rung and self.op in ("", rung.op)


def read(path: Path, added: Sequence[Rung] = ()) -> list[Limit]:
    """A file of limits: TOML, "RUNG [OP] [METRIC]" = PERCENT. *added* are rungs of a user."""
    rungs = {rung.name for rung in (*RUNGS, *added)}
    try:
        table = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a table of limits: {error}") from error
    if not table:
        raise UsageError(f'{path} has no limits: add lines like "dio.pread read" = 0.5')
    return [_limit(path, name, value, rungs) for name, value in table.items()]


def _limit(path: Path, name: str, value: object, rungs: Set[str]) -> Limit:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise UsageError(
            f"{path}: invalid limit of {name!r}: must be a percentage, 0 or more, like"
            ' "dio.pread" = 0.5'
        )
    rung, *words = name.split() or [""]
    if rung not in rungs:
        raise UsageError(f"{path}: {name!r}: {unknown(rung, sorted(rungs))}")
    op = words.pop(0) if words and words[0] in OPS else ""
    metric = " ".join(words) or "instructions"
    if metric not in _METRICS:
        raise UsageError(
            f"{path}: {name!r}: {metric!r} is neither an operation ({', '.join(OPS)})"
            f" nor a metric ({', '.join(_METRICS)})"
        )
    return Limit(rung, op, metric, float(value))


def regressions(
    comparison: Comparison, fail_above: float | None, limits: Sequence[Limit]
) -> list[str]:
    """The rungs that grew by more than their limit, in words.

    *fail_above* is the limit, in per cent, of rungs that have no limit of their own. Raises
    IopathError where a limit cannot be judged: if a figure or its noise is missing, or if no rung
    has the name.
    """
    if not comparison.rungs:
        raise IopathError("cannot judge: there is no result to compare")
    for limit in limits:
        if not any(limit.applies(rung) for rung in comparison.rungs):
            raise IopathError(f"cannot judge {limit.text}: no result is of that rung")
    found = []
    for rung in comparison.rungs:
        allowed = {} if fail_above is None else {"instructions": fail_above}
        # A limit of one operation goes before a limit of both.
        for limit in sorted(limits, key=lambda limit: bool(limit.op)):
            if limit.applies(rung) and limit.metric != SHARING:
                allowed[limit.metric] = limit.percent
        for metric, percent in allowed.items():
            for name in comparison.others:
                found += _exceeds(comparison.base, name, rung, metric, percent)
                if metric == "instructions" and fail_above is not None:
                    for more in rung.differences[name].judged_too:
                        found += _exceeds(comparison.base, name, rung, more, percent)
    return found


def _exceeds(base: str, name: str, rung: RungChange, metric: str, allowed: float) -> list[str]:
    what = f"{rung.title}{f' {metric}' if metric != 'instructions' else ''}"
    for kernel in (base, name):
        if kernel not in rung.figures:
            raise IopathError(f"cannot judge {what}: {kernel} has no result of it")
    change = rung.differences[name]
    if metric != "instructions":
        change = change.metric(metric)
        if change is None:
            lacks = "no long run" if metric in LONG_RUN else "no profile"
            if metric in METRICS and rung.differences[name].metric("locked"):
                lacks = "profiles that do not count it"
            raise IopathError(f"cannot judge {what}: the results have {lacks}")
    if change.verdict == "unknown":
        raise IopathError(
            f"cannot judge {what}: the noise is not known: measure with --boots {noise.FEWEST} or"
            " more"
        )
    if not change.grew or (change.percent is not None and change.percent <= allowed):
        return []
    by = f"{change.difference:,.2f}" if change.percent is None else f"{change.percent:.2f} %"
    takes = "takes" if metric == "instructions" else "has"
    return [f"{what}: {name} {takes} {by} more than {base}, {allowed:g} % is allowed"]
