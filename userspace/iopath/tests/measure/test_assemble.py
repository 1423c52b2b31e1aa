# SPDX-License-Identifier: GPL-2.0
"""What is computed from a guest's output."""

import gzip
import json
from dataclasses import fields
from pathlib import Path

import pytest

from helpers.counted import HEADER
from iopath.base.programs import guest_program
from iopath.counts.pathcount import CountedRound
from iopath.counts.symbols import of_kernel
from iopath.measure.assemble import Counted, results, symbols_of
from iopath.measure.rounds import RunCounts
from iopath.results.layers import Layers
from iopath.results.model import Misses
from iopath.rungs.builtin import select
from iopath.rungs.runs import DRAIN, FLAT_ROUNDS, LONG, Run

RUN = Run(1, select(["dio.pread"])[0], "read", 4096)
TEXT = 0xFFFFFFFF81000000
NAMES = ("path", "fault", "asm_exc_page_fault")
TASK, FAULT = 0, 1  # contexts


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
        flat(RUN.region | FLAT_ROUNDS, [[0, 10, TASK, 9], [1, 10, FAULT, 1]], faults=1)
        | {"each": [[50, 3, 0, []], [50, 0, 1, [[FAULT, 1]]]]},
        flat(LONG, []),
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


def counted(entry: Path, *, checks: bool = False) -> RunCounts:
    files = {"bin/ioloop": guest_program("ioloop").read_bytes()}
    first = Counted(entry, [RUN], files, Layers())
    found = Counted(entry, [RUN], files, Layers(), first=lambda: first) if checks else first
    return found.run_counts[RUN.region]


def test_the_rounds_of_a_boot_that_checks(entry: Path) -> None:
    """They are counted flat. An exception belongs to the path, an interrupt does not."""
    found = counted(entry, checks=True)
    assert found.rounds == [CountedRound(50, 3, True, 0), CountedRound(50, 0, True, 1)]
    assert (found.long, found.events) == (None, {})
    text = gzip.decompress((entry / "kallsyms.gz").read_bytes()).replace(NAMES[2].encode(), b"irq")
    (entry / "kallsyms.gz").write_bytes(gzip.compress(text))
    assert [part.quiet for part in counted(entry, checks=True).rounds] == [True, False]


def test_the_rounds_of_the_first_boot(entry: Path) -> None:
    """Those that are counted fully come first: they are of the first layouts."""
    counts = [part.instructions for part in counted(entry).rounds]
    assert counts == [100, 200, 50, 50]


def test_the_functions_of_a_kernel_are_read_once(entry: Path) -> None:
    """All its guests have the same, also those that load other modules."""
    kallsyms = (entry / "kallsyms.gz").read_bytes()
    loaded = {"jited.x": f"{TEXT + 64 * 9:x} t bpf_prog_0123456789abcdef_x\t[bpf]\n"}
    before = of_kernel.cache_info()
    one, other = (symbols_of(bytes(bytearray(kallsyms)), texts, {}) for texts in ({}, loaded))
    after = of_kernel.cache_info()
    assert after.hits > before.hits and after.misses <= before.misses + 1
    assert other.find(TEXT + 64 * 9).name == "bpf_prog_x" != one.find(TEXT + 64 * 9).name
    assert one.find(TEXT).name == NAMES[0]
    assert one.starts({NAMES[0], NAMES[1]}) is one.starts({NAMES[1], NAMES[0]})


def test_the_long_run_has_its_faults(entry: Path) -> None:
    assert counted(entry).long.mean == 20


def test_the_model_is_of_the_round_that_misses_least(entry: Path) -> None:
    """It is the round with the fewest warm misses among those without an interrupt. Without a
    modelled round there is no model."""

    def states(warm: int, cold: int) -> dict:
        names = [one.name for one in fields(Misses)]
        return {"warm": dict.fromkeys(names, warm), "cold": dict.fromkeys(names, cold)}

    assert counted(entry).model is None
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
    found = counted(entry).model
    assert found
    assert (found.warm.l1d, found.cold.l1d) == (3.0, 7.0)


def test_a_run_without_a_quiet_round_is_left_out(entry: Path) -> None:
    """The other runs of its guest have their figures."""
    counts = gzip.decompress((entry / "counts.gz").read_bytes()).decode().splitlines()
    short = f'"round", "region": {RUN.lines_region},'
    texts = [
        line.replace('"quiet": true', '"quiet": false') if short in line else line
        for line in counts
    ]
    (entry / "counts.gz").write_bytes(gzip.compress("\n".join(texts).encode()))
    records = json.loads((entry / "records.json").read_text())
    for part in RUN.parts(checks=False):
        records[part.name] = json.dumps(report(100))
    (entry / "records.json").write_text(json.dumps(records))
    files = {"bin/ioloop": guest_program("ioloop").read_bytes()}
    boot = Counted(entry, [RUN], files, Layers(), full=True)
    assert boot.run_counts == boot.profiles == {}
    found, notes = results("debian:6.1", "6.1.0", [boot], profile=True)
    assert found == {}
    assert notes == ["dio.pread read: each of its rounds that counts lines was interrupted"]
