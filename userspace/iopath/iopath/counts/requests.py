# SPDX-License-Identifier: GPL-2.0
"""What the kernel does for I/Os, by the functions that it enters: metrics of requests.

A metric has a sum of functions in results/metrics.py, such as "a + b - c". "a|b" is the first of
the two that the kernel has. If the compiler inlined a function, or a part of it ("a.part.0"), calls
of it are not seen. Then this kernel does not have the metric; its value is not 0.
"""

from collections.abc import Mapping

from iopath.counts.symbols import Symbols
from iopath.results.metrics import ENTERED, TERM


class Functions:
    """The functions that metrics are known by, in one kernel."""

    def __init__(self, symbols: Symbols) -> None:
        wanted = {
            metric.name: [
                (-1 if sign == "-" else 1, names)
                for sign, names in TERM.findall(metric.source.entered)
            ]
            for metric in ENTERED
        }
        every = {
            name for terms in wanted.values() for _, names in terms for name in names.split("|")
        }
        self.names = symbols.starts(every)  # by address
        whole = {*self.names.values()}
        self._terms: dict[str, list[tuple[int, str]]] = {}
        for metric, terms in wanted.items():
            chosen = [
                (sign, next((name for name in names.split("|") if name in whole), ""))
                for sign, names in terms
            ]
            if all(name for _, name in chosen):
                self._terms[metric] = chosen

    def metrics(self, during: Mapping[str, float], whole: Mapping[str, float]) -> dict[str, float]:
        """The metrics that are counted on this kernel, by how often functions were entered *during*
        the run, and in the *whole* time with the sleep after it."""
        later = {metric.name for metric in ENTERED if metric.source.later}
        return {
            metric: sum(
                sign * (whole if metric in later else during).get(name, 0) for sign, name in terms
            )
            for metric, terms in self._terms.items()
        }
