# SPDX-License-Identifier: GPL-2.0
"""Data computed from a guest's output are kept, and computed again when any code has changed."""

import gzip
import json
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from counted import HEADER

import iopath
from iopath.base.cache import Cache
from iopath.base.programs import guest_program
from iopath.base.sources import source_root
from iopath.measure.assemble import Counted
from iopath.results.layers import Layers
from iopath.results.model import Misses, Model
from iopath.rungs.builtin import select
from iopath.rungs.runs import DRAIN, LONG, Run

RUN = Run(1, select(["dio.pread"])[0], "read", 4096)
TEXT = 0xFFFFFFFF81000000
NAMES = ("path", "fault", "asm_exc_page_fault")
TASK, FAULT = 0, 1  # contexts

# Prints the mean of the long run, by the code in the folder that it is given.
PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from iopath.base.cache import Cache
from iopath.measure.assemble import Counted
from iopath.results.layers import Layers
from iopath.rungs.builtin import select
from iopath.rungs.runs import Run
entry, cache, program = map(Path, sys.argv[2:])
run = Run(1, select(["dio.pread"])[0], "read", 4096)
files = {"bin/ioloop": program.read_bytes()}
(found,) = Counted(entry, [run], files, Cache(cache), Layers()).run_counts().values()
print(found.long.mean)
"""


def flat(number: int, rows: list[list[int]], faults: int = 0) -> dict:
    entry = f"{TEXT + 64 * 2:#x}"
    in_faults = sum(executed * times for _, executed, context, times in rows if context == FAULT)
    return {
        "type": "flat", "region": number, "rounds": 1, "switches": 0, "iterations": 0,
        "entries": [[FAULT, entry, faults]] if faults else [], "counts": rows,
        "parts": [[-1, "e", entry, "0x0", in_faults]],
    }  # fmt: skip


def report(tsc: int) -> dict:
    return {"jobs": [{"rounds": [{"ios": 1, "ns": 0, "tsc": tsc, "interrupts": 0}]}]}


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    """The output of a guest. In its long run each I/O executes 10 instructions, and 10 in a page
    fault."""
    folder = tmp_path / "entry"
    folder.mkdir()
    ios = RUN.long_ios
    places = {"code_user": 1, "code_kernel": 1, "data_user": 1, "data_kernel": 1}
    short = {"lines": places, "pages": places, "taken": 1}
    counted = {"instructions": 1, "iterations": 0, "quiet": True, "faults": 0,
               "switches": 0, "unmatched": 0}  # fmt: skip
    counts = [
        HEADER,
        *(
            {"type": "block", "block": number, "addr": f"{TEXT + 64 * number:#x}",
             "lens": [4] * 10, "kinds": "." * 10}
            for number in range(len(NAMES))
        ),
        {"type": "region", "region": RUN.region, "median_round": 0},
        {"type": "round", "region": RUN.region, **counted, "instructions": 100},
        {"type": "round", "region": RUN.region, **counted, "instructions": 200},
        {"type": "region", "region": RUN.lines_region, "median_round": 0},
        {"type": "round", "region": RUN.lines_region, **counted, **short},
        flat(LONG, []),
        flat(RUN.idle_region, []),
        flat(RUN.idle_region | DRAIN, []),
        flat(RUN.long_region, [[0, 10, TASK, ios], [1, 10, FAULT, ios]], faults=ios),
        flat(RUN.long_region | DRAIN, []),
        {"type": "end", "errors": []},
    ]  # fmt: skip
    texts = {
        "calibrate": json.dumps(report(100) | {"expected_instructions": 100}),
        f"long.{RUN.region}": json.dumps(report(20 * ios)),
    }
    symbols = "".join(f"{TEXT + 64 * number:x} T {name}\n" for number, name in enumerate(NAMES))
    (folder / "records.json").write_text(json.dumps(texts))
    (folder / "kallsyms.gz").write_bytes(gzip.compress(symbols.encode()))
    (folder / "counts.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, counts)).encode()))
    return folder


def test_changed_code_is_not_served_what_other_code_made(entry: Path, tmp_path: Path) -> None:
    """The changed module is one that assemble does not import. The first code gets its own entry
    again."""
    package = Path(iopath.__file__).parent
    own, changed = tmp_path / "own", tmp_path / "changed"
    for folder in (own, changed):
        shutil.copytree(package, folder / "iopath", ignore=shutil.ignore_patterns("__pycache__"))
    arch = changed / "iopath/base/arch.py"
    text = arch.read_text().replace("if self.exceptions:", "if self.exceptions and False:")
    assert text != arch.read_text()
    arch.write_text(text)

    def mean(folder: Path) -> float:
        words = [sys.executable, "-c", PROGRAM, folder, entry, tmp_path / "cache"]
        done = subprocess.run(
            [*words, guest_program("ioloop")], capture_output=True, text=True, check=False,
            env={"IOPATH_SOURCE": str(source_root())},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return float(done.stdout)

    assert [mean(folder) for folder in (own, changed, own)] == [20, 10, 20]
    assert len(list((tmp_path / "cache/counted").iterdir())) == 2


def test_the_model_is_of_the_round_that_misses_least(entry: Path, tmp_path: Path) -> None:
    """It is the round with the fewest warm misses among those without an interrupt. Without a
    modelled round there is no model."""
    files = {"bin/ioloop": guest_program("ioloop").read_bytes()}

    def model() -> Model | None:
        counted = Counted(entry, [RUN], files, Cache(tmp_path / "cache"), Layers())
        return counted.run_counts()[str(RUN.region)].model

    def states(warm: int, cold: int) -> dict:
        names = [one.name for one in fields(Misses)]
        return {"warm": dict.fromkeys(names, warm), "cold": dict.fromkeys(names, cold)}

    assert model() is None
    counts = gzip.decompress((entry / "counts.gz").read_bytes()).decode().splitlines()
    (at,) = (
        n for n, line in enumerate(counts) if f'"round", "region": {RUN.lines_region},' in line
    )
    short = json.loads(counts[at])
    counts[at : at + 1] = [
        json.dumps(short | {"model": states(*figures), "quiet": quiet})
        for figures, quiet in (((9, 9), True), ((3, 7), True), ((4, 5), True), ((1, 1), False))
    ]
    (entry / "counts.gz").write_bytes(gzip.compress("\n".join(counts).encode()))
    found = model()
    assert found
    assert (found.warm.l1d, found.cold.l1d) == (3.0, 7.0)


def test_a_guest_that_ran_again_is_not_served_what_the_first_counted(
    entry: Path, tmp_path: Path
) -> None:
    """Its entry has the same name, but a tick may have come in another round."""

    def instructions() -> list[int]:
        files = {"bin/ioloop": guest_program("ioloop").read_bytes()}
        counted = Counted(entry, [RUN], files, Cache(tmp_path / "cache"), Layers())
        return [part.instructions for part in counted.run_counts()[str(RUN.region)].rounds]

    assert instructions() == [100, 200]
    counts = gzip.decompress((entry / "counts.gz").read_bytes()).decode().splitlines()
    of_run = [at for at, line in enumerate(counts) if f'"round", "region": {RUN.region},' in line]
    counts[of_run[0]], counts[of_run[1]] = counts[of_run[1]], counts[of_run[0]]
    (entry / "counts.gz").write_bytes(gzip.compress("\n".join(counts).encode()))
    assert instructions() == [200, 100]
