# SPDX-License-Identifier: GPL-2.0
"""Track what an I/O costs: measure the kernels of a file that are new, and show them all.

Each kernel is kept in a file as soon as it is measured (store.py), so the next run continues where
one was ended. Where QEMU or the modules changed between two neighbours, both are measured once
more, together, so that they can be compared. What is shown is made from these files alone
(index.py, site.py).
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from iopath.base import files
from iopath.base.arch import BY_DEBIAN, Arch, named
from iopath.base.cache import digest_of, out_of_space
from iopath.base.errors import IopathError, Unreachable, UsageError
from iopath.compare import compare
from iopath.kernels.recipe import Recipe
from iopath.kernels.watching import State
from iopath.measure.measurement import Measurement
from iopath.measure.session import Session
from iopath.results.layers import table
from iopath.results.result import ExactResult
from iopath.rungs.runs import Settings
from iopath.studies import boots
from iopath.track import site, store
from iopath.track.index import Index, Step, opened
from iopath.track.store import MeasuredPair, Point
from iopath.track.watches import ALL, Config, Watch

_TOLD = "steps.json"  # the steps that earlier runs reported

# Arguments: a suite, a configuration, options, and Debian's name of an architecture.
MakeRecipe = Callable[[str, str, Sequence[str], str], Recipe]


@dataclass(frozen=True)
class Wanted:
    """A point, and the kernel that it is as the command line names it."""

    point: Point
    name: str


@dataclass(frozen=True)
class News:
    """What a run found: steps that are new or that it could not judge, kernels that it measured,
    those that it could not measure, and those that the next run will try again."""

    steps: list[Step]
    measured: list[Point]
    failed: list[Point]
    unreached: list[Point] = field(default_factory=list)

    @property
    def unjudged(self) -> list[Step]:
        """The steps whose kernels cannot be compared."""
        return [step for step in self.steps if step.differing]


class Tracker:
    """A run of the command on the site in *folder*."""

    def __init__(
        self, session: Session, config: Config, folder: Path, make_recipe: MakeRecipe
    ) -> None:
        self._session = session
        self._config = config
        self._folder = folder
        self._make_recipe = make_recipe
        self._unreached: list[Point] = []
        self._tried: set[str] = set()  # the steps whose kernels were to be measured together

    def _settings(self, arch: Arch) -> Settings:
        """What is measured on kernels of an architecture."""
        config = self._config
        if config.program:
            make = partial(config.program.settings, self._session, arch)
            settings = self._session.once(("program", config.program, arch), make)
        else:
            settings = Settings(
                config.rungs, ops=config.ops, block_sizes=config.block_sizes, cpus=config.cpus
            )
        return replace(settings, boots=config.boots, profile=True)

    def run(self, *, again: bool = False) -> News:
        """Measure what is new, and with *again* what failed before."""
        is_new = not self._folder.exists()
        with out_of_space(f"cannot write {self._folder}"):
            self._folder.mkdir(parents=True, exist_ok=True)
        try:
            return self._run(again=again)
        except BaseException:
            if is_new and not any(store.points(self._folder)):
                shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def _run(self, *, again: bool) -> News:
        lock = f"track-{digest_of({'folder': str(self._folder.resolve())})[:16]}"
        with self._session.cache.lock(lock), opened(self._folder) as index:
            index.refresh()
            measured, failed = [], []
            for point in self._update(index, again=again):
                (failed if point.error else measured).append(point)
            self._compare(index)
            self._measure_more(index)
            self._measure_apart(index, again=again)
            self._compare(index)
            site.write(self._folder, self._config, index)
            return News(self._untold(index.steps()), measured, failed, self._unreached)

    def _compare(self, index: Index) -> None:
        index.refresh()
        index.compare(table(None), self._session.reporter.note)

    def told(self) -> None:
        """The steps were reported: they are not new to the next run."""
        with opened(self._folder) as index:
            text = json.dumps(site.steps(index.steps()), indent=1, sort_keys=True)
        files.write(self._folder / _TOLD, f"{text}\n".encode())

    def _untold(self, steps: Sequence[Step]) -> list[Step]:
        try:
            told = json.loads((self._folder / _TOLD).read_text())
            known = {(step["name"], bool(step["differing"])) for step in told["steps"]}
        except (OSError, ValueError, KeyError, TypeError):
            known = set()
        return [
            step
            for step in steps
            if (step.name, bool(step.differing)) not in known
            or (step.differing and step.name in self._tried)
        ]

    # Measure.

    def _update(self, index: Index, *, again: bool) -> Iterator[Point]:
        """Measure the points that are missing: each as it is kept."""
        known = {point.path: point for points in index.points().values() for point in points}
        for watch in self._config.watches:
            recipe = self._recipe(watch)
            missing = []
            for one in self._wanted(watch, recipe):
                found = known.get(one.point.path)
                if found and one.point.is_answered_by(found) and not (again and found.error):
                    continue
                missing.append(one)
            self._session.reporter.note(f"{watch.name}: {len(missing)} kernels to measure")
            for some in _batches(missing, self._session.together):
                for one, measured in self._measure(some):
                    if isinstance(measured, Unreachable):
                        self._session.reporter.warn(f"{one.point.title}: {measured}")
                        self._unreached.append(one.point)
                        continue
                    point = one.point
                    if isinstance(measured, IopathError):
                        point = replace(point, error=_brief(one, measured))
                        self._session.reporter.warn(f"{point.title}: {point.error}")
                        before = known.get(point.path)
                        if before and not before.error:
                            continue  # what was measured before stays
                    store.write(self._folder, point, None if point.error else measured)
                    yield point

    def _measure(
        self, some: Sequence[Wanted], boots: int | None = None
    ) -> Iterator[tuple[Wanted, ExactResult | IopathError]]:
        """Each of some kernels of one architecture with its result or its error."""
        usable = []
        for one in some:
            missing = one.point.asked["missing"]
            if missing:
                yield one, IopathError(f"{missing} is no longer on the mirror")
            else:
                usable.append(one)
        if not usable:
            return
        settings = self._settings(named(usable[0].point.arch))
        settings = replace(settings, boots=boots or settings.boots)
        wanted = [Measurement(one.name, settings) for one in usable]
        measured = self._session.measure_each(wanted, self._session.reporter.warn)
        found = {one.name: result for one, result in measured}
        for one in usable:
            yield one, found[one.name]

    def _measure_more(self, index: Index) -> None:
        """Boot neighbours more often that are undecided."""
        for watch in self._config.watches:
            steps = [step for step in index.links() if step.after.watch == watch.name]
            wanted: dict[Path, int] = {}
            for step in (step for step in steps if not step.apart):
                for point in step.points:
                    asked = replace(self._settings(named(point.arch)), boots=point.asked["boots"])
                    if more := boots.enough(asked, {step.name: step.wanted}):
                        wanted[point.path] = max(more.boots, wanted.get(point.path, 0))
            if not wanted:
                continue
            points = [point for step in steps for point in step.points if point.path in wanted]
            found = self._found(watch, self._recipe(watch), points)
            for path, one in found.items():
                if path not in wanted or one.point.asked["missing"]:
                    continue
                self._session.reporter.note(f"booting {one.point.title} {wanted[path]} times")
                for _, measured in self._measure([one], wanted[path]):
                    if isinstance(measured, IopathError):
                        self._session.reporter.warn(f"{one.point.title}: {measured}")
                        continue
                    point = replace(one.point, asked={**one.point.asked, "boots": wanted[path]})
                    store.write(self._folder, point, measured)

    # Measure neighbours together whose own results cannot be compared.

    def _measure_apart(self, index: Index, *, again: bool) -> None:
        """Measure the pairs that are missing, and those that failed before if they are to be tried
        *again*."""
        apart = [step for step in index.steps() if step.differing]
        for watch in self._config.watches:
            steps = [step for step in apart if step.after.watch == watch.name]
            if not steps:
                continue
            recipe = self._recipe(watch)
            found = self._found(watch, recipe, [p for step in steps for p in step.points])
            for step in steps:
                both = [found.get(point.path) for point in step.points]
                lacking = [one.point.asked["missing"] if one else "it" for one in both]
                asked = {**self._asked(watch, recipe), "missing": lacking}
                pair = store.pair(*step.points, asked)
                path = self._folder / pair.path
                known = store.read_pair(path)[0] if path.exists() else None
                if known and pair.is_answered_by(known) and not (again and known.error):
                    continue
                self._tried.add(step.name)
                self._keep_pair(pair, [one for one in both if one])

    def _keep_pair(self, pair: MeasuredPair, both: Sequence[Wanted]) -> None:
        """Measure the two kernels of a pair, and keep the result or the error."""
        failed = "{} cannot be measured again: {}".format
        errors = [
            failed(title, f"{what} is no longer on the mirror")
            for title, what in zip((pair.before, pair.after), pair.asked["missing"], strict=True)
            if what
        ]
        parts = []
        if not errors:
            self._session.reporter.note(f"measuring {pair.before} and {pair.after} together")
            try:
                for one, measured in self._measure(both):
                    if isinstance(measured, Unreachable):
                        self._session.reporter.warn(f"{one.point.title}: {measured}")
                        return
                    if isinstance(measured, IopathError):
                        errors.append(failed(one.point.title, _brief(one, measured)))
                    else:
                        parts.append((one.name, measured))
            except UsageError as error:  # the repository no longer has a commit
                errors.append(failed(pair.before, error))
        for text in errors:
            self._session.reporter.warn(text)
        whole = None if errors else compare.join(parts)
        store.write_pair(self._folder, replace(pair, error="; ".join(errors)), whole)

    # Kernels to measure.

    def _recipe(self, watch: Watch) -> Recipe | None:
        """How the commits of a watch are built; the session knows it from now on."""
        if not watch.branch:
            return None
        recipe = self._make_recipe(watch.suite, watch.config, watch.kconfig, watch.arch)
        self._session.recipe = recipe
        return recipe

    def _asked(self, watch: Watch, recipe: Recipe | None) -> dict[str, object]:
        """What to measure on a kernel of a watch."""
        program = self._settings(BY_DEBIAN[watch.arch]).program
        return {
            **({"program": digest_of(program.inputs)[:16]} if program else {}),
            "rungs": [rung.name for rung in self._config.rungs],
            "ops": list(self._config.ops),
            "block_sizes": list(self._config.block_sizes),
            "boots": self._config.boots,
            **({"cpus": self._config.cpus} if self._config.cpus > 1 else {}),
            "build": digest_of(recipe.inputs())[:16] if recipe else "",
            "missing": "",
        }

    def _wanted(self, watch: Watch, recipe: Recipe | None) -> list[Wanted]:
        """The kernels of a watch, oldest first."""
        asked = self._asked(watch, recipe)
        choice = {"newest": watch.releases != ALL, "every": watch.every, "merges": watch.merges}
        states = {
            state.name: state
            for spec, found in watch.asked
            for state in found.states(spec, self._session, **choice)
        }
        points = [_point(watch, state, asked) for state in states.values()]
        return sorted(points, key=lambda one: one.point.order)

    def _found(
        self, watch: Watch, recipe: Recipe | None, points: Sequence[Point]
    ) -> dict[Path, Wanted]:
        """Those of *points* that still exist, by their files, also those that are no longer
        watched."""
        asked = self._asked(watch, recipe)
        kept = [
            State(
                "", point.title, point.position, point.detail, point.line, point.date,
                point.commit, point.arch,
            )
            for point in points
        ]  # fmt: skip
        spec, found = watch.asked[0]
        every = [_point(watch, state, asked) for state in found.kept(spec, self._session, kept)]
        return {one.point.path: one for one in every}


def _point(watch: Watch, state: State, asked: dict[str, object]) -> Wanted:
    point = Point(
        watch.name, state.line or watch.name, state.title, state.position, state.detail,
        {**asked, "missing": state.missing}, state.date, state.commit, state.arch,
    )  # fmt: skip
    return Wanted(point, state.name)


def _batches(missing: Sequence[Wanted], together: int) -> Iterator[Sequence[Wanted]]:
    """Kernels that are measured at a time: the newest first, at most *together* of them. They are
    of one architecture, so that results differ in the emulator only if their own does."""
    for arch in dict.fromkeys(one.point.arch for one in missing):
        some = [one for one in reversed(missing) if one.point.arch == arch]
        for start in range(0, len(some), together):
            yield some[start : start + together]


def _brief(one: Wanted, error: IopathError) -> str:
    """An error without the name of the kernel and what changes from run to run."""
    return re.split(r" \(log: | \[IP: ", str(error))[0]
