# SPDX-License-Identifier: GPL-2.0
"""What differs between kernels that were counted exactly, and when counts cannot be compared."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from helpers.examples import a_result
from helpers.gates import STAMPED, in_layouts, limited, regressions, unjudged
from helpers.pairs import LOCKED, PLAIN, change, compared, long_run, profiled, row, shown, two
from iopath.compare.compare import join
from iopath.compare.exact import incomparable
from iopath.results.metrics import METRICS
from iopath.results.result import dump, parse
from iopath.show import page, texts
from iopath.show.markdown import markdown


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
    whole = two([row("one", 501.0, locked=2.0), *PLAIN[1:]], data_kernel=66.0)
    assert change(whole)["metrics"]["data lines"]["verdict"] == "more"
    assert "data lines +6.00 ±1." in markdown(parse(whole), compared(whole))


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


def test_without_enough_boots_metrics_have_no_verdict() -> None:
    whole = two([row("one", 501.0, locked=3.0), *PLAIN[1:]])
    record = whole["results"][0]
    for boots in ("boots", "mean_boots", "with_deferred_boots"):
        record[boots] = record[boots][:4]
    record["counts"] = {name: boots[:4] for name, boots in record["counts"].items()}
    found = change(whole)["metrics"]
    undecided = {name for name, part in found.items() if part["verdict"] == "unknown"}
    assert set(found) - undecided == {metric.name for metric in METRICS if metric.sigma}
    assert {found[name]["reason"] for name in undecided} == {"4 boots are too few: 5 needed"}


def test_lines_within_their_noise_are_shown_beside_something_else() -> None:
    after = [row("one", 501.0, locked=3.0), *PLAIN[1:]]
    assert "dio.pread read 4 KiB +1.00 +2.00 ±14.14" in shown(two(after, code_kernel=92.5))
    assert not any("what else differs" in line for line in shown(two(PLAIN, code_kernel=92.5)))


def apart(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """What differs besides the kernels of two files; also if a file has both."""
    whole = join([("old.json", parse(one)), ("new.json", parse(other))])
    found = incomparable(whole)
    assert incomparable(parse(json.loads(json.dumps(dump(whole))))) == found
    return found


def test_files_of_different_boots_are_comparable() -> None:
    """Fewer boots give no verdict, as always."""
    one, other = (a_result([profiled(name, PLAIN)]) for name in ("old", "new"))
    record = other["results"][0]
    record |= {"boots": record["boots"][:3], "rounds": 3 * one["results"][0]["rounds"] // 7}
    one["results"][0]["rounds"] -= one["results"][0]["rounds"] % 7
    record["rounds"] = 3 * one["results"][0]["rounds"] // 7
    assert apart(one, other) == []
    whole = a_result([*one["results"], *other["results"]])
    assert change(whole)["reason"] == "3 boots are too few: 5 needed"


DIGESTS = f"{40 * 'a'!r} and {40 * 'b'!r}"


def test_another_program_or_plugin_is_another_measurement() -> None:
    one, other = (a_result([profiled(name, PLAIN)]) for name in ("old", "new"))
    assert apart(one, other) == []
    for whole, digest in ((one, 64 * "a"), (other, 64 * "b")):
        whole["results"][0]["scenario"] = digest
        whole["programs"]["pathcount"] = digest
    assert apart(one, other) == [
        f"programs: pathcount {DIGESTS} (old, new)",
        f"dio.pread read of 4096 bytes: program, files, modules and steps {DIGESTS} (old, new)",
    ]
    del one["results"][0]["scenario"]
    assert len(apart(one, other)) == 2


def test_incomparable() -> None:
    one, other = (a_result([profiled(name, PLAIN)]) for name in ("old", "new"))
    other["results"][0]["batch"] = 32
    other["kernels"][0]["coherent"] = False
    other["kernels"][0]["arch"] = "aarch64"
    other["qemu"]["version"] = "8.0"
    other["machine"]["memory_mib"] = 512
    assert apart(one, other) == [
        "architecture: x86_64 and aarch64 (old, new)",
        "qemu: version '7.2' and '8.0' (old, new)",
        "machine: memory_mib '1024' and '512' (old, new)",
        "coherent (old, new)",
        "dio.pread read of 4096 bytes: batch '1' and '32' (old, new)",
    ]


def test_the_number_of_a_region_is_no_difference() -> None:
    one, other = (a_result([profiled(name, PLAIN)]) for name in ("old", "new"))
    one["results"][0]["command"] = ["/bin/ioloop", "--region=1"]
    other["results"][0]["command"] = ["/bin/ioloop", "--region=7"]
    assert apart(one, other) == []


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


def test_two_boots_decide_what_has_layouts() -> None:
    same = compared(in_layouts(two(PLAIN)))
    assert same.wanted == {}
    assert (unjudged(same, 0, []), regressions(same, 0, [])) == ([], [])
    longer = compared(in_layouts(two(LOCKED)))
    assert longer.wanted == {}
    (found,) = regressions(longer, 0, [])
    assert "instructions 0.07 %" in found
    assert "locked 50.00 %" in found


@pytest.mark.parametrize(
    ("share", "said"), [(1, "30 of 32 layouts, 1,470.07 in 2"), (8, "16 of 32 layouts")]
)
def test_a_cost_of_some_layouts(share: int, said: str) -> None:
    """It is a difference, and in how many layouts is said."""
    found = compared(in_layouts(two(PLAIN), 70.0, share))
    (text,) = regressions(found, 0, [])
    assert text == "dio.pread read: new takes more than old: instructions 5.00 % (0 % allowed)"
    assert said in found.rungs[0].differences["new"].findings[0]


def test_the_noise_of_a_row_is_its_own() -> None:
    """One more instruction is found beside a row whose boots differ by 300."""
    whole = two([row("one", 513.0, locked=2.0), *PLAIN[1:]])
    for name, boots in (("old", [0.0, 300.0] * 4), ("new", [300.0, 0.0] * 4)):
        noisy = {**profiled(name, PLAIN), "rung": "dm-crypt.pread"}
        noisy["boots"] = [noisy["boots"][0] + by for by in boots]
        whole["results"].append(noisy)
    found = compared(whole)
    assert [rung.differences["new"].verdict for rung in found.rungs] == ["longer", "same"]


def test_a_count_differs_where_the_path_does_not() -> None:
    """Where the path varies between layouts, its counts may vary as much."""
    other = [row("one", 500.0, locked=3.0), *PLAIN[1:]]
    (text,) = regressions(compared(in_layouts(two(other))), 0, [])
    assert text == "dio.pread read: new takes more than old: locked 50.00 % (0 % allowed)"
    varies = in_layouts(two(other))
    for record in varies["results"]:
        record["layouts"][0][0] += 1.0
    assert regressions(compared(varies), 0, []) == []


def test_the_long_run_has_one_of_the_layouts() -> None:
    """Its mean and total may differ by as much as layouts and boots do, and not by more."""

    def said(mean: float, *, boot: float = 0.0) -> list[str]:
        whole = in_layouts(two(PLAIN))
        for name in ("old", "new"):
            long_run(whole, name, mean * (name == "new"), 0, {})
        for record in whole["results"]:
            record["layouts"][1] = [figure - boot for figure in record["layouts"][1]]
        return regressions(compared(whole), 0, [])

    assert said(2.0, boot=2.0) == []
    (text,) = said(2.0)
    assert "mean 0.14 %" in text
    (text,) = said(5.0, boot=2.0)
    assert "mean 0.36 %" in text


def test_a_switch_takes_more_than_the_path_varies() -> None:
    whole = in_layouts(two(PLAIN))
    for record, switches in zip(whole["results"], (2.0, 0.0), strict=True):
        record["layouts"][0][0] += 5.0
        record["counts"]["switches"] = [switches] * 2
    found = compared(whole).rungs[0].differences["new"]
    assert found.metrics["switches"].verdict == "fewer"
    assert found.cause == "no longer switches to another task"
