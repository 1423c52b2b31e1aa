# SPDX-License-Identifier: GPL-2.0
"""The figures that a gate judges, as benchmark trackers take them. A tracker knows a benchmark by
its name, so the name has the kernel only if there are several."""

import json
import re
from collections.abc import Iterable

from iopath.show.figures import Figure

_LONGEST = 64  # characters in the name of a measure


def bencher(found: Iterable[Figure]) -> str:
    """Bencher's metric format: by benchmark and measure."""
    benchmarks: dict[str, dict[str, dict[str, float]]] = {}
    for name, one in _named(found):
        measure = re.sub(r"[^a-z0-9]+", "-", one.metric.lower()).strip("-")[:_LONGEST]
        measures = benchmarks.setdefault(name, {})
        measures[measure] = {"value": one.value, "lower_value": one.low, "upper_value": one.high}
    return json.dumps(benchmarks, indent=1) + "\n"


def smaller_is_better(found: Iterable[Figure]) -> str:
    """What github-action-benchmark calls customSmallerIsBetter: a list of figures."""
    benchmarks = [
        {
            "name": f"{name}: {one.metric}",
            "unit": one.unit,
            "value": one.value,
            "range": f"{one.low:g} to {one.high:g}",
            "extra": one.kernel,
        }
        for name, one in _named(found)
    ]
    return json.dumps(benchmarks, indent=1) + "\n"


def _named(found: Iterable[Figure]) -> list[tuple[str, Figure]]:
    judged = [one for one in found if one.judged]
    several = len({one.kernel for one in judged}) > 1
    return [(f"{one.kernel} {one.title}" if several else one.title, one) for one in judged]
