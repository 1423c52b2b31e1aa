# SPDX-License-Identifier: GPL-2.0
"""Make the results of a kernel from what its guests recorded and counted."""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from iopath.base import typed
from iopath.base.cache import Cache, digest_file
from iopath.base.programs import code_digest
from iopath.base.progress import Reporter
from iopath.counts import inline, longrun, output
from iopath.counts.pathcount import BootProfile
from iopath.counts.symbols import Symbols
from iopath.kernels import elf, modules
from iopath.measure import figures, known
from iopath.measure.figures import RunCounts
from iopath.measure.jobs import Job, Recorded
from iopath.measure.plan import modules_of
from iopath.measure.pools import Pools
from iopath.results.layers import Layers
from iopath.results.profiles import ExactProfile
from iopath.results.result import ExactRecord
from iopath.rungs import report
from iopath.rungs.runs import Run

_KALLSYMS, _COUNTS, _RECORDS = "kallsyms.gz", "counts.gz", "records.json"


def keep(recorded: Recorded, folder: Path) -> None:
    """Write the result of a job to its entry in the cache."""
    (folder / _KALLSYMS).write_bytes(recorded.kallsyms)
    (folder / _COUNTS).write_bytes(recorded.counts)
    (folder / _RECORDS).write_text(json.dumps(recorded.texts))


def entry(
    job: Job, title: str, pools: Pools, cache: Cache, reporter: Reporter,
    warn: Callable[[str], None],
) -> Path:  # fmt: skip
    """The cache entry with the result of *job*, which runs if there is no entry. Progress calls it
    *title*."""
    ran = False

    def make(folder: Path) -> None:
        nonlocal ran
        ran = True
        with reporter.guest(title) as advance:
            recorded = pools.run(job, advance)
        for text in recorded.warnings:
            warn(text)
        keep(recorded, folder)

    found = cache.entry("result", job.inputs(), make)
    if not ran:
        reporter.finished()
    return found


@dataclass(frozen=True)
class Counted:
    """The output, in its cache *entry*, of the guest that carried out *runs* with *files*. It has
    profiles if *full*, with source lines if there is *debug* information."""

    entry: Path
    runs: Sequence[Run]
    files: Mapping[str, bytes]
    cache: Cache
    layers: Layers
    full: bool = False
    debug: Path | None = None

    def records(self) -> dict[str, str]:
        """The programs' reports and the files, by name."""
        texts = json.loads((self.entry / _RECORDS).read_text())
        figures.check_calibration(report.read(texts["calibrate"]))
        return texts

    def compute(self) -> None:
        """Have all that is computed from the guest's output. The other methods do what is left."""
        _ = self._read

    def run_counts(self) -> dict[str, RunCounts]:
        """What the plugin counted of the runs, by region."""
        text = (self._read / "counts.json").read_text()
        return typed.structure(json.loads(text), dict[str, RunCounts])

    def profiles(self) -> dict[str, ExactProfile]:
        """The profiles by region."""
        text = (self._read / "profiles.json").read_text()
        return typed.structure(json.loads(text), dict[str, ExactProfile])

    @cached_property
    def _read(self) -> Path:
        """The cache entry with all that is computed from the guest's output. Its key has all the
        code.

        A guest that runs again may be interrupted in other rounds, so its files are in the key.
        """
        inputs = {
            "boot": {
                name: digest_file(self.entry / name) for name in (_KALLSYMS, _COUNTS, _RECORDS)
            },
            "layers": self.layers.digest,
            "code": code_digest(),
            "ios": {str(run.region): (run.ios, run.long_ios, run.rung.batch) for run in self.runs},
            "waits": self.runs[0].rung.waits,
            "full": self.full,
            "debug": known.debug_inputs(self.debug if self.full else None),
        }
        return self.cache.entry("counted", inputs, self._make)

    def _make(self, folder: Path) -> None:
        counted = output.read(_unpack(self.entry / _COUNTS).splitlines())
        texts = self.records()
        kallsyms = symbols_of(_unpack(self.entry / _KALLSYMS), texts, self.files)
        program = self.files[self.runs[0].rung.guest_program.removeprefix("/")]
        functions = Symbols(kallsyms, elf.program_functions(program))
        waits = self.runs[0].rung.waits
        found = BootProfile(counted, functions, self.layers, waits=waits)
        longs = longrun.LongRuns(found, functions, self.layers)
        counts = {
            str(run.region): RunCounts(
                longs.figures(run, report.read(texts[f"long.{run.region}"]).tsc),
                found.events(run.lines_region, run.rung.batch),
                found.rounds(run.region),
                found.model(run.lines_region, run.rung.batch),
            )
            for run in self.runs
        }
        (folder / "counts.json").write_text(json.dumps(typed.unstructure(counts)))
        if self.full:
            profiles = self._profiles(found, functions)
            (folder / "profiles.json").write_text(json.dumps(typed.unstructure(profiles)))

    def _profiles(self, found: BootProfile, functions: Symbols) -> dict[str, ExactProfile]:
        regions: dict[str, ExactProfile] = {}
        for run in self.runs:
            noise = found.code_lines_noise(run.lines_region, run.rung.batch)
            regions[str(run.region)] = replace(
                found.region(run.region, run.ios),
                lines=found.lines(run.lines_region, run.rung.batch),
                lines_noise={"code_kernel": noise},
            )
        if self.debug:
            lines = inline.Lines(self.debug, functions)
            for run in self.runs:
                counts = found.addresses(run.region, run.ios)
                regions[str(run.region)].source = inline.break_down(counts, lines, functions)
        return regions


def symbols_of(kallsyms: str, texts: Mapping[str, str], files: Mapping[str, bytes]) -> str:
    """The functions of the kernel and of the modules among the guest's *files*, as /proc/kallsyms
    lists them. It was read before these modules were loaded; *texts* say where they are."""
    lines = [line for line in kallsyms.splitlines(keepends=True) if line.split(" ", 2)[1] in "tTwW"]
    for name, data in modules_of(files).items():
        lines += modules.kallsyms(name, data, texts)
    return "".join(lines)


def _unpack(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode(errors="replace")


def results(
    name: str,
    release: str,
    boots: Sequence[Counted],
    *,
    profile: bool,
) -> list[ExactRecord]:
    """The records of the runs that were carried out in *boots* of a kernel; with profiles if
    *profile* says so."""
    texts = [boot.records() for boot in boots]
    counts = [boot.run_counts() for boot in boots]
    runs = boots[0].runs
    found = []
    for run in runs:
        reports = [report.read(text[f"run.{run.region}"]) for text in texts]
        counted = [boot[str(run.region)] for boot in counts]
        for one, other in zip(reports, counted, strict=True):
            figures.check_rounds(run, one, other.rounds)
        found.append(figures.figure(name, release, run, reports, counted))
    if not profile:
        return found
    # The profile is of the boot with the median figure: for most rungs, of the first.
    numbers = {record.profile_boot: None for record in found}
    profiles = {number: replace(boots[number], full=True).profiles() for number in numbers}
    for run, record in zip(runs, found, strict=True):
        number = record.profile_boot
        record.profile = profiles[number][str(run.region)]
        record.profile.long_run = counts[number][str(run.region)].long.functions
    return found
