# SPDX-License-Identifier: GPL-2.0
"""Shared lines of the commits of a series: the table, the letter, the JSON and the gate."""

import io
import json
import re
from copy import deepcopy
from typing import Any

from examples import BOOTS, a_record, a_result
from rich.console import Console
from shared_lines import a_boot, a_line, merged

from iopath.compare import compare, shared_writes
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import ExactResult
from iopath.studies import series

RUNG = "dio.pread"
LOCK = a_line("bios_submitted", locked=True, by="submit_bio")


def a_commit(name: str, lines: list[dict[str, Any]], locked: int) -> ExactResult:
    record = a_record(name, RUNG, "read", 4096)
    record["counts"]["locked"] = [float(locked)] * BOOTS
    record |= {"cpus": 2, "sharing": merged([a_boot(lines)] * BOOTS, RUNG)}
    return result.parse(a_result([record]))


def entries(*commits: ExactResult) -> list[series.Entry]:
    """Commits, each compared with the one before."""
    found = [series.Entry("one", "commit one", result=commits[0])]
    for number, one in enumerate(commits[1:]):
        before, (name,) = found[-1].commit, one.names
        whole = compare.join([(before, commits[number]), (name, one)])
        found.append(
            series.Entry(
                name, f"commit {name}", "", before, one, compare.compare(whole, Layers()), whole,
                shared_writes.written(whole),
            )
        )  # fmt: skip
    return found


def the_series() -> list[series.Entry]:
    """The second commit adds a locked write to a line of its own, the third one does nothing."""
    return entries(a_commit("one", [], 3), a_commit("two", [LOCK], 4), a_commit("three", [LOCK], 4))


def test_a_new_shared_line_is_in_the_table() -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    series.show(the_series(), console, every=False)
    said = console.export_text()
    assert said.startswith(
        "0 of 2 commits change the path; 1 changes other counts; 1 changes what CPUs share.\n"
    )
    _, head, _, rung, shared = said.rstrip().splitlines()
    assert head.split() == [
        "commit", "subject", "rung", "path", "%", "costly", "CPUs", "share", "writes", "locked",
        "functions",
    ]  # fmt: skip
    assert "locked +1" in rung
    assert shared.split() == ["files", "+1.00", "+1.00", "new", "bios_submitted:", "submit_bio"]


def test_a_new_shared_line_is_in_the_letter_and_the_json() -> None:
    text = series.markdown(the_series(), "iopath series A..B --cpus 2", every=False)
    assert "    dio.pread read: +0.00 (+0.00 %); locked +1\n" in text
    assert "    CPUs share files: writes +1.00, locked +1.00\n    new bios_submitted: " in text
    assert "commit three" not in text
    (_, two, three) = json.loads(series.dump(the_series()))["commits"]
    (rung,) = two["rungs"]
    assert rung["costly"] == {"locked": 1.0}
    (shared,) = rung["shared"]
    assert shared == {
        "arrangements": ["files"], "writes": 1.0, "locked": 1.0, "lines": ["new bios_submitted"],
    }  # fmt: skip
    assert three["rungs"][0]["shared"] == []
    assert (rung["before"], rung["after"]) == (601.93, 601.93)


def test_the_gate_judges_each_commit() -> None:
    grown, unknown = series.judged(the_series(), 1)
    assert unknown == []
    assert all(" two " in one and " than one: " in one for one in grown)
    assert any("takes more than one: locked 33.33 % (1 % allowed)" in one for one in grown)
    assert any("files, bios_submitted, writes 1.00 (1 % allowed)" in one for one in grown)
    failed = series.Entry("four", "commit four", error="does not build: x.c:1")
    assert series.judged([*the_series()[:1], failed], 1) == ([], ["four: not measured"])
    few = entries(*(a_commit(name, [], 3) for name in ("one", "two")))
    assert series.judged(few, 1) == ([], [])


def test_arrangements_that_differ_alike_are_one() -> None:
    (changes,) = shared_writes.written(_whole([LOCK], [LOCK])).values()
    assert [one.arrangements for one in changes] == [("files", "threads")]
    (changes,) = shared_writes.written(_whole([LOCK], [])).values()
    assert [one.arrangements for one in changes] == [("files",)]


def _whole(*written: list[dict[str, Any]]) -> ExactResult:
    """Two commits on two arrangements, of which the second has the lines *written* in each."""
    records = []
    for name in ("one", "two"):
        record = a_record(name, RUNG, "read", 4096) | {"cpus": 2}
        parts = []
        for arrangement, lines in zip(("files", "threads"), written, strict=True):
            own = deepcopy(merged([a_boot(lines if name == "two" else [])] * BOOTS, RUNG))
            for part in (*own["lines"], *own["figures"]):
                part["arrangement"] = arrangement
            own["arrangements"] = [{**own["arrangements"][0], "name": arrangement}]
            parts.append(own)
        record["sharing"] = {key: [one for part in parts for one in part[key]] for key in parts[0]}
        records.append(record)
    return result.parse(a_result(records))


def test_sizes_are_told_apart() -> None:
    """Two sizes of a rung are two rows of the table and of the letter."""

    def sizes(name: str, more: float) -> ExactResult:
        records = [a_record(name, RUNG, "read", size) for size in (4096, 65536)]
        for record in records:
            record["boots"] = [figure + more for figure in record["boots"]]
            record["instructions_per_io"] += more
        return result.parse(a_result(records))

    found = entries(sizes("one", 0), sizes("two", 100))
    console = Console(width=200, record=True, file=io.StringIO())
    series.show(found, console, every=False)
    said = console.export_text() + series.markdown(found, "", every=False)
    for size in ("4 KiB", "64 KiB"):
        assert len(re.findall(rf"\b{RUNG} read {size}\b", said)) == 2
    _, unknown = series.judged(entries(sizes("one", 0), sizes("two", 0)), 0)
    assert not any(RUNG in text for text in unknown)
