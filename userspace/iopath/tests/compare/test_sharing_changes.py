# SPDX-License-Identifier: GPL-2.0
"""When a gate fails by shared lines: by numbers of each structure, whatever its fields are
called."""

from typing import Any

import pytest

from helpers.examples import BOOTS, a_record, a_result
from helpers.shared_lines import a_boot, a_line, merged
from iopath.compare.exact import compare
from iopath.compare.limits import Limit, regressions
from iopath.results.layers import Layers
from iopath.results.result import parse

RUNGS = ("dio.pread", "remote.mq.pread")


QUEUE = "request_queue: struct request_queue"
COLD = a_line(f"{QUEUE}.nr_requests", 0.01)


def two(
    before: list[dict[str, Any]], after: list[dict[str, Any]], rung: str = RUNGS[0]
) -> dict[str, Any]:
    """A result of two kernels with these boots."""
    return a_result(
        a_record(kernel, rung, "read", 4096, stacks=None)
        | {"cpus": 2, "sharing": merged(boots, rung)}
        for kernel, boots in (("old", before), ("new", after))
    )


def gate(
    whole: dict[str, Any], limit: float | None = 1, *limits: Limit
) -> tuple[list[str], list[str]]:
    return regressions(compare(parse(whole), Layers()), limit, limits)


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize(
    ("before", "after", "grown"),
    [
        pytest.param([a_line("a", 0.06)], [a_line("a", 100.0)], "a, writes", id="hot"),
        pytest.param([a_line("a", 1.0, "false")], [a_line("a")], "writes of true", id="true"),
        pytest.param([a_line("s.a", 0.06)], [a_line("s.b", 9.0)], "s, writes", id="another-field"),
        pytest.param([], [a_line("filp: struct file.f_ref", 1.0, "false")],
                     "filp: struct file, writes", id="objects-of-a-slab"),
        pytest.param([COLD], [COLD, a_line(f"{QUEUE}.queue_lock", locked=True)],
                     f"{QUEUE}, locked writes", id="a-lock-in-a-known-structure"),
        pytest.param([a_line("page", by="fdget")], [a_line("page", by="fdget"),
                     a_line("page", by="copy")], "page: copy, writes", id="pages"),
        pytest.param([a_line("a")], [a_line("a"), a_line("a+0x40"), a_line("a+0x80")],
                     "a, lines", id="lines"),
        pytest.param([], [a_line("counter")], "counter, writes", id="new"),
    ],
)  # fmt: skip
def test_what_grew_fails(
    rung: str, before: list[dict[str, Any]], after: list[dict[str, Any]], grown: str
) -> None:
    whole = two([a_boot(before)] * BOOTS, [a_boot(after)] * BOOTS, rung)
    (found,), unknown = gate(whole)
    assert (grown in found, unknown) == (True, [])
    assert found.startswith(f"{rung} read: new takes more than old: files, ")
    assert gate(two([a_boot(after)] * BOOTS, [a_boot(before)] * BOOTS, rung))[0] == [] or (
        "true" in grown or "page" in grown
    )
    assert gate(two([a_boot(after)] * BOOTS, [a_boot(after)] * BOOTS, rung)) == ([], [])


@pytest.mark.parametrize(
    ("field", "value", "metric"),
    [
        ("called_per_io", [100.0, 200.0], "files, CPU 1, instructions in calls 100.00 %"),
        ("instructions_per_io", [3300.0, 3000.0], "files, CPU 0, instructions 10.00 %"),
        ("rounds_left_out", [24, 0], "files, CPU 0, rounds left out 0.67"),
    ],
)
def test_figures_of_each_cpu_are_judged(field: str, value: list[float], metric: str) -> None:
    (found,), _ = gate(two([a_boot([])] * BOOTS, [a_boot([], **{field: value})] * BOOTS))
    assert metric in found


def test_a_renamed_field_is_no_difference() -> None:
    boots = [[a_boot([a_line(f"filp: struct file.{name}")])] * BOOTS for name in ("count", "ref")]
    assert gate(two(*boots)) == ([], [])
    boots = [[a_boot([a_line(f"runqueues of CPU {cpu}.nr")])] * BOOTS for cpu in (0, 1)]
    assert gate(two(*boots)) == ([], [])


def test_boots_that_differ_are_noise() -> None:
    """For remote.*, the turns of CPUs differ from boot to boot."""
    boots = [a_boot([a_line("a", 100 + by)]) for by in (0, 1, 2, 0.5, 1.5, 1, 0)]
    assert gate(two(boots, boots[::-1], RUNGS[1])) == ([], [])


def untold(whole: dict[str, Any]) -> str:
    grown, (text,) = gate(whole)
    assert grown == []
    return text.removeprefix("dio.pread read shared lines: ")


def test_what_cannot_be_compared_is_not_judged() -> None:
    whole = two([a_boot([])] * BOOTS, [a_boot([])] * BOOTS)
    old = whole["results"][0]
    old["cpus"] = 8
    assert untold(whole) == "old has 8 CPUs, new 2"
    known, old["sharing"]["arrangements"] = old["sharing"]["arrangements"], []
    assert untold(whole) == "old has no figures of several CPUs"
    old["cpus"], old["sharing"]["arrangements"] = 2, [known[0] | {"name": "threads"}]
    assert untold(whole) == "old has no figures of several CPUs, threads"
    old["sharing"]["figures"] += [
        one | {"arrangement": "threads"} for one in old["sharing"]["figures"]
    ]
    assert untold(whole) == "old has no figures of several CPUs, files"
    old["sharing"]["arrangements"] = known
    old["sharing"]["figures"] = []
    assert untold(whole) == "old has no figures of several CPUs, files"
    del old["sharing"]
    assert untold(whole) == "old has no figures of several CPUs"
    # Rungs that neither kernel ran on several CPUs are judged if a limit says so.
    del whole["results"][1]["sharing"]
    assert gate(whole) == ([], [])
    for limit, count in ((Limit("dio.pread", "", "sharing", 0), 1),
                         (Limit("dio.aio.1", "", "sharing", 0), 1)):  # fmt: skip
        assert len(gate(whole, None, limit)[1]) == count


def test_a_limit_of_its_own_goes_before_the_general_one() -> None:
    whole = two([a_boot([a_line("a")])] * BOOTS, [a_boot([a_line("a", 2.0)])] * BOOTS)
    assert len(gate(whole)[0]) == 1
    assert gate(whole, 1, Limit("dio.pread", "", "sharing", 100)) == ([], [])


def test_few_boots_do_not_tell() -> None:
    whole = two([a_boot([])] * 2, [a_boot([a_line("a")])] * 2)
    assert untold(whole) == "2 boots are too few: 5 needed"


def on_one_cpu(line: dict[str, Any], writes: float) -> dict[str, Any]:
    """The line, written so often by the first CPU."""
    first, second = line["writes"]
    return line | {"writes": [first | {"per_io": writes}, second]}


def test_a_cpu_that_writes_less_hides_nothing() -> None:
    """The other one writes more, before and after."""
    line = a_line("a", 50.0)
    (found,) = gate(two([a_boot([on_one_cpu(line, 1)])] * BOOTS, [a_boot([line])] * BOOTS))[0]
    assert "files, a, writes 96.08 %" in found


def test_many_structures_that_grow_a_little() -> None:
    lines = [[a_line(name, 1.0 + by) for name in "abcd"] for by in (0, 0.09)]
    (found,) = gate(two(*([a_boot(one)] * BOOTS for one in lines)))[0]
    assert "files, all structures, writes 9.00 %" in found


def test_the_resolution_of_locked_writes() -> None:
    lines = [[a_line("a", 9.0), a_line("b", by, locked=True)] for by in (1.0, 1.5)]
    (found,) = gate(two(*([a_boot(one)] * BOOTS for one in lines)))[0]
    assert "files, b, locked writes 50.00 %" in found


def test_a_structure_with_another_name_is_no_difference() -> None:
    lines = [[a_line("a", 3.0), a_line(name, 2.0)] for name in ("counter", "renamed")]
    assert gate(two(*([a_boot(one)] * BOOTS for one in lines))) == ([], [])
    lines[1][1] = a_line("renamed", 2.5)
    assert gate(two(*([a_boot(one)] * BOOTS for one in lines)))[0]
