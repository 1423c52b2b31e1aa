# SPDX-License-Identifier: GPL-2.0
"""Make the results of a kernel from what its guests recorded and counted."""

import gzip
import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from iopath import figures, inline, longrun, pathcount, process, symbols
from iopath.arch import named
from iopath.cache import Cache, digest_file
from iopath.jobs import Recorded
from iopath.layers import Layers
from iopath.pathcount import BootProfile
from iopath.plan import Run
from iopath.programs import guest_program
from iopath.symbols import Symbols


def keep(recorded: Recorded, folder: Path) -> None:
    """Write what a job gave to its entry in the cache."""
    (folder / "kallsyms.gz").write_bytes(recorded.symbols)
    (folder / "counts.gz").write_bytes(recorded.counts)
    (folder / "records.json").write_text(json.dumps(recorded.texts))


@dataclass(frozen=True)
class Counted:
    """What the guest that carried out *runs* left in its *entry* of the cache."""

    entry: Path
    runs: Sequence[Run]
    cache: Cache
    layers: Layers

    def records(self) -> dict[str, Any]:
        """The programs' reports, and the texts of files."""
        texts = json.loads((self.entry / "records.json").read_text())
        for name, text in texts.items():
            if name.startswith(("run.", "long.", "calibrate")):
                texts[name] = json.loads(text)
        figures.check_calibration(texts["calibrate"])
        return texts

    def long_runs(self) -> dict[str, dict[str, Any]]:
        """The figures of the long runs, and cache lines, by region."""

        def make(folder: Path) -> None:
            found, functions = self._read()
            records = self.records()
            longs = longrun.LongRuns(found, functions, self.layers)
            regions = {
                str(run.region): longs.figures(run, figures.clock(records[f"long.{run.region}"]))
                | {"lines": found.lines(run.lines_region, run.rung.batch)}
                | ({"rounds": found.rounds(run.region)} if run.rung.interrupts else {})
                for run in self.runs
            }
            (folder / "long.json").write_text(json.dumps(regions))

        inputs = {
            "boot": self.entry.name,
            "layers": self.layers.digest,
            "code": _code(longrun),
            "ios": {str(run.region): (run.long_ios, run.rung.batch) for run in self.runs},
        }
        return json.loads((self.cache.entry("long", inputs, make) / "long.json").read_text())

    def profiles(self, debug: Path | None) -> dict[str, dict[str, Any]]:
        """The profiles by region; with source lines if there is *debug* information."""

        def make(folder: Path) -> None:
            found, functions = self._read()
            regions = {
                str(run.region): found.region(run.region, run.ios)
                | {
                    "lines": found.lines(run.lines_region, run.rung.batch),
                    "code_lines_noise": found.code_lines_noise(run.lines_region, run.rung.batch),
                }
                for run in self.runs
            }
            if debug:
                lines = inline.Lines(debug, functions)
                for run in self.runs:
                    counts = found.addresses(run.region, run.ios)
                    regions[str(run.region)]["source"] = inline.break_down(counts, lines, functions)
            (folder / "profile.json").write_text(json.dumps(regions))

        inputs = {
            "boot": self.entry.name,
            "layers": self.layers.digest,
            "code": _code(inline),
            "debug": str(debug or ""),
            "ios": {str(run.region): run.ios for run in self.runs},
        }
        return json.loads((self.cache.entry("profile", inputs, make) / "profile.json").read_text())

    def _read(self) -> tuple[BootProfile, Symbols]:
        """What the plugin counted, and the functions of the kernel and the program."""
        lines = _unpack(self.entry / "counts.gz").splitlines()
        arch = named(json.loads(lines[0])["target"])
        program = self.runs[0].rung.program or guest_program("ioloop", arch)
        names = subprocess.run(
            [process.need("nm", "binutils"), program],
            capture_output=True, text=True, check=False,
        ).stdout  # fmt: skip
        functions = Symbols(_unpack(self.entry / "kallsyms.gz"), names)
        return BootProfile(lines, functions, self.layers), functions


def _code(module: ModuleType) -> list[str]:
    """The digests of the code that counts are read by."""
    return [digest_file(Path(part.__file__ or "")) for part in (module, pathcount, symbols)]


def _unpack(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode(errors="replace")


def results(
    name: str,
    release: str,
    boots: Sequence[Counted],
    profiled: Callable[[int], Counted] | None = None,
    debug: Path | None = None,
) -> list[dict[str, Any]]:
    """The records of the runs that were carried out in *boots* of a kernel. With *profiled*, which
    gives the profiled guest of a boot, they have profiles."""
    texts = [boot.records() for boot in boots]
    longs = [boot.long_runs() for boot in boots]
    runs = boots[0].runs
    found = [
        figures.figure(
            name, release, run,
            [text[f"run.{run.region}"] for text in texts],
            [long[str(run.region)] for long in longs],
        )
        for run in runs
    ]  # fmt: skip
    if not profiled:
        return found
    # The profile is of the boot that the figure is of: of the first, for most rungs.
    numbers = {record["profile_boot"] for record in found}
    profiles = {number: profiled(number).profiles(debug) for number in numbers}
    for run, record in zip(runs, found, strict=True):
        number = record["profile_boot"]
        profile = record["profile"] = profiles[number][str(run.region)]
        profile["long_run"] = longs[number][str(run.region)]["functions"]
        profile["lines_noise"] = pathcount.lines_noise(
            profile.pop("code_lines_noise"), [long[str(run.region)]["lines"] for long in longs]
        )
    return found
