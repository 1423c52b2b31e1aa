# SPDX-License-Identifier: GPL-2.0
"""What a feature of the kernel costs an I/O, or a program: each is switched on alone, against a
stated base.

The table is features.toml; a file of the user's adds to it (Documentation/features.rst). Each rung
with a feature is measured in a guest of its own, and compared with the same rung without it. A
feature of a rung that did not take effect is an error. A program may not have what a feature
lengthens.
"""

import fnmatch
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from iopath import __version__
from iopath.base.errors import IopathError, Lacking, Unreachable
from iopath.compare import compare, shared_writes
from iopath.compare.changes import ExactChange, FunctionChange
from iopath.compare.compare import Compared
from iopath.compare.shared_writes import SharedWrites
from iopath.kernels.built import Built
from iopath.measure.measurement import Measurement
from iopath.measure.plan import unmet
from iopath.measure.session import Session
from iopath.results.layers import Layers
from iopath.results.result import ExactResult, Result, title
from iopath.results.symbol import plain
from iopath.results.syscalls import JUDGED, WHOLE
from iopath.rungs.builtin import select
from iopath.rungs.feature import PLAIN, Base, Feature
from iopath.rungs.rung import Rung
from iopath.rungs.runs import Settings
from iopath.studies import boots

SCHEMA = 1  # of the file of --json


@dataclass(kw_only=True)
class Cost:
    """What a feature costs on a rung of a kernel, per I/O; or a part of a program each time, whose
    rung is empty and whose operation is its name. Without a figure, *missing* says why the kernel
    lacks the feature, or *error* why it did not take effect."""

    kernel: str
    feature: str
    about: str
    rung: str
    op: str
    layer: bool = False
    tracer: bool = False
    base: float = 0.0
    instructions: float = 0.0
    difference: float = 0.0
    percent: float = 0.0
    # Differences; None if the metric is not counted.
    mean: float | None = 0.0  # of the means in the long run
    total: float | None = 0.0  # of all instructions executed for an I/O, with deferred work
    noise: float | None = None
    verdict: str = ""
    cause: str = ""  # what the kernel does otherwise, in words
    locked: float | None = 0.0
    indirect: float | None = 0.0
    functions: list[FunctionChange] = field(default_factory=list)
    shared: list[SharedWrites] | None = None  # on several CPUs
    missing: str = ""
    error: str = ""

    @property
    def title(self) -> str:
        return title(self.rung, self.op)


@dataclass
class _Row:
    """A cost, and whose it is; of a program those of its parts. *wanted* is how many boots would
    decide them."""

    kernel: str
    feature: Feature
    rung: Rung
    op: str
    costs: list[Cost]
    wanted: int = 0


class FeatureStudy:
    """What features cost, each rung with one in a guest of its own; all on one *session*."""

    def __init__(self, session: Session, base: Base, settings: Settings, layers: Layers) -> None:
        self._session = session
        self._base = base
        self._settings = settings
        self._layers = layers

    def measure(
        self, kernels: Sequence[str], features: Sequence[Feature], rungs: Sequence[str]
    ) -> list[Cost]:
        """What *features* cost on *kernels*; on *rungs*, or on those that each names. What is wrong
        with a feature is in its cost. Raises IopathError if a base could not be measured."""
        rows = list(self._rows(kernels, features, rungs))
        self._measure(rows, self._settings)
        undecided = [row for row in rows if row.wanted]
        wanted = {str(number): row.wanted for number, row in enumerate(undecided)}
        if more := boots.enough(self._settings, wanted):
            said = f"booting {more.boots} times: {len(undecided)} costs are undecided"
            self._session.reporter.note(said)
            self._measure(undecided, more)
        return [cost for row in rows for cost in row.costs]

    def _measure(self, rows: Sequence[_Row], settings: Settings) -> None:
        """Measure the costs of *rows*."""
        # A round of another length is compared with a base of that length.
        bases: dict[tuple[str, str, str, int], Measurement] = {}
        pairs: dict[Measurement, tuple[_Row, Measurement]] = {}
        for row in rows:
            ios = row.feature.ios or self._base.ios
            key = (row.kernel, row.rung.name, row.op, ios)
            if key not in bases:
                without = replace(PLAIN, name=f"base of {ios} I/Os", ios=ios)
                bases[key] = self._measurement(replace(row, feature=without), settings)
            pairs[self._measurement(row, settings)] = (row, bases[key])
        found: dict[Measurement, Result | IopathError] = {}
        for one, result in self._session.measure_each([*bases.values(), *pairs]):
            found[one] = result
            # Once a row and its base are measured, its cost is known, and its result is dropped.
            for own, (row, base) in pairs.items():
                if own in found and base in found:
                    self._fill(row, found[base], found.pop(own))
        for base in bases.values():
            error = found[base]
            if isinstance(error, IopathError) and not isinstance(error, Lacking):
                kind = Unreachable if isinstance(error, Unreachable) else IopathError
                raise kind(f"{base.name}: {error}")

    def _rows(
        self, kernels: Sequence[str], features: Sequence[Feature], rungs: Sequence[str]
    ) -> Iterator[_Row]:
        program = self._settings.program
        for kernel, feature in itertools.product(kernels, features):
            ops = tuple(self._settings.ops or feature.ops or self._base.ops)
            for rung in [program.rung] if program else self._rungs(feature, rungs):
                for op in rung.ops(ops):
                    name, of = ("", WHOLE) if program else (rung.name, op)
                    cost = Cost(
                        kernel=kernel, feature=feature.name, about=feature.about, rung=name,
                        op=of, layer=feature.layer is not None, tracer=feature.tracer,
                    )  # fmt: skip
                    yield _Row(kernel, feature, rung, op, [cost])

    def _rungs(self, feature: Feature, chosen: Sequence[str]) -> list[Rung]:
        """The rungs that a feature is measured on. A layer has a single one."""
        if feature.layer:
            known = select([*feature.rungs])
            return [rung for rung in known if not chosen or rung in select(chosen)]
        return select([*(chosen or feature.rungs or self._base.rungs)])

    def _measurement(self, row: _Row, settings: Settings) -> Measurement:
        """A rung or a program with a feature, in a guest. The base that is measured again has other
        seeds."""
        feature = row.feature
        cmdline = _command_line(self._base.cmdline, feature.cmdline)
        machine = replace(settings.machine, cmdline=cmdline, devices=feature.devices)
        if feature == PLAIN:
            machine = replace(machine, seed=machine.seed + settings.most_boots)
        applied = feature.applied(row.rung, self._base)
        program = settings.program and replace(settings.program, rung=applied)
        what = program.name if program else f"{row.rung.name} {row.op}"
        return Measurement(
            row.kernel,
            replace(settings, rungs=[applied], ops=(row.op,), machine=machine, program=program),
            f"{row.kernel}, {feature.name}, {what}",
            partial(_lack, feature, applied),
        )

    def _fill(self, row: _Row, base: Result | IopathError, with_it: Result | IopathError) -> None:
        """Compare a rung with a feature and its base; of a program, the whole and its system
        calls."""
        feature, program = row.feature, self._settings.program
        cost = row.costs[0]
        for one in (with_it, base):
            if isinstance(one, Lacking):
                cost.missing = str(one)
                return
            if isinstance(one, IopathError):
                cost.error = " ".join(str(one).split())
                return
        assert isinstance(base, ExactResult)
        assert isinstance(with_it, ExactResult)
        try:
            found, shared = self._compare(base, with_it)
        except IopathError as error:
            cost.error = " ".join(str(error).split())
            return
        row.wanted = max(found.wanted.values(), default=0)
        changes = {
            rung.op: change
            for rung in found.comparison.rungs
            for change in rung.differences.values()
            if not change.calls or change.calls.kind in JUDGED
        }
        if none := _no_effect(feature, with_it, changes.values()):
            cost.missing, cost.error = (none, "") if program else ("", none)
            return
        (figures,) = found.comparison.others
        instructions = {
            rung.op: rung.figures[figures].instructions for rung in found.comparison.rungs
        }
        cost.shared = shared if with_it.results[0].sharing else None
        own = [replace(cost, op=op) for op in changes] if program else [cost]
        for one, (op, change) in zip(own, changes.items(), strict=True):
            _set(one, change, instructions[op])
        row.costs = own

    def _compare(
        self, base: ExactResult, other: ExactResult
    ) -> tuple[Compared, list[SharedWrites]]:
        whole = compare.join([("base", base), ("with", other)])
        shared = shared_writes.written(whole).get(other.results[0].key, [])
        return compare.compared(whole, self._layers), shared


def _lack(feature: Feature, applied: Rung, built: Built) -> str:
    """Why a kernel cannot have a feature, *applied* to a rung; empty if it can."""
    if not feature.fits(built.series):
        first, last = (".".join(map(str, end)) for end in (feature.since, feature.until))
        return f"kernels from {first} on have it" if first else f"kernels up to {last} have it"
    return unmet(applied, built)


def _command_line(base: str, own: str) -> str:
    """The kernel's command line. After "mitigations=off", recent kernels ignore
    "mitigations=auto", so that word of the base is left out."""
    words = base.split()
    if any(word.startswith("mitigations=") for word in own.split()):
        words = [word for word in words if not word.startswith("mitigations=")]
    return " ".join([*words, *own.split()])


def _set(cost: Cost, change: ExactChange, instructions: float) -> None:
    cost.base = round(instructions - change.difference, 4)
    cost.instructions = instructions
    cost.difference = round(change.difference, 4)
    cost.percent = round(change.percent or 0.0, 4)
    cost.noise = change.noise
    cost.verdict = change.verdict
    cost.cause = change.cause
    for name in ("mean", "total", "locked", "indirect"):
        metric = change.metric(name)
        setattr(cost, name, metric.difference if metric else None if change.calls else 0.0)
    cost.functions = [one for one in change.functions if abs(one.difference) >= 0.01]


def _no_effect(feature: Feature, measured: ExactResult, changes: Iterable[ExactChange]) -> str:
    """Why a feature did not take effect: a function that it should show is not executed, or it
    changes nothing. Empty if it did."""
    executed = {
        plain(function.name)
        for record in measured.results
        if record.profile
        for function in record.profile.functions
    }
    for wanted in feature.shows:
        if not any(fnmatch.filter(executed, name) for name in wanted.split("|")):
            return f"it did not take effect: {wanted} is not executed"
    differs = any(abs(one.difference) >= 0.01 for change in changes for one in change.functions)
    if feature.expect or feature.shows or feature == PLAIN or differs:
        return ""
    return "it did not take effect: the path is the same as without it"


def _written(cost: Cost) -> dict[str, object]:
    return {
        **vars(cost),
        "functions": [
            {"name": one.name, "layer": one.layer, "difference": one.difference}
            for one in cost.functions
        ],
        "shared": None if cost.shared is None else [one.record for one in cost.shared],
    }


def dump(base: Base, costs: Sequence[Cost], command: str = "") -> dict[str, object]:
    """The file of --json."""
    return {
        "schema": SCHEMA,
        "program": f"iopath {__version__}",
        "mode": "features",
        "base": {"cmdline": base.cmdline, "setup": list(base.setup)},
        **({"command": command} if command else {}),
        "features": [
            {
                name: value
                for name, value in _written(cost).items()
                if value not in ("", None) and value is not False
            }
            for cost in costs
        ],
    }
