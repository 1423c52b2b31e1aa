# SPDX-License-Identifier: GPL-2.0
"""When gates open: on made-up results."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.gates import KNOWN, STAMPED, limited, regressions, unjudged, unknown_rung
from helpers.pairs import (
    LOCKED,
    PLAIN,
    change,
    compared,
    row,
    two,
)
from iopath.base.errors import UsageError
from iopath.compare import limits
from iopath.results.metrics import METRICS


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
    more = sum(metric.gated for metric in METRICS) - 3 - 3
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
