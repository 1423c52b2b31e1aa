# SPDX-License-Identifier: GPL-2.0
"""When gates open: on made-up results."""

import copy
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.counted import a_boot, a_program
from helpers.examples import BOOTS, a_result
from helpers.gates import KNOWN, STAMPED, in_layouts, limited, regressions, unjudged, unknown_rung
from helpers.pairs import LOCKED, PLAIN, change, compared, profiled, row, two
from iopath.base.errors import UsageError
from iopath.compare import limits
from iopath.compare.exact import compare
from iopath.counts.calls import Started
from iopath.results.layers import Layers
from iopath.results.metrics import METRICS, REQUESTS
from iopath.results.syscalls import CALL
from iopath.show import texts


def test_a_gate_does_not_pass_without_a_long_run() -> None:
    whole = two(PLAIN)
    for name in ("mean", "mean_boots", "with_deferred", "with_deferred_boots"):
        del whole["results"][0][name]
    said = "dio.pread read mean, total: a result does not have it: measure again"
    assert unjudged(compared(whole), 1, []) == [said]


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
    more = sum(metric.gated and metric not in REQUESTS for metric in METRICS) - 4 - 3
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
        "dio.pread read, dio.uring read, raw.pread read and 2 more instructions:"
        " 1 boot is too few: 5 needed"
    )


MORE = "dio.pread read: new takes more than old:"


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
)
def test_limits(tmp_path: Path, text: str, found: list[str]) -> None:
    assert regressions(compared(two(LOCKED)), None, limited(tmp_path, text)) == found


def test_what_a_limit_names_is_told(tmp_path: Path) -> None:
    """No text says "the same" where a limit of a metric fails that no general limit judges."""
    whole = two(PLAIN)
    counts = whole["results"][1]["counts"]
    counts["calls"] = [count + 5 for count in counts["calls"]]
    found = compared(whole)
    (rung,) = found.rungs
    assert rung.differences["new"].verdict_text == "same"
    mine = limited(tmp_path, '"dio.pread calls" = 0')
    (said,) = regressions(found, None, mine)
    assert said.startswith(f"{MORE} calls ")
    assert rung.differences["new"].verdict_text == "same path"
    assert rung.differences["new"].beside.keys() == {"calls"}
    assert rung in found.ranked("new")


def test_a_gate_does_not_pass_what_is_undecided() -> None:
    whole = two(PLAIN)
    for record in whole["results"]:
        record["boots"] = record["boots"][:3]
    found = unjudged(compared(whole), 1000, [])
    assert found == ["dio.pread read instructions: 3 boots are too few: 5 needed"]


@pytest.mark.parametrize(
    ("metric", "by"),
    [("locked", 20), ("indirect", 20), ("returns", 6), ("reads", 500), ("data lines", 60),
     ("faults", 1), ("string bytes", 4096)],
)  # fmt: skip
def test_every_gated_metric_fails_at_equal_instructions(metric: str, by: int) -> None:
    whole = two(PLAIN)
    counts = whole["results"][1]["counts"]
    counts[metric] = [count + by for count in counts[metric]]
    (found,) = regressions(compared(whole), 1, [])
    assert found.startswith(f"{MORE} {metric} ")


def test_more_than_nothing_is_beyond_any_limit(tmp_path: Path) -> None:
    after = [row("one", 500.0, locked=2.0, indirect=1.0), *PLAIN[1:]]
    assert regressions(
        compared(two(after)), None, limited(tmp_path, '"dio.pread indirect" = 1000')
    ) == [f"{MORE} indirect 1.00 (1000 % allowed)"]


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
        ('"dio.prad read" = 1', "unknown rung 'dio.prad': did you mean 'dio.pread'"),
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


def test_a_gate_judges_the_layout_that_grew_most() -> None:
    """Three layouts take 5 % more, where the usual path takes less."""
    whole = in_layouts(two(PLAIN), 70.0, 3)
    new = whole["results"][1]
    new["layouts"] = [[one - 10 * (one < 1450) for one in boot] for boot in new["layouts"]]
    for limit, status in ((0, 1), (4.9, 1), (5.1, 0)):
        assert len(regressions(compared(whole), limit, [])) == status


def test_what_was_not_positive_is_beyond_any_limit() -> None:
    """A total of -3 that is 40 now has no percentage."""
    whole = two(PLAIN)
    for record, total in zip(whole["results"], (-3.0, 40.0), strict=True):
        record["with_deferred_boots"] = [total] * BOOTS
    (text,) = regressions(compared(whole), 1000, [])
    assert text == f"{MORE} total 43.00 (1000 % allowed)"


def test_what_an_interrupt_costs_is_judged() -> None:
    whole = in_layouts(two(PLAIN))
    whole["results"][1]["mean_with_interrupts"] += 500
    (text,) = regressions(compared(whole), 0, [])
    assert text == f"{MORE} with interrupts 35.71 % (0 % allowed)"


def test_lines_of_code_are_judged_if_a_limit_says_so(tmp_path: Path) -> None:
    """A build may move all functions, and touch more lines."""
    whole = two(PLAIN)
    counts = whole["results"][1]["counts"]
    counts["code lines"] = [count + 160 for count in counts["code lines"]]
    assert regressions(compared(whole), 0, []) == []
    assert regressions(compared(whole), None, limited(tmp_path, '"dio.pread code lines" = 0'))


def test_one_boot_of_a_program_is_not_judged() -> None:
    """Five of six comparisons of dd with itself grew by some instructions."""
    ran = {name: [a_boot(read)] for name, read in (("old", 100), ("new", 101))}
    (text,) = unjudged(compare(a_program(ran), Layers()), 0, [])
    assert text == "the whole, I/O calls, read instructions: 1 boot is too few: 5 needed"
    ran = {name: [a_boot(read)] * 5 for name, read in (("old", 100), ("new", 105))}
    assert "read: new takes more than old: instructions 5.00 % (0 % allowed)" in regressions(
        compare(a_program(ran), Layers()), 0, []
    )


def test_what_starts_a_program_varies_with_its_pages() -> None:
    """A commit that a program cannot reach moves its pages: 0.5 % of execve, in each boot."""
    for call, grown in (("execve", []), ("read", [True])):
        ran = {
            name: [a_boot(100, more={(CALL, call): Started(10, took, 0, {"do": took})})] * 5
            for name, took in (("old", 100_000), ("new", 100_500))
        }
        found = regressions(compare(a_program(ran), Layers()), 0, [])
        assert [True for text in found if text.startswith(f"{call}: ")] == grown


def test_a_base_of_few_boots_is_judged() -> None:
    """However many rows there are: five boots of each that agree tell."""
    whole = two(LOCKED)
    for record in whole["results"]:
        for name in [name for name in record if name.endswith("boots")]:
            record[name] = record[name][:5]
        record["counts"] = {name: boots[:5] for name, boots in record["counts"].items()}
    names = [f"rung.{number}" for number in range(12)]
    whole["results"] = [{**record, "rung": name} for name in names for record in whole["results"]]
    assert len(regressions(compared(whole), 0, [])) == 12


def a_pair(source: random.Random) -> dict[str, Any]:
    """Two kernels of up to three rungs, of which any figure may differ, in all layouts or some."""
    records = []
    for number in range(source.randint(1, 3)):
        for name in ("old", "new"):
            record = profiled(name, PLAIN) | {"rung": f"rung.{number}"}
            if name == "new":
                for metric in source.sample([*record["counts"], "path", "mean", "total"], 2):
                    by = source.choice([-40.0, -1.0, 0.0, 0.01, 1.0, 25.0])
                    figures = {"path": "boots", "mean": "mean_boots"}.get(
                        metric, "with_deferred_boots"
                    )
                    if metric in record["counts"]:
                        values = record["counts"][metric]
                        record["counts"][metric] = [max(0.0, one + by) for one in values]
                    else:
                        record[figures] = [one + by for one in record[figures]]
            record["instructions_per_io"] = record["boots"][0]
            if number % 2:
                share = source.choice([0, 1, 8, 16])
                own = record["boots"][0]
                record["layouts"] = [[own + 70.0] * share + [own] * (16 - share)] * BOOTS
            records.append(record)
    return a_result(records)


@pytest.mark.parametrize("seed", range(200))
def test_text_and_exit_status_agree(seed: int) -> None:
    """If the gate fails, the first line says that something grew; if the line says that all is the
    same, nothing did."""
    found = compared(a_pair(random.Random(seed)))
    grown, unknown = limits.regressions(found, 0, [])
    said = texts.verdict(found, "new")
    assert unknown == []
    says_more = re.search(r"takes? more|\bmore \w| \+(?!0\.00)\d", said)
    assert bool(says_more) == bool(grown), said
    says_same = re.search(r"takes? the same(?! path| in sum)|: \d+ take the same\.$", said)
    assert not (says_same and grown and len(found.rungs) == 1), said
    rows = [
        rung
        for rung in found.rungs
        if any(part.grew for part in rung.differences["new"].judged.values())
    ]
    assert bool(rows) == bool(grown)
    assert {rung.key for rung in rows} <= {rung.key for rung in found.ranked("new")}
