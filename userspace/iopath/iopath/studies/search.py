# SPDX-License-Identifier: GPL-2.0
"""Search for shapes of I/O that cost more on one kernel than on another.

A shape is kept for one of three reasons. It executes a function, or a power of two of its
instructions, that no kept shape has. It has the largest relative growth of a function so far. Or
the kernels answer it differently. Most shapes are mutations of kept ones, and those seldom chosen
come first. What is tried depends on the seed, the kept shapes and the number of shapes alone.
"""

import math
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

from iopath.base import files
from iopath.base.errors import UsageError
from iopath.measure.screening import SURE, Outcome
from iopath.rungs.runs import Run
from iopath.rungs.shapes import Shape, Space, toml
from iopath.studies.judges import Contrast, Judge

GROUPS = 4  # targets of a batch
EACH = 64  # shapes of a target in it, when it has its first turn
_MOST = 4  # times as many, at most, in later turns: each guest takes a second to begin
_MORE = 1.1  # times a known growth, that a larger one is
_FRESH = 0.3  # of the shapes of a batch, that are not mutations
_FILE = "corpus.toml"


class Screens(Protocol):
    """What screens shapes: a guest of each kernel."""

    def screen(
        self, groups: Sequence[Sequence[Run]], layouts: int = 1
    ) -> Mapping[str, list[list[Outcome]]]: ...


@dataclass
class KeptShape:
    """A shape of the corpus: why it is kept, and how often it was mutated."""

    contrast: Contrast
    why: str
    chosen: int = 0


@dataclass(frozen=True)
class Budget:
    """When a search ends: after so many *shapes*, if it is not 0, or *seconds* of real time."""

    shapes: int = 0
    seconds: float = 0.0


@dataclass
class BatchDone:
    """How far a search is after a batch."""

    shapes: int
    functions: int
    causes: int
    seconds: float


@dataclass
class SearchState:
    """What a search has found: the corpus, by function the contrast that makes it grow most, and
    the one of which it is the largest part."""

    shapes: int = 0
    corpus: list[KeptShape] = field(default_factory=list)
    causes: dict[str, Contrast] = field(default_factory=dict)
    answers: dict[str, Contrast] = field(default_factory=dict)
    purest: dict[str, Contrast] = field(default_factory=dict)
    curve: list[BatchDone] = field(default_factory=list)


class ShapeSearch:
    """A search for contrasts, as a *judge* makes them. *guided* is off to see what chance finds."""

    def __init__(
        self, screens: Screens, judge: Judge, space: Space, seed: int,
        *, corpus: Path | None = None, guided: bool = True,
        note: Callable[[str], None] = lambda text: None,
        usable: Callable[[str], bool] = lambda target: True,
    ) -> None:  # fmt: skip
        self.screens = screens
        self._judge = judge
        self.space = space
        self.state = SearchState()
        self._seed = seed
        self._folder = corpus
        self._guided = guided
        self._note = note
        self._targets = [one for one in space.wanted_targets if usable(one)]
        if not self._targets:
            raise UsageError("search: the kernels can have none of the targets")
        self._tried: set[Shape] = set()
        self._features: set[tuple[str, str, int]] = set()  # that kept shapes have
        self._batches = 0

    def run(self, budget: Budget) -> None:
        """Search until the budget is used up. *state* has what is known if this is interrupted."""
        begun = time.monotonic()
        self._load()
        while not (budget.shapes and self.state.shapes >= budget.shapes):
            if budget.seconds and time.monotonic() - begun >= budget.seconds:
                break
            left = budget.shapes - self.state.shapes if budget.shapes else GROUPS * EACH * _MOST
            if not self._batch(left):
                break
            state = self.state
            state.curve.append(
                BatchDone(
                    state.shapes, len(self._features), len(state.causes), time.monotonic() - begun
                )
            )
            self._note(
                f"{state.shapes:,} shapes: {len(state.corpus)} kept, {len(state.causes)} causes,"
                f" {state.shapes / max(time.monotonic() - begun, 0.001):.1f} shapes a second"
            )
            self._save()

    def contrasts(self, shapes: Sequence[Shape], layouts: int = 1) -> list[Contrast]:
        """What becomes of *shapes*, in their order."""
        groups: dict[object, list[Shape]] = {}
        for shape in dict.fromkeys(one for own in shapes for one in self._judge.wanted(own)):
            groups.setdefault(self.space.named(shape)["target"], []).append(shape)
        runs = [
            [self.space.run(one, f"shape.{number}") for number, one in enumerate(members)]
            for members in groups.values()
        ]
        screened = self.screens.screen(runs, layouts)
        outcomes = {
            name: {
                shape: one
                for members, each in zip(groups.values(), of_kernel, strict=True)
                for shape, one in zip(members, each, strict=True)
            }
            for name, of_kernel in screened.items()
        }
        return [self._judge.judge(shape, outcomes) for shape in shapes]

    def sure(self, found: Sequence[Contrast]) -> list[Contrast]:
        """The same counted in several layouts: those that still grew."""
        again = self.contrasts([one.shape for one in found], SURE)
        return [one for one in again if one.grew]

    def worst(self, most: int) -> list[tuple[str, Contrast]]:
        """The functions that grew most, each with a contrast to shrink. After them come what the
        kernels answer differently, without a function."""
        causes = self.state.causes
        order = sorted(causes, key=lambda name: (-causes[name].share(name), name))[:most]
        found = [(name, self._purest(name)) for name in order]
        return found + [("", one) for one in self.state.answers.values()]

    def _purest(self, name: str) -> Contrast:
        """What is shrunk to find the cause of a function's growth: the worst contrast may have a
        second cause besides. So it is the one of which the function is the largest part, if it has
        half of the growth at least."""
        worst, purest = (each.get(name) for each in (self.state.causes, self.state.purest))
        assert worst
        return purest if purest and 2 * purest.share(name) >= worst.share(name) else worst

    def _batch(self, most: int) -> bool:
        """Screen some shapes, and keep those that show something new; whether there are any."""
        random = Random(f"{self._seed} {self._batches}")
        self._batches += 1
        turn, targets = self._choose_targets(random)
        shapes: list[Shape] = []
        for target in targets:
            for _ in range(EACH * min(turn + 1, _MOST)):
                if len(shapes) < most and (shape := self._next(random, target)):
                    self._tried.add(shape)
                    shapes.append(shape)
        self._learn(self.contrasts(shapes))
        self.state.shapes += len(shapes)
        return bool(shapes)

    def _choose_targets(self, random: Random) -> tuple[int, list[str]]:
        """The targets of a batch, and which turn it is: all in turn, as the random order of each
        turn has them."""
        per_turn = -(-len(self._targets) // GROUPS)
        turn, at = divmod(self._batches - 1, per_turn)
        order = [*self._targets]
        Random(f"{self._seed} turn {turn}").shuffle(order)
        chosen = order[at * GROUPS : (at + 1) * GROUPS]
        spare = [one for one in order if one not in chosen]
        return turn, chosen + random.sample(spare, min(len(spare), GROUPS - len(chosen)))

    def _next(self, random: Random, target: str) -> Shape | None:
        """A shape that was not tried yet, if there is one."""
        for _ in range(100):
            corpus = self.state.corpus
            if corpus and self._guided and random.random() >= _FRESH:
                weights = [self._energy(one) for one in corpus]
                (kept,) = random.choices(corpus, weights)
                kept.chosen += 1
                shape = self.space.mutate(kept.contrast.shape, random, [target])
            else:
                shape = self.space.draw(random, [target])
            if shape not in self._tried:
                return shape
        return None

    def _energy(self, kept: KeptShape) -> float:
        """How likely a kept shape is mutated: what was seldom chosen, and what grew, more so."""
        return (4.0 if kept.contrast.grew else 1.0) / (1 + kept.chosen)

    def _learn(self, found: Sequence[Contrast]) -> None:
        """Keep what shows something new."""
        state = self.state
        best = dict(state.causes)
        for one in found:
            best |= self._grown(one, best)
        for one in found:
            for name, by in one.functions():
                known = state.purest.get(name)
                part = known.by(name) / known.growth if known else 0.0
                if by / one.growth > part and 2 * one.share(name) >= best[name].share(name):
                    state.purest[name] = one
        rivals = {one.shape: one for name, one in best.items() if one is not state.causes.get(name)}
        sure = {one.shape: one for one in self.sure([*rivals.values()])}
        for one in found:
            why = self._news(one)
            if checked := sure.get(one.shape):
                grown = self._grown(checked, state.causes)
                state.causes |= grown
                why = f"grew: {', '.join([*grown][:3])}" if grown else why
            if one.differs and one.differs not in state.answers:
                state.answers[one.differs] = one
                why = one.differs
            if why:
                state.corpus.append(KeptShape(one, why))

    def _grown(self, one: Contrast, known: Mapping[str, Contrast]) -> dict[str, Contrast]:
        """The functions that a contrast made grow more than any *known* one of them did."""
        return {
            name: one
            for name, _ in one.functions()
            if name not in known or one.share(name) > _MORE * known[name].share(name)
        }

    def _news(self, contrast: Contrast) -> str:
        """What a contrast executes that no kept one does; empty if nothing."""
        new = ""
        for name, outcome in (("before", contrast.before), ("after", contrast.after)):
            for function, count in outcome.functions.items():
                feature = (name, function, int(math.log2(count)) if count >= 1 else -1)
                if feature not in self._features:
                    self._features.add(feature)
                    new = new or f"{function} of {count:.0f}"
        return new

    def _load(self) -> None:
        """Screen the shapes of the corpus that is kept in a folder."""
        path = self._folder / _FILE if self._folder else None
        if not path or not path.exists():
            return
        try:
            tables = tomllib.loads(path.read_text())
            self._batches = int(tables["batches"])
            named = [{k: v for k, v in row.items() if k != "why"} for row in tables["shape"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path}: not a corpus of iopath search: {error}") from error
        shapes = [shape for one in named if (shape := self.space.shape(one))]
        shapes = [one for one in shapes if self.space.named(one)["target"] in self._targets]
        self._tried |= {*shapes}
        self._learn(self.contrasts(shapes) if shapes else [])
        self._note(f"{path}: {len(shapes)} shapes, {len(self.state.causes)} causes")

    def _save(self) -> None:
        """Keep the corpus in its folder."""
        if not self._folder:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        parts = [f"batches = {self._batches}\n"]
        parts += [
            toml({"why": kept.why, **self.space.differing(kept.contrast.shape)}, "shape")
            for kept in self.state.corpus
        ]
        files.write_text(self._folder / _FILE, "\n".join(parts))
