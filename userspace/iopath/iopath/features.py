# SPDX-License-Identifier: GPL-2.0
"""What a feature of the kernel costs an I/O: each is switched on alone, against a stated base.

The table is features.toml; a file of the user's adds to it (Documentation/features.rst). Each rung
with a feature is measured in a guest of its own, and compared with the same rung without it. A
feature that did not take effect is an error.
"""

import fnmatch
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from iopath import __version__, compare, process, tomlfile
from iopath.build import Built
from iopath.comparison import ExactChange
from iopath.errors import IopathError, UsageError, did_you_mean
from iopath.layers import Layers
from iopath.measure import Session
from iopath.plan import Settings, unmet
from iopath.progress import Reporter
from iopath.result import ExactRecord, ExactResult
from iopath.rung import Module, Rung
from iopath.rungs import RUNGS, select
from iopath.symbols import plain

SCHEMA = 1  # of the file of --json
NOTHING = "nothing"  # the feature that changes nothing: it must cost nothing
_SIDE_BY_SIDE = 4  # features that are prepared or read while guests run
_ON_A_CLUSTER = 64  # the same, where the guests run on other machines


@dataclass(frozen=True)
class Feature:
    """What is done to switch a feature on, and how to see that it took effect."""

    name: str
    about: str = ""
    rungs: tuple[str, ...] = ()  # those that it is measured on, if not the usual ones
    ops: tuple[str, ...] = ()
    cmdline: str = ""  # added to the kernel's command line
    options: tuple[str, ...] = ()  # added to the program's
    swap: tuple[tuple[str, str], ...] = ()  # options of the program that are replaced
    modules: tuple[Module, ...] = ()  # loaded before those of the rung
    parameters: tuple[Module, ...] = ()  # of modules that the rung loads
    setup: tuple[str, ...] = ()  # steps before the run
    expect: tuple[str, ...] = ()  # files with the text that they must contain then: "PATH TEXT"
    ios: int = 0  # I/Os in a round, if not the usual number
    interrupts: int = 0  # by which each I/O ends
    shows: tuple[str, ...] = ()  # functions that the rung must execute; A|B is one of these
    needs: tuple[str, ...] = ()  # kernel options
    since: tuple[int, ...] = ()  # the first series of kernels that has it
    until: tuple[int, ...] = ()  # the last one
    layer: Rung | None = None  # a rung with a layer, instead of the rung without it

    def applied(self, rung: Rung, base: "Base") -> Rung:
        """*rung* with the base's steps and this feature. With a layer it is called *rung*, too, so
        that the two are compared."""
        if self.layer:
            layered = replace(self.layer, name=rung.name)
            return replace(self, layer=None)._applied(layered, base, rung.target or "")
        return self._applied(rung, base, rung.target or "")

    def _applied(self, rung: Rung, base: "Base", target: str) -> Rung:
        """*target* is that of the rung without a layer."""
        swapped = dict(self.swap)
        steps = (*base.setup, *self.setup, *(f"expect {text}" for text in self.expect))
        disk = target.removeprefix("/dev/")
        return replace(
            rung,
            options=(*(swapped.get(word, word) for word in rung.options), *self.options),
            modules=(*self.modules, *(self._parameters(module) for module in rung.modules)),
            begin=(
                *rung.begin,
                *(step.replace("{disk}", disk).replace("{target}", target) for step in steps),
            ),
            needs=(*rung.needs, *self.needs),
            round_ios=max(self.ios or base.ios, rung.batch),
            interrupts=self.interrupts,
            alone=True,
        )

    def _parameters(self, module: Module) -> Module:
        for own in self.parameters:
            if own.name == module.name:
                both = {**dict(module.parameters), **dict(own.parameters)}
                return Module(module.name, tuple(both.items()))
        return module

    def fits(self, version: tuple[int, ...]) -> bool:
        """Whether kernels of this series have it."""
        return (not self.since or version >= self.since) and (
            not self.until or version <= self.until
        )

    def changed(self) -> Iterator[str]:
        """What it changes, by name: two features that change one thing exclude each other."""
        for word in self.cmdline.split():
            yield f"the kernel's option {word.partition('=')[0]}"
        for step in self.setup:
            words = step.split()
            if words[0].startswith("write") and not words[1].startswith("/cg/"):
                yield words[1]
        for word in (*self.options, *(old for old, _ in self.swap)):
            yield f"the option {word.partition('=')[0]}"
        if self.layer:
            yield "the layer"
        for module in self.parameters:
            for name, _ in module.parameters:
                yield f"the parameter {name} of {module.name}"


PLAIN = Feature(NOTHING, "the base, measured again with other seeds")


@dataclass(frozen=True)
class Base:
    """What features are compared with."""

    cmdline: str
    rungs: tuple[str, ...]
    ops: tuple[str, ...]
    ios: int  # I/Os in a round
    setup: tuple[str, ...] = ()


_BASE: tomlfile.Fields = {
    "cmdline": ("cmdline", "a string", tomlfile.is_(str)),
    "rungs": ("rungs", "a list of rungs", tomlfile.words),
    "ops": ("ops", 'a list of "read" and "write"', tomlfile.ops),
    "ios": ("ios", "a number, 1 or more", tomlfile.positive),
    "setup": ("setup", "a list of steps", tomlfile.strings),
}
_FEATURE: tomlfile.Fields = {
    "name": ("name", "a string", tomlfile.is_(str)),
    "about": ("about", "a string", tomlfile.is_(str)),
    "rungs": _BASE["rungs"],
    "ops": _BASE["ops"],
    "cmdline": _BASE["cmdline"],
    "options": ("options", "a list of words", tomlfile.words),
    "swap": ("swap", "a table of strings", tomlfile.pairs),
    "modules": ("modules", "a table of tables of parameters", tomlfile.modules),
    "parameters": ("parameters", "a table of tables of parameters", tomlfile.modules),
    "setup": _BASE["setup"],
    "expect": ("expect", 'a list of "PATH TEXT"', tomlfile.strings),
    "ios": ("ios", "a number, 1 or more", tomlfile.positive),
    "interrupts": ("interrupts", "a number, 1 or more", tomlfile.positive),
    "shows": ("shows", "a list of functions", tomlfile.words),
    "needs": ("needs", "a list of kernel options, CONFIG_...", tomlfile.options),
    "since": ("since", 'a series of kernels, e.g. "6.13"', tomlfile.version),
    "until": ("until", 'a series of kernels, e.g. "6.13"', tomlfile.version),
}  # fmt: skip


def load(path: Path | None = None) -> tuple[Base, list[Feature]]:
    """The base and the features of iopath's table, and those of the file *path*, which may have a
    base of its own."""
    base, features = _load(Path(__file__).parent / "features.toml")
    assert base
    if path:
        own, added = _load(path)
        base = own or base
        features += added
    features += [
        Feature(rung.name, rung.about, (rung.base,), rung.can, ios=rung.round_ios or 0, layer=rung)
        for rung in RUNGS
        if rung.base
    ]
    for feature in features:
        if [other.name for other in features].count(feature.name) > 1 or feature.name == NOTHING:
            raise UsageError(f"{path}: feature {feature.name}: the name is in use: choose another")
    return base, features


def _load(path: Path) -> tuple[Base | None, list[Feature]]:
    tables = tomlfile.load(path)
    base, found = tables.pop("base", None), tables.pop("feature", [])
    if tables:
        raise UsageError(
            f"{path}: unknown key {next(iter(tables))!r}: features are tables [[feature]]"
        )
    if not isinstance(found, list):
        raise UsageError(f"{path}: features must be tables [[feature]]")
    features = []
    for table in found:
        name = tomlfile.named("feature", table, path)
        values = tomlfile.values(f"feature {name}", table, _FEATURE, path)
        features.append(Feature(**{"about": name, **values}))
    if base is None:
        return None, features
    if not isinstance(base, dict) or {"cmdline", "rungs", "ops", "ios"} - set(base):
        raise UsageError(f"{path}: base must be a table with cmdline, rungs, ops and ios")
    return Base(**tomlfile.values("base", base, _BASE, path)), features


def together(features: Sequence[Feature]) -> Feature:
    """One feature that is several. Raises UsageError if two exclude each other."""
    seen: dict[str, str] = {}
    for one in features:
        for what in one.changed():
            if seen.setdefault(what, one.name) != one.name:
                raise UsageError(f"{seen[what]} and {one.name} exclude each other: both set {what}")
    steps = dict.fromkeys(step for one in features for step in one.setup)

    def all_of(name: str) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(part for one in features for part in getattr(one, name)))

    return Feature(
        name="+".join(one.name for one in features),
        about=", ".join(one.about for one in features),
        rungs=next((one.rungs for one in features if one.layer), features[0].rungs),
        ops=features[0].ops,
        cmdline=" ".join(filter(None, (one.cmdline for one in features))),
        setup=tuple(steps),
        since=max(one.since for one in features),
        ios=min((one.ios for one in features if one.ios), default=0),
        until=min((one.until for one in features if one.until), default=()),
        interrupts=max(one.interrupts for one in features),
        layer=next((one.layer for one in features if one.layer), None),
        **{
            name: all_of(name)
            for name in ("options", "swap", "modules", "parameters", "expect", "shows", "needs")
        },
    )


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
        for name in ("mean", "locked", "indirect"):
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


def choose(features: Sequence[Feature], names: Sequence[str]) -> list[Feature]:
    """The features whose names match any of *names* (shell wildcards); all without a name."""
    for name in names:
        if not any(fnmatch.fnmatchcase(one.name, name) for one in features):
            near = did_you_mean(name, [one.name for one in features])
            raise UsageError(f"unknown feature {name!r}{near or ' (see iopath features --list)'}")
    return [
        one
        for one in features
        if not names or any(fnmatch.fnmatchcase(one.name, name) for name in names)
    ]


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
