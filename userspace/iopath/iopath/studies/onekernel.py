# SPDX-License-Identifier: GPL-2.0
"""Programs that are compared on one kernel: two builds, or one with a result that was kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from iopath.base.errors import IopathError, UsageError
from iopath.base.progress import Reporter
from iopath.compare import compare
from iopath.compare.compare import Compared
from iopath.measure.session import Session
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import ExactResult, Result
from iopath.rungs.program import Program
from iopath.rungs.runs import Settings

_BASELINE, _NOW = "baseline", "now"


@dataclass(frozen=True)
class Builds:
    """Measures builds of a program on a *kernel* as if they were kernels, by their names."""

    session: Session
    kernel: str
    programs: Mapping[str, Program]

    @property
    def reporter(self) -> Reporter:
        return self.session.reporter

    @property
    def printed(self) -> Mapping[str, bytes]:
        """What the last one printed that was measured; the builds are taken to print the same."""
        return dict.fromkeys(self.programs, self.session.printed[self.kernel])

    def results(self, names: Sequence[str], settings: Settings) -> dict[str, Result]:
        found = {}
        for name in names:
            of_one = replace(settings, program=self.programs[name])
            measured = self.session.measure([self.kernel], of_one)
            found[name] = result.renamed(measured, {self.kernel: name})
        return found


@dataclass(frozen=True)
class Kept(Compared):
    """A program compared with its baseline; *measured* is what was measured now."""

    measured: Result


def with_baseline(file: str, kept: Result, measured: Result, layers: Layers) -> Kept:
    """Compare with the result in a *file*. The program may differ, and the kernel; what else does
    is refused."""
    if not isinstance(kept, ExactResult) or kept.device is None or len(kept.names) != 1:
        raise UsageError(
            f"--baseline {file}: not of a program: --update-baseline writes such files"
        )
    parts = [
        # The files of a program are in its scenario.
        (name, result.renamed(
            replace(one, results=[replace(record, scenario=None) for record in one.results]),
            {one.names[0]: name},
        ))
        for name, one in ((_BASELINE, kept), (_NOW, measured))
    ]  # fmt: skip
    whole = compare.join(parts)
    if differing := compare.incomparable(whole, parts):
        raise IopathError(
            f"more than the kernel differs: {'; '.join(differing)}:"
            f" remove {file} and write it by --update-baseline"
        )
    return Kept(whole, compare.compare(whole, layers), measured)
