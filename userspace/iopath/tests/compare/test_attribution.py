# SPDX-License-Identifier: GPL-2.0
"""Functions of two kernels are the same one, or they are not."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from helpers.examples import a_record, a_result
from helpers.pairs import PLAIN, Row, change, functions, profiled, row, two
from iopath.compare.attribution import relayer
from iopath.compare.exact import compare
from iopath.results.layers import Layers
from iopath.results.result import parse
from iopath.show import page


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
    raw = {"check": -19.0, "vfs_read": 15.0, "helper": 12.0, "submit": -10.0}
    assert {name: part[0] for name, part in functions(whole).items()} == raw
    by_two_compilers(whole)
    assert functions(whole) == {
        "vfs_read": (-5.0, "Clang inlines check", "VFS"),
        "submit": (2.0, "GCC inlines helper", "block core"),
        "check": (1.0, "", "VFS"),
    }
    text, rows = paired(whole)
    assert {(text(row[1]), round(row[4] - row[3], 4), row[7]) for row in rows} == {
        ("vfs_read", -5.0, "Clang inlines check"),
        ("submit", 2.0, "GCC inlines helper"),
        ("check", 1.0, ""),
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


def paired(whole: dict[str, Any]) -> tuple[Callable[[int], str], list[list[Any]]]:
    """The rows of functions that the page has of the last rung, and what its numbers stand for."""
    text = page.render(parse(whole), None)
    data = json.loads(re.search(r'id="data">(.*?)</script>', text).group(1))
    names = [*data["names"], ""]  # -1 is none
    return names.__getitem__, data["rungs"][-1]["joined"]["0,1"]["functions"]


def joined(whole: dict[str, Any]) -> set[tuple[str, str]]:
    """The functions that the page joins on the last rung: their names in both kernels."""
    text, rows = paired(whole)
    return {(text(old), text(new)) for old, new, *_ in rows}


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
