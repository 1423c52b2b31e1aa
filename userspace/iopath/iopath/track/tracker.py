# SPDX-License-Identifier: GPL-2.0
"""Track what an I/O costs: measure the kernels of a file that are new, and show them all.

Each kernel is kept in a file as soon as it is measured (store.py), so a run that is ended goes
on where it was. What is shown is made from these files alone (index.py, site.py).
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from iopath.base import files
from iopath.base.arch import BY_DEBIAN, X86_64
from iopath.base.cache import digest_of, out_of_space
from iopath.base.errors import IopathError, Unreachable, UsageError
from iopath.kernels import apt
from iopath.kernels.recipe import Recipe
from iopath.kernels.sources import debian
from iopath.kernels.sources.debian import DebianKernel
from iopath.measure.session import Session
from iopath.results.layers import Layers
from iopath.results.result import ExactResult, of_kernel
from iopath.rungs.runs import Settings
from iopath.track import site, store
from iopath.track.index import Index, Step, opened
from iopath.track.store import Point
from iopath.track.watches import ALL, Config, Watch

_TOGETHER = 4  # kernels that are prepared at a time
_TOLD = "steps.json"  # the steps that were told before

# Of a suite, a configuration, options, and Debian's name of an architecture.
MakeRecipe = Callable[[str, str, Sequence[str], str], Recipe]


@dataclass(frozen=True)
class Wanted:
    """A point, and the kernel that it is as the command line names it."""

    point: Point
    name: str


@dataclass(frozen=True)
class News:
    """What a run found: steps that were not told before, kernels that it measured, those that it
    could not measure, and those that it will try again."""

    steps: list[Step]
    measured: list[Point]
    failed: list[Point]
    unreached: list[Point] = field(default_factory=list)


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
        self._settings = Settings(
            config.rungs,
            ops=config.ops,
            block_sizes=config.block_sizes,
            boots=config.boots,
            profile=True,
        )

    def run(self, *, again: bool = False) -> News:
        """Measure what is new, and what failed before if it is to be tried *again*."""
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
            index.refresh()
            index.compare(Layers(), self._session.reporter.note)
            site.write(self._folder, self._config, index)
            return News(self._untold(index.steps()), measured, failed, self._unreached)

    def told(self) -> None:
        """The steps were told: they are not new to the next run."""
        with opened(self._folder) as index:
            text = json.dumps(site.steps(index.steps()), indent=1, sort_keys=True)
        files.write(self._folder / _TOLD, f"{text}\n".encode())

    def _untold(self, steps: Sequence[Step]) -> list[Step]:
        try:
            told = json.loads((self._folder / _TOLD).read_text())
            names = {step["name"] for step in told["steps"]}
        except (OSError, ValueError, KeyError, TypeError):
            names = set()
        return [step for step in steps if step.name not in names]

    # Measure.

    def _update(self, index: Index, *, again: bool) -> Iterator[Point]:
        """Measure the points that are missing: each as it is kept."""
        known = {point.path: point for points in index.points().values() for point in points}
        for watch in self._config.watches:
            recipe = None
            if watch.is_git:
                recipe = self._make_recipe(watch.suite, watch.config, watch.kconfig, watch.arch)
                self._session.recipe = recipe
            missing = []
            for one in self._wanted(watch, recipe):
                found = known.get(one.point.path)
                if found and one.point.is_answered_by(found) and not (again and found.error):
                    continue
                missing.append(one)
            self._session.reporter.note(f"{watch.name}: {len(missing)} kernels to measure")
            missing.reverse()  # the newest first
            for start in range(0, len(missing), _TOGETHER):
                for one, measured in self._measure(missing[start : start + _TOGETHER]):
                    if isinstance(measured, Unreachable):
                        self._session.reporter.warn(f"{one.point.title}: {measured}")
                        self._unreached.append(one.point)
                        continue
                    point = one.point
                    if isinstance(measured, IopathError):
                        text = str(measured).removeprefix(f"{one.name}: ")
                        point = replace(point, error=re.split(r" \(log: | \[IP: ", text)[0])
                        self._session.reporter.warn(f"{point.title}: {point.error}")
                        before = known.get(point.path)
                        if before and not before.error:
                            continue  # what was measured before stays
                    store.write(self._folder, point, None if point.error else measured)
                    yield point

    def _measure(
        self, some: Sequence[Wanted]
    ) -> Iterator[tuple[Wanted, ExactResult | IopathError]]:
        """Each with its result or its error."""
        usable = []
        for one in some:
            missing = one.point.asked["missing"]
            if missing:
                yield one, IopathError(f"{missing} is no longer on the mirror")
            else:
                usable.append(one)
        if not usable:
            return
        try:
            whole = self._session.measure([one.name for one in usable], self._settings)
        except UsageError:
            raise
        except IopathError as error:
            if len(usable) == 1:
                yield usable[0], error
                return
            # The others are in the cache by now.
            for one in usable:
                yield from self._measure([one])
            return
        for one in usable:
            chosen = [kernel for kernel in whole.kernels if kernel.name == one.name]
            yield one, replace(whole, kernels=chosen, results=of_kernel(whole.results, one.name))

    # What there is to measure.

    def _wanted(self, watch: Watch, recipe: Recipe | None) -> list[Wanted]:
        """The kernels of a watch, oldest first."""
        asked: dict[str, Any] = {
            "rungs": [rung.name for rung in self._config.rungs],
            "ops": list(self._config.ops),
            "block_sizes": list(self._config.block_sizes),
            "boots": self._config.boots,
            "build": digest_of(recipe.inputs())[:16] if recipe else "",
            "missing": "",
        }
        found = self._commits(watch, asked) if recipe else self._releases(watch, asked)
        return sorted(found, key=lambda one: one.point.order)

    def _commits(self, watch: Watch, asked: dict[str, Any]) -> Iterator[Wanted]:
        """Commits of the first parents of a branch, so that each is a state that the branch had."""
        repository = self._session.repository(watch.place)
        commits = repository.line(*watch.range)
        first = repository.git("rev-list", "--count", "--first-parent", commits[0].name)
        numbered = [
            (int(first) + number, commit)
            for number, commit in enumerate(commits)
            if not watch.merges or commit.is_merge or number == 0
        ]
        for number, commit in numbered[:: watch.every]:
            point = Point(
                watch.name, watch.name, commit.name[:12], str(number), commit.subject, asked,
                date=commit.date, commit=commit.name, arch=BY_DEBIAN[watch.arch].name,
            )  # fmt: skip
            yield Wanted(point, f"git:{watch.place}@{commit.name}")

    def _releases(self, watch: Watch, asked: dict[str, Any]) -> Iterator[Wanted]:
        """Debian's kernels. Those of one release of Debian are a line: they have one compiler."""
        chosen: dict[str, DebianKernel] = {}
        for name in watch.kernels:
            spec = name.removeprefix("debian:")
            known = self._session.debian_kernels(debian.arch_of(spec))
            every = debian.select_all(spec, known)
            if watch.releases != ALL:
                try:
                    every = [debian.select(spec, known)[0]]
                except UsageError:
                    raise
                except IopathError:
                    every = every[-1:]
            chosen |= {kernel.release: kernel for kernel in every}
        for kernel in chosen.values():
            arch = "" if kernel.arch is X86_64 else kernel.arch.debian
            flavour = "".join(f"-{word}" for word in (kernel.flavour, arch) if word)
            suite = kernel.suite.partition("-")[0]
            line = "testing" if kernel.suite in apt.UNRELEASED else suite
            point = Point(
                watch.name, f"{line}{flavour}", f"{kernel.version}{flavour}", kernel.version,
                f"{kernel.release}, {kernel.suite}", {**asked, "missing": kernel.missing},
                arch=kernel.arch.name,
            )  # fmt: skip
            yield Wanted(point, f"debian:{kernel.release}")
