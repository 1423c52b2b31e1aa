# SPDX-License-Identifier: GPL-2.0
"""What a feature of the kernel costs an I/O: each is switched on alone, against a stated base.

The table is features.toml; a file of the user's adds to it (Documentation/features.rst). Each rung
with a feature is measured in a guest of its own, and compared with the same rung without it. A
feature that did not take effect is an error.
"""

import fnmatch
import re
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from iopath import __version__
from iopath.base import process
from iopath.base.errors import IopathError
from iopath.base.progress import Reporter
from iopath.compare import compare
from iopath.compare.changes import ExactChange
from iopath.kernels.built import Built
from iopath.measure.plan import unmet
from iopath.measure.session import Session
from iopath.results.layers import Layers
from iopath.results.result import ExactRecord, ExactResult
from iopath.results.symbol import plain
from iopath.rungs.builtin import select
from iopath.rungs.feature import PLAIN, Base, Feature
from iopath.rungs.rung import Rung
from iopath.rungs.runs import Settings

SCHEMA = 1  # of the file of --json
_SIDE_BY_SIDE = 4  # features that are prepared or read while guests run
_ON_A_CLUSTER = 64  # the same, where the guests run on other machines


@dataclass(kw_only=True)
class Cost:
    """What a feature costs on a rung of a kernel, per I/O. Without a figure, *missing* says why the
    kernel lacks the feature, or *error* why it did not take effect."""

    kernel: str
    feature: str
    about: str
    rung: str
    op: str
    layer: bool = False
    base: float = 0.0
    instructions: float = 0.0
    difference: float = 0.0
    percent: float = 0.0
    mean: float = 0.0  # the difference of the means in the long run
    all: float = 0.0  # the difference of all that is executed for an I/O, deferred work included
    noise: float | None = None
    verdict: str = ""
    locked: float = 0.0
    indirect: float = 0.0
    functions: list[dict[str, Any]] = field(default_factory=list)
    missing: str = ""
    error: str = ""


class Features:
    """One run of the command on a kernel: guests run in *executor*."""

    def __init__(
        self, session: Session, base: Base, settings: Settings, executor: Executor, layers: Layers
    ) -> None:
        # The guests of one feature are not the whole; what is wrong with one is in its cost.
        self._session = Session(session.cache, Reporter(session.reporter.console, silent=True))
        self._session.apt = session.apt
        self._build = session.build
        self._reporter = session.reporter
        self._base = base
        self._settings = settings
        self._executor = executor
        self._side_by_side = _ON_A_CLUSTER if session.executor else _SIDE_BY_SIDE
        self._layers = layers

    def measure(self, kernel: str, features: Sequence[Feature], rungs: Sequence[str]) -> list[Cost]:
        """What *features* cost on a kernel; on *rungs*, or on those that each names."""
        with self._reporter.task(kernel) as step:
            built = self._build(self._session.find(kernel), step)
        wanted = {}
        for feature in features:
            chosen = self._rungs(feature, rungs)
            ops = tuple(self._settings.ops or feature.ops or self._base.ops)
            wanted[feature] = [(rung, op) for rung in chosen for op in rung.ops(ops)]
        jobs = [(feature, pair) for feature, some in wanted.items() for pair in some]
        # A round of another length is compared with a base of that length.
        needed = dict.fromkeys((pair, feature.ios) for feature, pair in jobs)
        with (
            self._reporter.running(len(needed) + len(jobs)),
            ThreadPoolExecutor(self._side_by_side) as pool,
        ):
            try:
                running = {
                    (pair, ios): pool.submit(self._run, kernel, replace(PLAIN, ios=ios), pair)
                    for pair, ios in needed
                }
                bases = {key: result.result() for key, result in running.items()}
                costs = [
                    pool.submit(self._cost, kernel, built, feature, pair, bases[pair, feature.ios])
                    for feature, pair in jobs
                ]
                return [cost.result() for cost in costs]
            except BaseException:
                process.stop_all()
                pool.shutdown(cancel_futures=True)
                raise

    def _rungs(self, feature: Feature, chosen: Sequence[str]) -> list[Rung]:
        """The rungs that a feature is measured on. A layer has a single one."""
        if feature.layer:
            known = select([*feature.rungs])
            return [rung for rung in known if not chosen or rung in select(chosen)]
        return select([*(chosen or feature.rungs or self._base.rungs)])

    def _run(
        self, kernel: str, feature: Feature, pair: tuple[Rung, str], *, again: bool = False
    ) -> ExactResult:
        """Measure a rung with a feature; *again* with other seeds."""
        rung, op = pair
        cmdline = _command_line(self._base.cmdline, feature.cmdline)
        machine = replace(self._settings.machine, cmdline=cmdline)
        if again:
            machine = replace(machine, seed=machine.seed + self._settings.boots)
        settings = replace(
            self._settings,
            rungs=[feature.applied(rung, self._base)],
            ops=(op,),
            machine=machine,
        )
        with self._reporter.guest(f"{kernel}, {feature.name}, {rung.name} {op}"):
            measured = self._session.measure([kernel], settings, self._executor)
        assert isinstance(measured, ExactResult)
        return measured

    def _cost(
        self,
        kernel: str,
        built: Built,
        feature: Feature,
        pair: tuple[Rung, str],
        base: ExactResult,
    ) -> Cost:
        rung, op = pair
        cost = Cost(
            kernel=kernel, feature=feature.name, about=feature.about, rung=rung.name, op=op,
            layer=feature.layer is not None,
        )  # fmt: skip
        cost.missing = self._lack(built, feature, rung)
        if cost.missing:
            self._reporter.finished()
            return cost
        try:
            with_it = self._run(kernel, feature, pair, again=feature == PLAIN)
            change, record = self._compare(base, with_it)
        except IopathError as error:
            cost.error = " ".join(str(error).removeprefix(f"{kernel}: ").split())
            return cost
        unseen = _unseen(feature, record)
        if unseen:
            cost.error = f"it did not take effect: {unseen} is not executed"
            return cost
        differs = any(abs(one.difference) >= 0.01 for one in change.functions)
        if not (feature.expect or feature.shows or feature == PLAIN or differs):
            cost.error = "it did not take effect: the path is the same as without it"
            return cost
        cost.base = round(record.instructions_per_io - change.difference, 4)
        cost.instructions = record.instructions_per_io
        cost.difference = round(change.difference, 4)
        cost.percent = round(change.percent or 0.0, 4)
        cost.noise = change.noise
        cost.verdict = change.verdict
        for name in ("mean", "all", "locked", "indirect"):
            metric = change.metric(name)
            setattr(cost, name, metric.difference if metric else 0.0)
        cost.functions = [
            {"name": one.name, "layer": one.layer, "difference": one.difference}
            for one in change.functions
            if abs(one.difference) >= 0.01
        ]
        return cost

    def _lack(self, built: Built, feature: Feature, rung: Rung) -> str:
        """Why a kernel cannot have the feature; empty if it can."""
        match = re.match(r"(\d+)\.(\d+)", built.release)
        version = (int(match[1]), int(match[2])) if match else ()
        if not feature.fits(version):
            first, last = (".".join(map(str, end)) for end in (feature.since, feature.until))
            return f"kernels from {first} on have it" if first else f"kernels up to {last} have it"
        return unmet(feature.applied(rung, self._base), built)

    def _compare(self, base: ExactResult, other: ExactResult) -> tuple[ExactChange, ExactRecord]:
        whole = compare.merge([("base", base), ("with", other)])
        (row,) = compare.compare(whole, self._layers).rungs
        (change,) = row.differences.values()
        return change, other.results[0]


def _command_line(base: str, own: str) -> str:
    """The kernel's command line. After "mitigations=off", recent kernels ignore
    "mitigations=auto", so that word of the base is left out."""
    words = base.split()
    if any(word.startswith("mitigations=") for word in own.split()):
        words = [word for word in words if not word.startswith("mitigations=")]
    return " ".join([*words, *own.split()])


def _unseen(feature: Feature, record: ExactRecord) -> str:
    """The first function that the feature should show and does not; empty if there is none."""
    assert record.profile
    executed = {plain(function.name) for function in record.profile.functions}
    for wanted in feature.shows:
        if not any(fnmatch.filter(executed, name) for name in wanted.split("|")):
            return wanted
    return ""


def dump(base: Base, costs: Sequence[Cost]) -> dict[str, Any]:
    """The file of --json."""
    return {
        "schema": SCHEMA,
        "program": f"iopath {__version__}",
        "mode": "features",
        "base": {"cmdline": base.cmdline, "setup": list(base.setup)},
        "features": [
            {
                name: value
                for name, value in vars(cost).items()
                if value not in ("", None) and value is not False
            }
            for cost in costs
        ],
    }
