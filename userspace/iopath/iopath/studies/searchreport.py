# SPDX-License-Identifier: GPL-2.0
"""What views show of a search: one line for each cause, the smallest way to see it, and what was
measured of it."""

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from iopath.base.errors import IopathError
from iopath.compare import compare
from iopath.compare.changes import ExactChange
from iopath.measure.screening import Outcome
from iopath.measure.session import Session
from iopath.results.layers import Layers
from iopath.results.result import ExactRecord, ExactResult
from iopath.results.symbol import plain
from iopath.rungs.runs import Run, Settings
from iopath.rungs.shapes import Space, fio, rung_name, toml
from iopath.show import texts
from iopath.show.console import put_text
from iopath.show.reports import ProfileReport
from iopath.studies import boots
from iopath.studies.judges import Contrast
from iopath.studies.search import SearchState
from iopath.studies.shrink import Shrunk

_FUNCTIONS = 4  # named of a finding
_ALIKE = 0.5  # of the growth by function, that two shapes of one cause share


@dataclass(frozen=True)
class Finding:
    """A shape that differs, under the name of its rung, and *others* that the same functions make
    grow. *change* is what compare says of it; it is None if it was not measured."""

    name: str
    shrunk: Shrunk
    run: Run
    change: ExactChange | None = None
    others: Sequence[Shrunk] = ()

    @property
    def title(self) -> str:
        return f"{self.name} {self.run.op}"

    def growth(self) -> str:
        """What grows, and by which functions."""
        contrast = self.shrunk.contrast
        if self.shrunk.answer:
            return self.shrunk.answer
        parts, difference = contrast.functions(), contrast.growth
        if self.change:
            difference = self.change.difference
            grown = [(one.name, one.difference) for one in self.change.functions]
            parts = [one for one in grown if one[1] > 0] or parts
        before = contrast.before.figure
        percent = f" ({100 * difference / before:+.1f} %)" if before else ""
        than = f" than {contrast.simpler.name} allows" if contrast.simpler else ""
        names = ", ".join(f"{name} {texts.signed(by)}" for name, by in parts[:_FUNCTIONS])
        return f"{texts.signed(difference)}{percent}{than}: {names}"


def named(space: Space, found: Sequence[Shrunk]) -> list[Finding]:
    """What was found, under names: the causes, each with its simplest shape; the largest growth
    comes first, and what kernels answer differently last."""

    def rank(one: Shrunk) -> tuple[bool, float]:
        contrast = one.contrast
        return bool(one.answer), -contrast.growth / max(contrast.before.figure, 1.0)

    causes: list[list[Shrunk]] = []
    for one in sorted(found, key=rank):
        known = next((cause for cause in causes if _alike(cause[0].contrast, one.contrast)), None)
        if known:
            known.append(one)
        else:
            causes.append([one])
    simplest = [
        sorted(cause, key=lambda one: len(space.differing(one.contrast.shape))) for cause in causes
    ]
    findings = []
    for number, (one, *others) in enumerate(sorted(simplest, key=lambda cause: rank(cause[0])), 1):
        name = f"search.{number}"
        every = dict.fromkeys(function for each in (one, *others) for function in each.functions)
        run = space.run(one.contrast.shape, name)
        findings.append(Finding(name, replace(one, functions=[*every]), run, others=others))
    return findings


def _alike(one: Contrast, other: Contrast) -> bool:
    """Whether the same functions make two shapes grow: how much of the growth is in functions that
    both have, each in the smaller of its two shares."""
    shares = []
    for contrast in (one, other):
        grown = dict(contrast.functions())
        whole = sum(grown.values()) or 1.0
        shares.append({name: by / whole for name, by in grown.items()})
    common = shares[0].keys() & shares[1].keys()
    return sum(min(shares[0][name], shares[1][name]) for name in common) >= _ALIKE


def measured(
    session: Session, space: Space, kernels: Sequence[str], settings: Settings,
    findings: Sequence[Finding], layers: Layers, most: int,
) -> tuple[list[Finding], ExactResult | None]:  # fmt: skip
    """The first findings that are confirmed when they are measured as all rungs are, at *most* so
    many, and the result of all. What could not be measured, or was answered differently, is kept as
    it is."""
    found: list[Finding] = []
    wholes: list[ExactResult] = []
    for one in findings:
        if len(found) == most:
            break
        try:
            confirmed, whole = _confirm(session, space, kernels, settings, one, layers)
        except IopathError as error:
            session.reporter.warn(f"{one.name}: not measured: {error}")
            confirmed, whole = one, None
        if confirmed:
            found.append(confirmed)
        else:
            session.reporter.note(f"{one.name}: not confirmed in {settings.boots} boots")
        wholes += [whole] if confirmed and whole else []
    records = [record for whole in wholes for record in whole.results]
    return found, replace(wholes[0], results=records) if wholes else None


def _confirm(
    session: Session, space: Space, kernels: Sequence[str], settings: Settings, one: Finding,
    layers: Layers,
) -> tuple[Finding | None, ExactResult | None]:  # fmt: skip
    """A finding as it is measured, None if it is not confirmed; and the result. The growth must be
    larger than the difference between layouts of one kernel. A search counts hundreds of shapes, so
    some of them grow by chance, and so do functions of the shapes that are said with it."""
    contrast = one.shrunk.contrast
    if one.shrunk.answer:
        return one, None
    if contrast.simpler:
        base = space.run(contrast.simpler.shape, f"{one.name}.base")
        own = replace(settings, rungs=[base.rung, one.run.rung])
        (whole,) = session.results(kernels, own).values()
        before, after = (_outcome(record) for record in whole.results)
        checked = replace(contrast, before=contrast.simpler.allows(before), after=after)
        sure = replace(one, shrunk=replace(one.shrunk, contrast=checked))
        return (sure if checked.grew else None), whole
    own = replace(settings, rungs=[one.run.rung])
    results = session.results(kernels, own)
    compared = boots.compare(session, own, results, {name: name for name in kernels}, layers)
    (rung,) = compared.comparison.rungs
    change = rung.differences.get(kernels[-1])
    if not change or not change.grew or change.difference <= (change.noise or 0.0):
        return None, compared.whole
    grown = {plain(row.name) for row in change.functions if row.difference > 0}
    sure = [name for name in one.shrunk.functions if name in grown] or one.shrunk.functions
    return replace(one, shrunk=replace(one.shrunk, functions=sure), change=change), compared.whole


def _outcome(record: ExactRecord) -> Outcome:
    """A figure and its functions, as screening has them."""
    functions: dict[str, float] = {}
    for row in record.profile.functions if record.profile else ():
        name = plain(row.name)
        functions[name] = functions.get(name, 0.0) + row.instructions
    return Outcome(record.instructions_per_io, functions)


class SearchReport:
    """The findings, and the result of those that were measured."""

    def __init__(
        self, space: Space, kernels: Sequence[str], findings: Sequence[Finding],
        state: SearchState, command: str, whole: ExactResult | None, layers: Layers,
    ) -> None:  # fmt: skip
        two = whole and len(whole.kernels) > 1
        comparison = compare.compare(whole, layers) if two else None
        self.measured = ProfileReport(whole, comparison, layers) if whole else None
        self.space = space
        self.kernels = kernels
        self.findings = findings
        self.state = state
        self.command = command

    def json(self) -> str:
        data = json.loads(self.measured.json()) if self.measured else {}
        data["search"] = {
            "command": self.command,
            "shapes": self.state.shapes,
            "curve": [vars(one) for one in self.state.curve],
            "findings": [self._finding(one) for one in self.findings],
        }
        return json.dumps(data, indent=1) + "\n"

    def _finding(self, one: Finding) -> dict[str, object]:
        return {
            "rung": one.name,
            "shape": self.space.differing(one.shrunk.contrast.shape),
            "growth": one.growth(),
            "described": [*describe(self.space, one)],
            "functions": one.shrunk.functions,
            "answer": one.shrunk.answer or None,
            "needs": {name: [*pair] for name, pair in one.shrunk.needs.items()},
            "toml": table(self.space, one),
            "fio": fio(one.run) or None,
        }

    def toml(self) -> str:
        return "\n".join(table(self.space, one) for one in self.findings)

    def html(self) -> str:
        if not self.measured:
            raise IopathError("--html: nothing was found, so there is nothing to draw")
        return self.measured.html()

    def markdown(self) -> str:
        lines = [heading(self.kernels, self.findings, self.state), ""]
        for number, one in enumerate(self.findings, 1):
            lines += [f"{number}. {one.growth()}", ""]
            lines += [f"    {text}" for text in describe(self.space, one)] + [""]
            lines += [f"    {text}" for text in table(self.space, one).splitlines()] + [""]
        return "\n".join([*lines, "Repeat it with:", "", f"    {self.command}", ""])


def table(space: Space, finding: Finding) -> str:
    """The rung of a finding, as TOML."""
    return toml(space.table(finding.shrunk.contrast.shape, finding.name))


def heading(kernels: Sequence[str], findings: Sequence[Finding], state: SearchState) -> str:
    what = "cause" if len(findings) == 1 else "causes"
    return f"{' to '.join(kernels)}: {state.shapes:,} shapes, {len(findings)} {what}."


def describe(space: Space, finding: Finding) -> Iterator[str]:
    """From where on it shows, and the smallest way to see it."""
    shape = finding.shrunk.contrast.shape
    named = space.named(shape)
    words = [rung_name(named), str(named["op"]), f"{named['size']:,} bytes"]
    words += [
        f"{name} {value}"
        for name, value in space.differing(shape).items()
        if name not in ("target", "engine", "op", "size")
    ]
    yield f"shape: {', '.join(words)}"
    for name, (without, value) in finding.shrunk.needs.items():
        if isinstance(value, int) and isinstance(without, int):
            yield f"from {name} {value:,} on, not at {without:,}"
        else:
            yield f"only with {name} {value}, not with {without}"
    if finding.others:
        others = [space.named(one.contrast.shape) for one in finding.others]
        titles = dict.fromkeys(f"{rung_name(one)} {one['op']}" for one in others)
        yield f"also: {', '.join(titles)}"
    yield f"ioloop: {shlex.join(ioloop(finding.run))}"
    if finding.shrunk.contrast.after.died:
        yield finding.shrunk.contrast.after.died


def ioloop(run: Run) -> list[str]:
    """The command line that does such I/O on a machine."""
    words = run.rung.command(run.op, run.block_size, 0, rounds=50)
    left_out = ("--region", "--cpus_allowed", "--output-format")
    return ["ioloop", *(word for word in words[1:] if word.partition("=")[0] not in left_out)]


def show(
    space: Space, kernels: Sequence[str], findings: Sequence[Finding], state: SearchState,
    out: Console,
) -> None:  # fmt: skip
    """Print the findings."""
    put_text(out, heading(kernels, findings, state))
    for number, one in enumerate(findings, 1):
        put_text(out, "")
        put_text(out, f"{number}. {one.growth()}")
        for text in describe(space, one):
            put_text(out, f"   {text}")
        for title, text in (("rung", table(space, one)), ("fio", fio(one.run))):
            if text:
                put_text(out, f"   {title}:")
                for line in text.splitlines():
                    put_text(out, f"      {line}")
