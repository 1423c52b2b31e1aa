# SPDX-License-Identifier: GPL-2.0
"""Make the results of a kernel from what its guests recorded and counted."""

import gzip
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from iopath.base.errors import Interrupted
from iopath.counts import inline, longrun, plugin_output
from iopath.counts.pathcount import BootProfile
from iopath.counts.plugin_output import Output
from iopath.counts.symbols import Symbols
from iopath.kernels import elf, modules
from iopath.measure import rounds
from iopath.measure.jobs import Job, Recorded
from iopath.measure.measurement import Bench
from iopath.measure.plan import modules_of
from iopath.measure.rounds import RunCounts
from iopath.results import metrics
from iopath.results.iorequests import Requests
from iopath.results.layers import Layers
from iopath.results.profiles import ExactProfile
from iopath.results.result import ExactRecord
from iopath.rungs import ioloop_report
from iopath.rungs.runs import Run

_KALLSYMS, _COUNTS, _RECORDS = "kallsyms.gz", "counts.gz", "records.json"
JITED = "jited."  # before the names of records that are lines of /proc/kallsyms: eBPF's
_TAG = re.compile(r"\bbpf_prog_[0-9a-f]{16}_")


def keep(recorded: Recorded, folder: Path) -> None:
    """Write the result of a job to its entry in the cache."""
    (folder / _KALLSYMS).write_bytes(recorded.kallsyms)
    (folder / _COUNTS).write_bytes(recorded.counts)
    (folder / _RECORDS).write_text(json.dumps(recorded.texts))


def entry(job: Job, title: str, bench: Bench) -> Path:
    """The cache entry with the result of *job*, which runs if there is no entry. Progress calls it
    *title*."""
    ran = False

    def make(folder: Path) -> None:
        nonlocal ran
        ran = True
        with bench.reporter.guest(title) as advance:
            recorded = bench.pools.run(job, advance)
        for text in recorded.warnings:
            bench.warn(text)
        keep(recorded, folder)

    found = bench.cache.entry("result", job.inputs(), make)
    if not ran:
        bench.reporter.finished()
    return found


@dataclass(frozen=True, eq=False)
class Counted:
    """The output, in its cache *entry*, of the guest that carried out *runs* with *files*. It has
    profiles if *full*, with source lines if there is *debug* information. A boot that checks
    another one, which *first* returns when it is counted, counts less, and has its functions."""

    entry: Path
    runs: Sequence[Run]
    files: Mapping[str, bytes]
    layers: Layers
    full: bool = False
    debug: Path | None = None
    first: "Callable[[], Counted] | None" = None

    @property
    def checks(self) -> bool:
        return self.first is not None

    def records(self) -> dict[str, str]:
        """The programs' reports and the files, by name."""
        texts = json.loads((self.entry / _RECORDS).read_text())
        rounds.check_calibration(ioloop_report.read(texts["calibrate"]))
        return texts

    @property
    def run_counts(self) -> dict[int, RunCounts]:
        """What the plugin counted of the runs, by region, but for those that were interrupted."""
        return self._read[0]

    @property
    def profiles(self) -> dict[int, ExactProfile]:
        """The profiles by region."""
        return self._read[1]

    @property
    def interrupted(self) -> dict[int, str]:
        """Why a run has no figure, by region."""
        return self._read[2]

    @cached_property
    def output(self) -> Output:
        """What the plugin wrote."""
        waits = self.runs[0].rung.waits
        trees = {run.lines_region for run in self.runs} if not (self.full or waits) else None
        return plugin_output.read(_unpack(self.entry / _COUNTS).splitlines(), trees)

    @cached_property
    def _read(self) -> tuple[dict[int, RunCounts], dict[int, ExactProfile], dict[int, str]]:
        texts = self.records()
        program = self.files[self.runs[0].rung.guest_program.removeprefix("/")]
        named = self.first() if self.first else self
        kallsyms = (named.entry / _KALLSYMS).read_bytes()
        functions = symbols_of(kallsyms, texts, self.files, program)
        found = BootProfile(self.output, functions, self.layers, waits=self.runs[0].rung.waits)
        longs = longrun.LongRuns(found, functions, self.layers)
        source = inline.Lines(self.debug, functions) if self.full and self.debug else None
        counts, profiles, interrupted = {}, {}, {}
        for run in self.runs:
            try:
                counts[run.region] = self._run_counts(run, texts, found, longs)
                if self.full:
                    profiles[run.region] = _profile(run, found, functions, source)
            except Interrupted as error:
                interrupted[run.region] = str(error)
        return counts, profiles, interrupted

    def _run_counts(
        self, run: Run, texts: Mapping[str, str], found: BootProfile, longs: longrun.LongRuns
    ) -> RunCounts:
        parts = run.parts(checks=self.checks)
        counted = [one for part in parts for one in found.rounds(part.region)]
        if self.checks and not run.counted_fully:
            return RunCounts(counted)
        long = ioloop_report.read(texts[f"long.{run.region}"])
        device = long.counted
        return RunCounts(
            counted,
            longs.figures(run, long.tsc),
            {
                **found.events(run.lines_region, run.rung.batch),
                **longs.metrics(run),
                **metrics.of_device(device.counters or {}, run.long_ios),
            },
            found.model(run.lines_region, run.rung.batch),
            Requests(
                who=longs.who(run),
                sizes=[*device.sizes] or None,
                seen=device.seen.splitlines() or None,
            ),
        )


def _profile(
    run: Run, found: BootProfile, functions: Symbols, source: inline.Lines | None
) -> ExactProfile:
    """The profile of a run, with lines of the *source* if there is any."""
    noise = found.code_lines_noise(run.lines_region, run.rung.batch)
    profile = replace(
        found.region(run.region, run.ios),
        lines=found.lines(run.lines_region, run.rung.batch),
        lines_noise={"code_kernel": noise},
    )
    if source:
        counts = found.addresses(run.region, run.ios)
        profile.source = inline.break_down(counts, source, functions)
    return profile


def symbols_of(
    kallsyms: bytes, texts: Mapping[str, str], files: Mapping[str, bytes], program: bytes = b""
) -> Symbols:
    """The functions of the kernel, of the modules among the guest's *files*, of programs of eBPF,
    and of the *program*, if there is one. *kallsyms* is compressed. It was read before these were
    loaded; *texts* say where they are."""
    lines = [
        line
        for name, data in modules_of(files).items()
        for line in modules.kallsyms(name, data, texts)
    ]
    lines += [_TAG.sub("bpf_prog_", text) for name, text in texts.items() if name.startswith(JITED)]
    text = gzip.decompress(kallsyms).decode(errors="replace")
    return Symbols(text, elf.program_functions(program) if program else "", "".join(lines))


def _unpack(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode(errors="replace")


def results(
    name: str, release: str, boots: Sequence[Counted], *, profile: bool
) -> tuple[dict[Run, ExactRecord], list[str]]:
    """The records of the runs that were carried out in *boots* of a kernel, with profiles if
    *profile* says so; and why other runs have none."""
    texts = [boot.records() for boot in boots]
    found, notes = {}, []
    for run in boots[0].runs:
        try:
            found[run] = _record(name, release, run, boots, texts)
        except Interrupted as error:
            notes.append(f"{run.title}: {error}")
            continue
        if profile:
            long = boots[0].run_counts[run.region].long
            functions = long.functions if long else []
            found[run].profile = replace(boots[0].profiles[run.region], long_run=functions)
    return found, notes


def first_figures(boot: Counted) -> dict[Run, float]:
    """The figures that one *boot* has at its end. One that checks another has no functions yet, so
    it has those of the rounds that are counted flat."""
    if not boot.checks:
        found, _ = results("", "", [boot], profile=False)
        return {run: record.instructions_per_io for run, record in found.items()}
    texts, figures = boot.records(), {}
    for run in boot.runs:
        (part,) = run.parts(checks=True)
        if not part.flat:
            continue
        report = ioloop_report.read(texts[part.name])
        figure = rounds.first_figure(report, boot.output.flats[part.region][0].each)
        if figure is not None:
            figures[run] = figure
    return figures


def _record(
    name: str, release: str, run: Run, boots: Sequence[Counted], texts: Sequence[Mapping[str, str]]
) -> ExactRecord:
    reports = [
        ioloop_report.joined(text[part.name] for part in run.parts(checks=boot.checks))
        for text, boot in zip(texts, boots, strict=True)
    ]
    for boot in boots:
        if text := boot.interrupted.get(run.region):
            raise Interrupted(text)
    counts = [boot.run_counts[run.region] for boot in boots]
    for one, other in zip(reports, counts, strict=True):
        rounds.check_rounds(run, one, other.rounds)
    return rounds.figure(name, release, run, reports, counts)
