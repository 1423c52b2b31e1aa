# SPDX-License-Identifier: GPL-2.0
"""What compare says about results, and when its gates open: on made-up results."""

import copy
import io
import itertools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Command
from counted import HEADER
from examples import a_record, a_result
from pairs import LOCKED, PLAIN, Row, change, compared, functions, long_run, profiled, row, two
from rich.console import Console

from iopath.base.errors import UsageError
from iopath.compare import labels as labelled
from iopath.compare import limits
from iopath.compare.attribution import relayer
from iopath.compare.changes import percent
from iopath.compare.compare import join
from iopath.compare.exact import compare, incomparable
from iopath.compare.labels import brief, labels
from iopath.counts.output import read
from iopath.counts.pathcount import BootProfile
from iopath.counts.symbols import Symbols
from iopath.results.kernelinfo import compiler, options
from iopath.results.layers import Layers
from iopath.results.metrics import METRICS, REQUESTS
from iopath.results.profiles import COSTLY
from iopath.results.result import Kernel, parse
from iopath.results.symbol import Symbol
from iopath.rungs.builtin import RUNGS, unknown
from iopath.rungs.rung import Module, Rung
from iopath.show import charts, page, terminal, texts
from iopath.show.facts import facts
from iopath.show.markdown import markdown


def shown(whole: dict[str, Any]) -> list[str]:
    """What compare prints, a single space between words."""
    console = Console(file=io.StringIO(), width=200, highlight=False)
    terminal.show_all(compared(whole), console)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


# Costs are shown in the text.


def test_a_locked_increment_is_seen() -> None:
    """One more instruction, which costs twenty: total, metric and function show it."""
    whole = two([row("one", 501.0, locked=3.0), *PLAIN[1:]])
    lines = shown(whole)
    assert lines[lines.index("old to new: what else differs per I/O") + 1] == "rung size locked"
    assert "dio.pread read 4 KiB +1.00" in lines
    assert "one block core 500.00 501.00 +1.00 locked +1.00" in lines
    assert change(whole)["metrics"]["locked"] == {
        "before": 2.0, "after": 3.0, "difference": 1.0, "percent": 50.0, "noise": 0.0,
        "verdict": "more", "most": 50.0,
    }  # fmt: skip


def test_a_locked_instruction_instead_of_a_plain_one_is_seen() -> None:
    lines = shown(two([row("one", 500.0, locked=3.0), *PLAIN[1:]]))
    assert any(line.endswith("+0.00 (+0.00 %) 0.00 same in sum") for line in lines)
    assert "one block core 500.00 500.00 +0.00 locked +1.00" in lines


def test_changes_that_cancel_are_seen() -> None:
    whole = two([row("one", 900.0, locked=2.0), row("two", 300.0, reads=30.0), row("three", 200.0)])
    lines = shown(whole)
    assert any(line.endswith("+0.00 (+0.00 %) 0.00 same in sum") for line in lines)
    for line in ("one block core 500.00 900.00 +400.00", "two block core 600.00 300.00 -300.00",
                 "three block core 300.00 200.00 -100.00"):  # fmt: skip
        assert line in lines
    assert "all +0.00" in lines
    text = markdown(parse(whole), compared(whole))
    assert "| one      | 500.00 | 900.00 |    +400.00 |      |" in text.splitlines()
    assert "same in sum" in page.render(parse(whole), compared(whole))


def test_a_cache_line_more_is_seen() -> None:
    """Static data may lie elsewhere in another build, so more than three lines must differ."""
    assert not any("what else differs" in line for line in shown(two(PLAIN, data_kernel=63.0)))
    whole = two([row("one", 501.0, locked=2.0), *PLAIN[1:]], data_kernel=64.0)
    assert change(whole)["metrics"]["data lines"]["verdict"] == "more"
    assert "data lines +4.00 ±0.00" in markdown(parse(whole), compared(whole))


def test_code_lines_carry_the_noise_of_their_layout() -> None:
    """Each side may vary by 10: 14 is noise, 15 is a difference."""
    for lines, verdict in ((104.5, "same"), (105.5, "more"), (76.5, "same"), (75.5, "fewer")):
        found = change(two(PLAIN, code_kernel=lines))["metrics"]["code lines"]
        assert (found["verdict"], round(found["noise"], 2)) == (verdict, 14.14)


def test_where_nothing_differs_nothing_is_listed() -> None:
    lines = shown(two(PLAIN))
    assert not any("what else differs" in line or "instructions per I/O" in line for line in lines)
    assert any(line.endswith("+0.00 (+0.00 %) 0.00 same") for line in lines)


def test_each_metric_has_the_noise_of_its_own_boots() -> None:
    """A locked instruction in each boot is found even if the boots' instructions differ."""
    whole = two([row("one", 501.0, locked=3.0), *PLAIN[1:]])
    for record in whole["results"]:
        figure = record["instructions_per_io"]
        record["boots"] = [figure, figure + 1.5, *[figure] * 5]
    found = change(whole)
    assert (found["verdict"], found["metrics"]["locked"]["verdict"]) == ("same", "more")
    whole["results"][1]["counts"]["locked"] = [2.0, *[3.0] * 6]
    found = change(whole)["metrics"]["locked"]
    assert (found["verdict"], found["reason"]) == (
        "unknown", "boots differ: 2.00 in 7 boots; then 3.00 in 6 of 7 boots, 2.00 in 1",
    )  # fmt: skip


def test_without_enough_boots_metrics_have_no_verdict() -> None:
    whole = two([row("one", 501.0, locked=3.0), *PLAIN[1:]])
    record = whole["results"][0]
    for boots in ("boots", "mean_boots", "with_deferred_boots"):
        record[boots] = record[boots][:4]
    record["counts"] = {name: boots[:4] for name, boots in record["counts"].items()}
    found = change(whole)["metrics"]
    assert {part["verdict"] for part in found.values()} == {"unknown"}
    assert {part["reason"] for part in found.values()} == {"4 boots are too few: 5 needed"}


def test_lines_within_their_noise_are_shown_beside_something_else() -> None:
    after = [row("one", 501.0, locked=3.0), *PLAIN[1:]]
    assert "dio.pread read 4 KiB +1.00 +2.00 ±14.14" in shown(two(after, code_kernel=92.5))
    assert not any("what else differs" in line for line in shown(two(PLAIN, code_kernel=92.5)))


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("ios_per_round", 200, "ios_per_round '100' and '200'"),
        ("batch", 32, "batch '1' and '32'"),
        ("long_run_ios", 1200, "long_run_ios '12000' and '1200'"),
        ("drain_ms", 100, "drain_ms '12000' and '100'"),
        ("command", ["/bin/ioloop", "--hipri"], "command '' and '--hipri'"),
    ],
)
def test_rungs_that_were_run_differently_are_not_compared(
    listed: Command, tmp_path: Path, field: str, value: object, said: str
) -> None:
    paths = [tmp_path / "old.json", tmp_path / "new.json"]
    for path in paths:
        whole = a_result([profiled(path.stem, PLAIN)])
        if path.stem == "new":
            whole["results"][0][field] = value
        path.write_text(json.dumps(whole))
    assert listed.fails("compare", *paths) == (
        "iopath: more than the kernel differs: dio.pread read of 4096 bytes:"
        f" {said} (old.json, new.json) (--anyway compares them regardless)"
    )
    assert listed.run("compare", *paths, "--anyway").returncode == 0


def test_a_clock_and_a_profile_that_contradict_each_other_are_refused() -> None:
    one, other = (a_result([profiled(name, PLAIN)]) for name in ("old", "new"))
    other["results"][0]["boots"] = [boot + 100 for boot in other["results"][0]["boots"]]
    assert incomparable([("old.json", parse(one)), ("new.json", parse(other))]) == [
        "dio.pread read: the clock counts 1,500.07 instructions per I/O, the profile 1,400.00"
        " (new.json)"
    ]


def test_files_of_different_boots_are_comparable() -> None:
    """Fewer boots give no verdict, as always."""
    one, other = (a_result([profiled(name, PLAIN)]) for name in ("old", "new"))
    record = other["results"][0]
    record |= {"boots": record["boots"][:3], "rounds": 3 * one["results"][0]["rounds"] // 7}
    one["results"][0]["rounds"] -= one["results"][0]["rounds"] % 7
    record["rounds"] = 3 * one["results"][0]["rounds"] // 7
    assert incomparable([("old.json", parse(one)), ("new.json", parse(other))]) == []
    whole = a_result([*one["results"], *other["results"]])
    assert change(whole)["reason"] == "3 boots are too few: 5 needed"


DIGESTS = f"{40 * 'a'!r} and {40 * 'b'!r}"


def test_another_program_or_plugin_is_another_measurement() -> None:
    one, other = (a_result([profiled(name, PLAIN)]) for name in ("old", "new"))
    parts = [("old.json", parse(one)), ("new.json", parse(other))]
    assert incomparable(parts) == []
    for whole, digest in ((one, 64 * "a"), (other, 64 * "b")):
        whole["results"][0]["scenario"] = digest
        whole["programs"]["pathcount"] = digest
    parts = [("old.json", parse(one)), ("new.json", parse(other))]
    assert incomparable(parts) == [
        f"programs: pathcount {DIGESTS} (old.json, new.json)",
        f"dio.pread read of 4096 bytes: program, files, modules and steps {DIGESTS}"
        " (old.json, new.json)",
    ]
    del one["results"][0]["scenario"]  # an older file lacks it
    parts[0] = "old.json", parse(one)
    assert len(incomparable(parts)) == 1


def test_a_rung_is_known_by_what_it_is_made_of(tmp_path: Path) -> None:
    program = tmp_path / "pipe"
    program.write_text("one")
    rung = Rung("pipe", "a pipe", program=program)
    known = rung.digest
    assert replace(rung, about="something else").digest == known
    assert replace(rung, setup=("mkdir /mnt",)).digest != known
    assert replace(rung, modules=(Module("blknull", (("nr_devices", "1"),)),)).digest != known
    program.write_text("other")
    assert rung.digest != known
    assert replace(rung, files=(("/bin/mkfs", program),)).digest != rung.digest


def test_incomparable() -> None:
    one, other = (a_result([profiled(name, PLAIN)]) for name in ("old", "new"))
    other["results"][0]["batch"] = 32
    other["kernels"][0]["coherent"] = False
    other["kernels"][0]["arch"] = "aarch64"
    other["qemu"]["version"] = "8.0"
    assert incomparable([("old.json", parse(one)), ("new.json", parse(other))]) == [
        "architecture: x86_64 and aarch64 (old.json, new.json)",
        "qemu: version '7.2' and '8.0' (old.json, new.json)",
        "coherent (old.json, new.json)",
        "dio.pread read of 4096 bytes: batch '1' and '32' (old.json, new.json)",
    ]


def test_the_number_of_a_region_is_no_difference() -> None:
    one, other = (a_result([profiled(name, PLAIN)]) for name in ("old", "new"))
    one["results"][0]["command"] = ["/bin/ioloop", "--region=1"]
    other["results"][0]["command"] = ["/bin/ioloop", "--region=7"]
    assert incomparable([("old.json", parse(one)), ("new.json", parse(other))]) == []


@pytest.mark.parametrize(("mean", "later", "figure"), [(50.0, 0.0, "mean"), (0.0, 1150.0, "total")])
def test_what_comes_seldom_or_later_is_seen_and_fails_the_gate(
    mean: float, later: float, figure: str
) -> None:
    whole = two(PLAIN)
    long_run(whole, "old", 0, 0, {})
    long_run(whole, "new", mean, later, {"rare": mean + later})
    found = change(whole)
    assert found["verdict"] == "same"
    assert found["metrics"][figure]["verdict"] == "more"
    assert bool(found["findings"]) == bool(mean)
    lines = shown(whole)
    added = f"+{mean + later:,.2f}"
    assert f"dio.pread read: old to new, {figure}, {added} instructions per I/O" in lines
    assert f"rare {added}" in lines
    said = regressions(compared(whole), 1, [])
    assert any(f"{figure} " in text for text in said)
    assert regressions(compared(whole), 100, []) == []


def test_a_long_run_that_says_what_the_median_says_is_not_repeated() -> None:
    whole = two([row("one", 540.0, locked=2.0), *PLAIN[1:]])
    found = change(whole)
    assert found["metrics"]["mean"]["verdict"] == "more"
    assert not found["metrics"]["mean"]["telling"]
    assert len(regressions(compared(whole), 1, [])) == 1
    assert not any(" mean" in line for line in shown(whole) if line.startswith("dio.pread"))


def test_a_gate_does_not_pass_without_a_long_run() -> None:
    whole = two(PLAIN)
    for name in ("mean", "mean_boots", "with_deferred", "with_deferred_boots"):
        del whole["results"][0][name]
    said = "dio.pread read mean, total: a result does not have it: measure again"
    assert unjudged(compared(whole), 1, []) == [said]


def test_the_noise_of_code_lines_is_what_their_layout_may_move() -> None:
    """A function of 64 bytes lies in one line or in two, depending on where it begins: in 1, 2, 2
    or 2, a variance of 3/16. A function of 16 bytes is always in one line."""
    start = 0xFFFFFFFF81000000
    symbols = Symbols(f"{start:x} T large\n{start + 64:x} T small\n")
    output = [
        HEADER,
        {"type": "block", "block": 1, "addr": f"{start:x}", "lens": [16] * 4, "kinds": "...."},
        {"type": "block", "block": 2, "addr": f"{start + 64:x}", "lens": [8], "kinds": "."},
        {"type": "region", "region": 1, "median_round": 0},
        *({"type": "node", "region": 1, "node": number, "parent": None, "addr": "0",
           "median": [[number, 4, 1, 0, 0]]} for number in (1, 2)),
        {"type": "end", "errors": []},
    ]  # fmt: skip
    found = BootProfile(read(map(json.dumps, output)), symbols, Layers())
    assert found.code_lines_noise(1, 1) == pytest.approx(4 * (3 / 16) ** 0.5, abs=1e-4)
    assert found.code_lines_noise(1, 10) == pytest.approx(0.4 * (3 / 16) ** 0.5, abs=1e-4)


# Instructions that cost far more than others.

STAMPED = [row("one", 500.0, locked=2.0, costly={"timestamps": 20.0}), *PLAIN[1:]]


def test_time_stamps_instead_of_other_instructions_are_seen(tmp_path: Path) -> None:
    """The same number of instructions, of which 20 read the time stamp: verdict, metric and
    function show it, and the gates close."""
    whole = two(STAMPED)
    lines = shown(whole)
    assert lines[0] == "old to new: dio.pread read takes the same in sum; timestamps +20."
    assert "one block core 500.00 500.00 +0.00 timestamps +20.00" in lines
    assert "rung size timestamps" in lines
    assert texts.top_mover(compared(whole).rungs[0].differences["new"]) == "timestamps +20"
    said = "dio.pread read: new takes more than old: timestamps 20.00 ({} % allowed)"
    assert regressions(compared(whole), 100, []) == [said.format(100)]
    found = regressions(compared(whole), None, limited(tmp_path, '"dio.pread timestamps" = 0'))
    assert found == [said.format(0)]
    assert regressions(compared(whole), None, limited(tmp_path, '"dio.pread fences" = 0')) == []
    gone = two(PLAIN, STAMPED)
    assert shown(gone)[0].endswith("takes the same in sum; timestamps -20.")
    assert regressions(compared(gone), 0, []) == []
    assert "one 500.00 500.00 +0.00 timestamps +20.00" in re.sub(
        r"[,| ]+", " ", markdown(parse(whole), compared(whole))
    )


def test_string_bytes_are_no_instructions() -> None:
    """They have a metric of their own."""
    whole = two([row("one", 500.0, locked=2.0, costly={"string_bytes": 4096.0}), *PLAIN[1:]])
    metrics = change(whole)["metrics"]
    assert metrics["string bytes"]["difference"] == 4096.0
    assert "one block core 500.00 500.00 +0.00 string bytes +4,096.00" in shown(whole)


def test_what_a_file_does_not_count_cannot_be_judged(tmp_path: Path) -> None:
    whole = two(STAMPED)
    del whole["results"][0]["counts"]["timestamps"]
    assert "timestamps" not in change(whole)["metrics"]
    said = "dio.pread read timestamps: a result does not have it: measure again"
    assert unjudged(compared(whole), 0, []) == [said]
    assert unjudged(compared(whole), None, limited(tmp_path, '"dio.pread timestamps" = 0')) == [
        said
    ]
    assert regressions(compared(whole), None, limited(tmp_path, '"dio.pread locked" = 0')) == []
    for record in whole["results"]:
        del record["counts"]
    (found,) = unjudged(compared(whole), 0, [])
    more = sum(metric.gated and metric not in REQUESTS for metric in METRICS) - 3 - 3
    assert found.startswith(f"dio.pread read locked, indirect, returns and {more} more: a result ")


def test_what_cannot_be_judged_for_one_reason_is_one_message() -> None:
    """It names three rows and three metrics."""
    whole = two(PLAIN)
    for record in whole["results"]:
        for name in [name for name in record if name.endswith("boots")]:
            record[name] = record[name][:1]
    names = ("dio.pread", "dio.uring", "raw.pread", "buf.pread", "null")
    whole["results"] = [{**record, "rung": name} for name in names for record in whole["results"]]
    (found,) = unjudged(compared(whole), 0, [])
    assert found == (
        "dio.pread read, dio.uring read, raw.pread read and 2 more instructions, mean, total:"
        " 1 boot is too few: 6 needed"
    )


def in_layouts(whole: dict[str, Any], more: float = 0.0, share: int = 16) -> dict[str, Any]:
    """The records have two boots of 16 layouts each. In *share* of them, the last kernel takes
    *more* instructions."""
    for record in whole["results"]:
        for name in [name for name in record if name.endswith("boots")]:
            record[name] = record[name][:2]
        record["counts"] = {name: boots[:2] for name, boots in record["counts"].items()}
        figure, by = record["boots"][0], more * (record is whole["results"][-1])
        record["layouts"] = [[figure + by] * share + [figure] * (16 - share)] * 2
    return whole


def test_two_boots_decide_what_has_layouts() -> None:
    same = compared(in_layouts(two(PLAIN)))
    assert same.wanted == {}
    assert (unjudged(same, 0, []), regressions(same, 0, [])) == ([], [])
    longer = compared(in_layouts(two(LOCKED)))
    assert longer.wanted == {}
    (found,) = regressions(longer, 0, [])
    assert "instructions 0.07 %" in found
    assert "locked 50.00 %" in found


def test_a_count_that_changes_where_the_path_does_not_takes_more_boots() -> None:
    other = [row("one", 500.0, locked=3.0), *PLAIN[1:]]
    found = compared(in_layouts(two(other)))
    assert found.wanted == {"dio.pread": 5}
    (text,) = unjudged(found, 0, [])
    assert text == "dio.pread read locked: 2 boots are too few: 5 needed"


@pytest.mark.parametrize(
    ("share", "said"), [(1, "30 of 32 layouts, 1,470.07 in 2"), (8, "16 of 32 layouts")]
)
def test_a_cost_of_some_layouts(share: int, said: str) -> None:
    """It is a difference, and in how many layouts is said."""
    found = compared(in_layouts(two(PLAIN), 70.0, share))
    (text,) = regressions(found, 0, [])
    assert text == "dio.pread read: new takes more than old: instructions 5.00 % (0 % allowed)"
    assert said in found.rungs[0].differences["new"].findings[0]


def test_costly_instructions_are_counted_by_function() -> None:
    """Those in the executed part of a block; for a repeated string instruction, the bytes. An iret
    serialises the CPU."""
    start = 0xFFFFFFFF81000000
    symbols = Symbols(f"{start:x} T one\n{start + 4:x} T other\n")
    output = [
        HEADER,
        {"type": "block", "block": 1, "addr": f"{start:x}", "lens": [1] * 8, "kinds": "TF.TiMPR"},
        {"type": "region", "region": 1, "median_round": 0},
        {"type": "round", "region": 1, "round": 0, "instructions": 34, "iterations": 0,
         "quiet": True, "faults": 0, "switches": 0, "unmatched": 0},
        {"type": "node", "region": 1, "node": 1, "parent": None, "addr": f"{start:x}",
         "median": [[1, 8, 3, 5, 5, 24], [1, 5, 2, 0, 0]]},
        {"type": "end", "errors": []},
    ]  # fmt: skip
    profile = BootProfile(read(map(json.dumps, output)), symbols, Layers()).region(1, 2)
    found = {part.name: part.costly for part in profile.functions}
    assert found == {
        "one": {"timestamps": 5.0, "fences": 2.5},
        "other": {"serialising": 2.5, "msrs": 1.5, "ports": 1.5, "string_bytes": 12.0},
    }
    assert profile.costly == {**found["one"], **found["other"]}
    assert list(profile.costly) == list(COSTLY)


def test_an_alias_joins_a_function_with_its_older_name() -> None:
    found = functions(
        two([row("gup_fast_fallback", 367.0)], [row("internal_get_user_pages_fast", 400.0)])
    )
    assert found == {"gup_fast_fallback": (-33.0, "was internal_get_user_pages_fast", "block core")}


def test_a_system_call_has_a_name_on_each_architecture() -> None:
    found = functions(two([row("__arm64_sys_pread64", 46.0)], [row("__x64_sys_pread64", 42.0)]))
    assert found == {"__arm64_sys_pread64": (4.0, "was __x64_sys_pread64", "block core")}
    other = two([row("__arm64_sys_pread64", 46.0)], [row("__x64_sys_read", 42.0)])
    assert {name: part[0] for name, part in functions(other).items()} == {
        "__arm64_sys_pread64": 46.0,
        "__x64_sys_read": -42.0,
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"submit_bio_wait": 20}, {"submit_bio_wait": 10, "bio_await": 36}),
        ({"__fdget": 9, "__fget_light": 28}, {"fdget": 30}),
        ({"submit_bio_noacct": 50, "submit_bio_checks": 70}, {"submit_bio_noacct": 99}),
    ],
)
def test_functions_side_by_side_are_not_joined(
    before: Mapping[str, float], after: Mapping[str, float]
) -> None:
    sides = [[row(name, count) for name, count in side.items()] for side in (after, before)]
    found = functions(two(*sides))
    assert {name: part[0] for name, part in found.items()} == {
        name: after.get(name, 0) - before.get(name, 0) for name in before | after
    }


def by_two_compilers(whole: dict[str, Any]) -> None:
    """Have two kernels be of the same source."""
    texts = ("gcc 14.2.0", "clang version 19.1.7")
    for kernel, text in zip(whole["kernels"], texts, strict=True):
        kernel |= {"origin": "git abc a subject", "compiler": text}


def test_inlining_is_told_apart() -> None:
    """Of one source and two compilers, a function is counted with its caller where only one of the
    kernels calls it. What is left in a row is the code of the same source."""
    called = [
        (("loop [user]",), "user", 10.0),
        (("loop [user]", "vfs_read"), "VFS", 100.0),
        (("loop [user]", "vfs_read", "check.isra.0"), "VFS", 20.0),
        (("loop [user]", "vfs_read", "submit"), "block core", 50.0),
        (("loop [user]", "vfs_read", "submit", "check.isra.0"), "VFS", 5.0),
    ]
    inlined = [
        (("loop [user]",), "user", 10.0),
        (("loop [user]", "vfs_read"), "VFS", 115.0),
        (("loop [user]", "vfs_read", "submit"), "block core", 40.0),
        (("loop [user]", "vfs_read", "submit", "check"), "VFS", 6.0),
        (("loop [user]", "vfs_read", "submit", "helper"), "block core", 12.0),
    ]
    whole = a_result([
        a_record(name, "dio.pread", "read", 4096, stacks)
        for name, stacks in (("old", called), ("new", inlined))
    ])  # fmt: skip
    for record in whole["results"]:  # both stacks of check are one function
        rows = {row["name"]: row for row in record["profile"]["functions"]}
        rows["check" if "check" in rows else "check.isra.0"]["calls"] = 10.0
    raw = {
        "check": -19.0, "vfs_read": 15.0, "helper": 12.0, "submit": -10.0
    }  # fmt: skip
    assert {name: part[0] for name, part in functions(whole).items()} == raw
    by_two_compilers(whole)
    assert functions(whole) == {
        "vfs_read": (-5.0, "Clang inlines check", "VFS"),
        "submit": (2.0, "GCC inlines helper", "block core"),
        "check": (1.0, "", "VFS"),
    }
    counts = {row["name"]: row["counts"] for row in change(whole)["functions"]}
    assert counts == {"vfs_read": {"calls": -8.0}, "submit": {}, "check": {"calls": 8.0}}
    whole["kernels"][1]["config"]["PREEMPT"] = "n"
    assert {name: part[0] for name, part in functions(whole).items()} == raw


def test_jump_is_no_inlining() -> None:
    """A function that another one jumps to is shown beside that one, not below it."""
    path = ("loop [user]", "vfs_read")
    calls, jumps = (
        [
            (path, "VFS", 10.0),
            ((*path, "read"), "VFS", 3.0),
            ((*path, *between, "pin"), "VFS", pinning),
            ((*path, *between, "pin", "grab"), "VFS", 30.0),
        ]
        for between, pinning in ((("read",), 20.0), ((), 25.0))
    )
    for sides in ((calls, jumps), (jumps, calls)):
        whole = a_result(
            a_record(name, "dio.pread", "read", 4096, stacks)
            for name, stacks in zip(("old", "new"), sides, strict=True)
        )
        by_two_compilers(whole)
        change = 5.0 if sides[0] is calls else -5.0
        assert functions(whole) == {"pin": (change, "", "VFS")}


def test_functions_that_are_side_by_side_on_another_rung_are_not_joined() -> None:
    """A kernel has both, even where a rung executes only one of them."""
    whole = two([row("bio_await", 36.0)], [row("submit_bio_wait", 20.0)])
    assert list(functions(whole)) == ["bio_await"]
    for name, rows in (
        ("old", [row("submit_bio_wait", 20.0)]),
        ("new", [row("submit_bio_wait", 10.0), row("bio_await", 36.0)]),
    ):
        whole["results"].append({**profiled(name, rows), "rung": "gen.sync"})
    assert list(functions(whole)) == ["bio_await", "submit_bio_wait"]
    assert joined(whole) == {("", "bio_await"), ("submit_bio_wait", "submit_bio_wait")}


def joined(whole: dict[str, Any]) -> set[tuple[str, str]]:
    """The functions that the page joins on the last rung: their names in both kernels."""
    text = page.render(parse(whole), None)
    data = json.loads(re.search(r'id="data">(.*?)</script>', text).group(1))
    names = [*data["names"], ""]  # -1 is none
    rows = data["rungs"][-1]["joined"]["0,1"]["functions"]
    return {(names[old], names[new]) for old, new, *_ in rows}


def test_the_page_joins_by_the_same_names() -> None:
    assert joined(two([row("bio_await", 36.0)], [row("submit_bio_wait", 20.0)])) == {
        ("submit_bio_wait", "bio_await")
    }
    assert joined(two([row("odd", 44.0, "other")], [row("blkdev_go", 44.0, "VFS")])) == {
        ("blkdev_go", "odd")
    }


def test_a_function_with_another_name_keeps_its_layer() -> None:
    counts = {"reads": 7.0, "locked": 1.0}
    before = [row("vfs_read", 122.0, "VFS"), row("blkdev_go", 44.0, "block device file", **counts)]
    after = [row("vfs_read", 122.0, "VFS"), row("odd_name", 44.0, "other", **counts)]
    found = change(two(after, before))
    assert functions(two(after, before)) == {
        "odd_name": (0.0, "blkdev_go before?", "block device file")
    }
    assert not found["moved"]
    assert [part for part in found["layers"] if part["difference"]] == []


@pytest.mark.parametrize(
    "after",
    [
        [row("odd", 45.0, "other")],  # another count
        [row("odd", 44.0, "other", reads=1.0)],
        [row("odd", 44.0, "VFS")],  # known to be something else
        [row("odd", 44.0, "other"), row("odder", 44.0, "other")],  # which one?
    ],
)
def test_what_may_be_another_function_is_not_offered(after: list[Row]) -> None:
    found = functions(two(after, [row("blkdev_go", 44.0, "block device file")]))
    assert {note for _, note, _ in found.values()} == {"new", "gone"}


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("ktime_get", "time"), ("read_tsc", "time"), ("call_rcu", "locks and RCU"),
        ("__call_rcu_common.constprop.0", "locks and RCU"), ("schedule", "scheduling"),
        ("ktime_get_coarse_real_ts64", "VFS"),
    ],
)  # fmt: skip
def test_layers(name: str, layer: str) -> None:
    assert Layers().of(Symbol(name)) == layer


@pytest.mark.parametrize(
    ("name", "module", "layer"),
    [
        ("one", "", "named"), ("one", "mod", "of a module"), ("one_more", "", "begun"),
        ("two", "", "late"), ("three", "", "begun"), ("a_lot", "", "any"), ("b", "", "other"),
    ],
)  # fmt: skip
def test_the_first_layer_with_a_pattern_that_matches(
    tmp_path: Path, name: str, module: str, layer: str
) -> None:
    """Whether the pattern is a name, the beginning of names, or another."""
    layers = {
        "of a module": ["* [[]mod]"], "named": ["one"], "begun": ["one*", "three*"],
        "any": ["a?*t", "thr[e]e"], "late": ["one", "t*"],
    }  # fmt: skip
    text = "".join(
        f'[[layer]]\nname = "{known}"\nfunctions = {json.dumps(patterns)}\n'
        for known, patterns in layers.items()
    )
    (tmp_path / "layers.toml").write_text(text)
    assert Layers(tmp_path / "layers.toml").of(Symbol(name, module)) == layer


TABLE = """
[[layer]]
name = "mine"
functions = ["t*"]
"""


def test_a_table_of_layers_reaches_file_results_charts_and_page(tmp_path: Path) -> None:
    (tmp_path / "layers.toml").write_text(TABLE)
    layers = Layers(tmp_path / "layers.toml")
    whole = parse(two(PLAIN))
    relayer(whole.results, layers)
    assert whole.results[1].profile.layers == {"mine": 900.0, "other": 500.0}
    text = page.render(whole, compare(whole, layers), layers)
    data = json.loads(re.search(r'id="data">(.*?)</script>', text).group(1))
    assert [name for name, *_ in data["layers"]] == ["mine", "other"]
    assert {
        data["names"][number]: data["layers"][data["layerOf"][number]][0] for number in range(3)
    } == {"one": "other", "two": "mine", "three": "mine"}
    assert ">mine<" in text


# The configuration.


def configured(*configs: str) -> list[str]:
    rest: Any = dict.fromkeys(("release", "banner", "compiler", "cmdline", "clocksource"), "x")
    rest["modules"] = {}
    kernels = [
        {"name": f"k{number}", "config": options(text)} for number, text in enumerate(configs)
    ]
    found = [Kernel(**kernel, **rest) for kernel in kernels]
    return list(labels(found, labelled.options(found)))


def test_every_option_is_a_label() -> None:
    same = "CONFIG_HZ=250\n# CONFIG_SLUB_TINY is not set\n"
    assert configured(same, same) == []
    assert configured(
        f"{same}CONFIG_SLAB_FREELIST_HARDENED=y\nCONFIG_PREEMPT_RT=y\n",
        f"{same}# CONFIG_SLAB_FREELIST_HARDENED is not set\n# CONFIG_PREEMPT_RT is not set\n",
    ) == ["options: PREEMPT_RT y/n", "other options: SLAB_FREELIST_HARDENED y/n"]


@pytest.mark.parametrize(
    ("banner", "text"),
    [
        ("(gcc (Debian 14.2.0-19) 14.2.0, GNU ld (GNU Binutils for Debian) 2.44)",
         "gcc (Debian 14.2.0-19) 14.2.0"),
        ("(Debian clang version 19.1.7 (3+b1), Debian LLD 19.1.7)",
         "Debian clang version 19.1.7 (3+b1)"),
        ("(clang version 19.1.7, LLD 19.1.7)", "clang version 19.1.7"),
        ("(x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0, GNU ld)",
         "x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0"),
    ],
)  # fmt: skip
def test_compiler_of_a_banner(banner: str, text: str) -> None:
    assert compiler(f"Linux version 7.2.12 (a@b) {banner} #1 SMP PREEMPT 2026-01-01") == text


def test_architectures_are_a_label() -> None:
    rest: Any = dict.fromkeys(("release", "banner", "compiler", "cmdline", "clocksource"), "x")
    rest |= {"modules": {}, "config": {}}
    kernels = [Kernel(name="k0", **rest), Kernel(name="k1", arch="aarch64", **rest)]
    assert list(labels(kernels, {})) == ["architecture: k0 x86_64; k1 aarch64"]
    assert list(labels([kernels[1], kernels[1]], {})) == []


@pytest.mark.parametrize(
    ("compilers", "text"),
    [
        (["gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0",
          "x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0"], "GCC 12 to 14"),
        (["gcc-14 (Debian 14.2.0-19) 14.2.0", "gcc-9 (Debian 9.3.0-22) 9.3.0"], "GCC 14 to 9"),
        (["gcc 12.2.0", "gcc 14.2.0", "gcc 16.1.0"], "GCC 12 to 16"),
        (["gcc 14.2.0", "gcc 12.2.0", "gcc 16.1.0"], "GCC 14 to 12 to 16"),
        (["gcc 14.2.0", "gcc 14.10.0"], "GCC 14.2.0 to 14.10.0"),
        (["gcc-14 (Debian) 14.2.0", "gcc (Ubuntu) 14.2.0"], "two builds of GCC 14.2.0"),
        (["gcc 14.2.0", "clang version 19.1.7"], "GCC 14.2.0 and Clang 19.1.7"),
        (["gcc 14.2.0", "x"], "compilers"),
    ],
)  # fmt: skip
def test_labels_in_brief(compilers: list[str], text: str) -> None:
    rest: Any = dict.fromkeys(("release", "banner", "cmdline", "clocksource"), "x")
    rest["modules"] = {}
    configs = ({"HZ": "250", "NEW": "y", "MODULE": "m"}, {"HZ": "1000", "SOME": "n"})
    kernels = [
        Kernel(name=compiler, compiler=compiler, config=config, **rest)
        for compiler, config in zip(compilers, itertools.cycle(configs), strict=False)
    ]
    assert brief(kernels, labelled.options(kernels)) == [
        text,
        "1 relevant option",
        "1 other option",
    ]
    assert brief(kernels[:1] * 2, {}) == []


def test_options_that_a_kernel_does_not_have() -> None:
    assert configured("CONFIG_NEW=y\n", "# CONFIG_OLD is not set\n") == [
        "options that some kernels lack: NEW y/-"
    ]
    many = "".join(f"CONFIG_NEW{number}=y\n" for number in range(500))
    assert configured(many, "") == ["options that some kernels lack: 500 (--json lists them)"]


def test_probes_of_the_toolchain_are_no_options() -> None:
    probes = (
        "CC_HAS_KASAN=y", "CC_VERSION_TEXT=\"gcc\"", "GCC_VERSION=120200", "LD_VERSION=1",
        "AS_AVX512=y", "PAHOLE_VERSION=124", "RUSTC_VERSION=0", "HAS_IOMEM=y",
        "ARCH_HAS_X=y", "HAVE_KPROBES=y", "BUILD_SALT=\"6.1\"",
    )  # fmt: skip
    assert configured("".join(f"CONFIG_{probe}\n" for probe in probes), "") == []
    assert configured("CONFIG_CC_OPTIMIZE_FOR_SIZE=y\n", "") == [
        "options: CC_OPTIMIZE_FOR_SIZE y/-"
    ]


def test_modules_are_counted() -> None:
    one = "CONFIG_A=m\n# CONFIG_B is not set\nCONFIG_C=m\n"
    assert configured(one, "# CONFIG_A is not set\nCONFIG_B=m\nCONFIG_C=y\n") == [
        "other options: C m/y",
        "options of modules: 2 (--json lists them)",
    ]


def test_a_mitigation_is_known_by_both_of_its_names() -> None:
    assert configured("CONFIG_RETPOLINE=y\n", "CONFIG_MITIGATION_RETPOLINE=y\n") == []


def test_the_heading_of_a_real_time_kernel_says_so() -> None:
    whole = two(PLAIN)
    whole["kernels"][1]["config"] |= {"PREEMPT_RT": "y", "PREEMPT_DYNAMIC": "y"}
    texts = dict(facts(parse(whole)))
    assert "; PREEMPT_RT, HZ=250" in texts["new"]
    assert "; PREEMPT, HZ=250" in texts["old"]


# Gates.

KNOWN = [rung.name for rung in RUNGS]


def unknown_rung(name: str) -> str:
    return unknown(name, KNOWN)


MORE = "dio.pread read: new takes more than old:"


def limited(tmp_path: Path, text: str) -> list[Any]:
    (tmp_path / "limits.toml").write_text(text)
    return limits.read(tmp_path / "limits.toml", KNOWN, unknown_rung)


def regressions(comparison: Any, fail_above: float | None, limits_: list[Any]) -> list[str]:  # noqa: ANN401
    """What grew, if everything can be judged."""
    grown, unknown = limits.regressions(comparison, fail_above, limits_)
    assert unknown == []
    return grown


def unjudged(comparison: Any, fail_above: float | None, limits_: list[Any]) -> list[str]:  # noqa: ANN401
    """What cannot be judged, if nothing grew."""
    grown, unknown = limits.regressions(comparison, fail_above, limits_)
    assert grown == []
    return unknown


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"dio.pread instructions" = 0', [f"{MORE} instructions 0.07 % (0 % allowed)"]),
        ('"dio.pread" = 0\n"dio.pread read" = 50', []),
        ('"dio.pread read" = 50\n"dio.pread" = 0', []),
        ('"dio.pread" = 1', [f"{MORE} locked 50.00 % (1 % allowed)"]),
        ('"dio.pread" = 1\n"dio.pread locked" = 50', []),
        ('"dio.pread locked" = 50\n"dio.pread read" = 1', []),
        ('"dio.pread read locked" = 10', [f"{MORE} locked 50.00 % (10 % allowed)"]),
        ('"dio.pread locked" = 50', []),
        ('"dio.pread read data lines" = 0', []),
    ],
)  # fmt: skip
def test_limits(tmp_path: Path, text: str, found: list[str]) -> None:
    assert regressions(compared(two(LOCKED)), None, limited(tmp_path, text)) == found


def test_a_gate_does_not_pass_what_is_undecided() -> None:
    """Some boots of the new kernel take twice as much, which is neither the same nor longer. If the
    boots are within the limit, the gate passes."""
    whole = two(PLAIN)
    new = whole["results"][1]
    figure = new["boots"][0]
    new["boots"][1:] = [2 * figure] * 6
    said = "boots differ: 1,400.07 in 7 boots; then 2,800.14 in 6 of 7 boots, 1,400.07 in 1"
    assert unjudged(compared(whole), 0, []) == [f"dio.pread read instructions: {said}"]
    assert regressions(compared(whole), 100, []) == []
    new["boots"] = new["boots"][:3]
    found = unjudged(compared(whole), 1000, [])
    assert found == ["dio.pread read instructions: 3 boots are too few: 5 needed"]


@pytest.mark.parametrize(
    ("metric", "by"),
    [("locked", 20), ("indirect", 20), ("returns", 6), ("reads", 500), ("code lines", 160),
     ("faults", 1), ("string bytes", 4096)],
)  # fmt: skip
def test_every_gated_metric_fails_at_equal_instructions(metric: str, by: int) -> None:
    whole = two(PLAIN)
    counts = whole["results"][1]["counts"]
    counts[metric] = [count + by for count in counts[metric]]
    (found,) = regressions(compared(whole), 1, [])
    assert found.startswith(f"{MORE} {metric} ")


def test_the_noise_of_a_row_is_its_own() -> None:
    """One more instruction is found beside a row whose boots differ by 300."""
    whole = two([row("one", 513.0, locked=2.0), *PLAIN[1:]])
    for name, boots in (("old", [0.0, 300.0] * 4), ("new", [300.0, 0.0] * 4)):
        noisy = {**profiled(name, PLAIN), "rung": "dm-crypt.pread"}
        noisy["boots"] = [noisy["boots"][0] + by for by in boots]
        whole["results"].append(noisy)
    found = compared(whole)
    assert [rung.differences["new"].verdict for rung in found.rungs] == ["longer", "unknown"]


def test_more_than_nothing_is_beyond_any_limit(tmp_path: Path) -> None:
    after = [row("one", 500.0, locked=2.0, indirect=1.0), *PLAIN[1:]]
    assert regressions(
        compared(two(after)), None, limited(tmp_path, '"dio.pread indirect" = 1000')
    ) == [f"{MORE} indirect 1.00 (1000 % allowed)"]


def test_a_figure_that_was_not_positive_has_no_percentage() -> None:
    """Its growth is beyond any limit: -3 to +40 are not -1,433 %."""
    assert percent(-3.0, 40.0) is None
    assert percent(0.0, 40.0) is None
    assert percent(40.0, 50.0) == 25.0


def test_a_limit_of_its_own_goes_before_the_general_one(tmp_path: Path) -> None:
    worse = compared(two(LOCKED))
    assert len(regressions(worse, 0, [])) == 1
    assert regressions(worse, 0, limited(tmp_path, '"dio.pread" = 50')) == []
    assert regressions(worse, 50, []) == []


def test_limits_of_rungs_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "limits.toml").write_text('"my.rung read" = 1')
    (limit,) = limits.read(tmp_path / "limits.toml", [*KNOWN, "my.rung"], unknown_rung)
    assert (limit.rung, limit.op, limit.percent) == ("my.rung", "read", 1.0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            '"dio.prad read" = 1',
            "unknown rung 'dio.prad': did you mean 'dio.pread'",
        ),
        ('"dio.pread raed" = 1', "'raed' is neither an operation .* nor a metric"),
        ('"dio.pread read lockd" = 1', "'lockd' is neither"),
        ('"" = 1', "unknown rung ''"),
        ('"dio.pread" = -1', "invalid limit of 'dio.pread': must be a percentage"),
        ('"dio.pread" = true', "invalid limit of 'dio.pread': must be a percentage"),
        ('"dio.pread" = nan', "invalid limit of 'dio.pread': must be a percentage"),
        ('"dio.pread" = {read = 1}', "invalid limit of 'dio.pread': must be a percentage"),
        ("", "has no limits"),
        ('"dio.pread read" = 0\n"dio.pread  read" = 50', "'dio.pread read' has two limits"),
        ("=", "is not a table of limits"),
    ],
)
def test_bad_limits(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        limited(tmp_path, text)


def without(which: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    whole = two(PLAIN)
    whole["results"] += [
        {**copy.deepcopy(record), "op": "write"} for record in copy.deepcopy(whole["results"])
    ]
    whole["results"] = [record for record in whole["results"] if not which(record)]
    return whole


@pytest.mark.parametrize(
    ("which", "complaint"),
    [
        (lambda r: r["op"] == "read" and r["kernel"]["name"] == "new",
         ["dio.pread read: new has no result of it"]),
        (lambda r: r["op"] == "read" and r["kernel"]["name"] == "old",
         ["dio.pread read: old has no result of it"]),
        (lambda r: (r["op"] == "read") == (r["kernel"]["name"] == "old"),
         ["dio.pread read: old has no result of it", "dio.pread write: new has no result of it"]),
        (lambda r: True, ["there is no result to compare"]),
    ],
)  # fmt: skip
def test_a_gate_does_not_pass_on_missing_data(
    which: Callable[[dict[str, Any]], bool], complaint: list[str]
) -> None:
    assert unjudged(compared(without(which)), 1000, []) == complaint


def test_a_limit_judges_its_rung_alone(tmp_path: Path) -> None:
    missing = compared(without(lambda r: r["op"] == "read" and r["kernel"]["name"] == "new"))
    assert regressions(missing, None, limited(tmp_path, '"dio.pread write" = 0')) == []
    assert unjudged(missing, None, limited(tmp_path, '"dio.pread" = 0')) == [
        "dio.pread read: new has no result of it"
    ]
    assert unjudged(missing, None, limited(tmp_path, '"syscall" = 0')) == [
        "syscall: no result is of that rung"
    ]


# The command, on files.


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Results of one kernel each: old, and new, which takes more."""
    paths = {}
    for name, rows in (("old", PLAIN), ("new", LOCKED)):
        records = [
            profiled(name, rows),
            {**profiled(name, rows), "op": "write"},
            {**profiled(name, PLAIN), "rung": "raw.pread"},
        ]
        paths[name] = tmp_path / f"{name}.json"
        paths[name].write_text(json.dumps(a_result(records)))
    return paths


def test_the_first_named_is_the_base(listed: Command, files: dict[str, Path]) -> None:
    assert listed.run("compare", files["old"], files["new"], "--fail-above", "0").returncode == 1
    done = listed.run("compare", files["new"], files["old"], "--fail-above", "0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "new to old: 3 rungs: 2 take fewer, 1 the same. Best and largest: "
    )


def test_json_has_the_verdicts(listed: Command, files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert listed.run("compare", files["old"], files["new"], "--json", out).returncode == 0
    found = json.loads(out.read_text())["comparison"]
    differences = [rung["differences"]["new"] for rung in found["rungs"]]
    assert [part["verdict"] for part in differences] == ["longer", "longer", "same"]
    assert [part["metrics"]["locked"]["verdict"] for part in differences] == [
        "more",
        "more",
        "same",
    ]
    # It is a result file like any other.
    again = listed.run("compare", out, "--json", out, "--quiet")
    assert (again.returncode, json.loads(out.read_text())["comparison"]) == (0, found)


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (["--fail-above", "50"], 0),
        (["--fail-above", "1"], 1),
        (["--fail-above", "0"], 1),
        (["--fail-above", "0", "--rung", "raw.*"], 0),
        (["--fail-above", "x"], 125),
        (["--fail-above=-1"], 125),
        (["--fail-above", "1", "--bs", "x"], 125),
        (["--fail-ab", "1", "--bs", "x"], 125),
        (["--limits", "/nonexistent"], 125),
        (["--limits", "/nonexistent", "--top", "x"], 125),
        (["--fail-above", "1", "--nonsense"], 125),
        (["--fail-above", "1", "--html", "/nonexistent/x"], 125),
        (["--fail-above", "1", "--rung", "syscall"], 125),
        (["--fail-above", "50", "--rung", "raw.pread", "--rung", "syscall"], 125),
        (["--fail-above", "1", "--rung", "raw"], 125),
        (["--fail-above", "1", "/nonexistent.json"], 125),
        (["--top", "x"], 2),
    ],
)
def test_exit_status(listed: Command, files: dict[str, Path], args: list[str], status: int) -> None:
    done = listed.run("compare", files["old"], files["new"], *args, "--quiet")
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("asked", "missing"),
    [
        (["--bs", "4k", "--bs", "64k"], "dio.pread 64 KiB: no result is of it"),
        (["--rung", "raw.pread", "--op", "read", "--op", "write"], "raw.pread write: no result"),
    ],
)
def test_what_was_asked_for_and_is_in_no_file(
    listed: Command, files: dict[str, Path], asked: list[str], missing: str
) -> None:
    done = listed.run("compare", *files.values(), *asked, "--fail-above", "50", "--quiet")
    assert (done.returncode, missing in done.stderr) == (125, True), done.stderr
    assert listed.run("compare", *files.values(), *asked, "--quiet").returncode == 0


@pytest.mark.parametrize("end", ["old", "new"])
def test_half_of_the_records(listed: Command, files: dict[str, Path], end: str) -> None:
    whole = json.loads(files[end].read_text())
    del whole["results"][1:]
    files[end].write_text(json.dumps(whole))
    done = listed.run("compare", files["old"], files["new"], "--fail-above", "50", "--quiet")
    assert done.returncode == 125
    assert f"iopath: cannot judge dio.pread write: {end} has no result of it" in done.stderr


def test_a_regression_is_said_whatever_else_cannot_be_judged(
    listed: Command, files: dict[str, Path]
) -> None:
    whole = json.loads(files["new"].read_text())
    del whole["results"][1:]
    files["new"].write_text(json.dumps(whole))
    assert listed.run("compare", *files.values(), "--fail-above", "1", "--quiet").returncode == 1


def test_rungs_that_have_nothing_in_common(listed: Command, files: dict[str, Path]) -> None:
    whole = json.loads(files["new"].read_text())
    for record in whole["results"]:
        record["rung"] = record["rung"].replace("pread", "preadv")
    files["new"].write_text(json.dumps(whole))
    done = listed.run("compare", files["old"], files["new"], "--fail-above", "10", "--quiet")
    assert (done.returncode, "cannot judge dio.pread read" in done.stderr) == (125, True)


def test_a_limit_for_what_is_not_there(
    listed: Command, files: dict[str, Path], tmp_path: Path
) -> None:
    for text in ('"dio.aio.1 read" = 1', '"dio.praed" = 1'):
        (tmp_path / "limits.toml").write_text(text)
        done = listed.run(
            "compare", files["old"], files["new"], "--limits", tmp_path / "limits.toml", "--quiet"
        )
        assert done.returncode == 125, done.stderr


# Names are text.


def test_brackets_and_dollars_in_names_are_text(tmp_path: Path) -> None:
    names = ("tree:/[bold]a[/b]", "tree:/$x_1$ and $y^")
    whole = a_result([profiled(names[0], PLAIN), profiled(names[1], LOCKED)])
    whole["results"][1]["profile"]["functions"][0]["layer"] = "[red]"
    console = Console(file=io.StringIO(), width=400, highlight=False)
    terminal.show(parse(whole), console)
    terminal.show_all(compared(whole), console)
    terminal.show_profile(parse(whole), console, 5)
    text = console.file.getvalue()
    assert all(text.count(name) >= 4 for name in names)
    assert "[red]" in text
    for draw, path in ((charts.ladder, "ladder.svg"), (charts.history, "history.svg")):
        charts.save(draw(parse(whole)), tmp_path / path)
        drawn = (tmp_path / path).read_text()
        assert all(f">{name}<" in drawn for name in names), path


def test_kernels_that_are_measured_and_files_keep_their_order() -> None:
    """The others are compared with the first name, whether it is a file or not."""
    results = {
        name: parse(a_result([a_record(kernel, "x", "read", 512)]))
        for name, kernel in (("tree:b", "tree:b"), ("debian:a", "debian:a"), ("dir/c.json", "c"))
    }
    for names in (["tree:b", "dir/c.json", "debian:a"], ["dir/c.json", "debian:a", "tree:b"],
                  ["debian:a", "tree:b", "dir/c.json"]):  # fmt: skip
        whole = join([(name, results[name]) for name in names])
        found = whole.names
        assert found == [name if ":" in name else "c" for name in names]
        assert [record.kernel.name for record in whole.results] == found
        assert compare(whole, Layers()).base == found[0]
