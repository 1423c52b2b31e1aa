# SPDX-License-Identifier: GPL-2.0
"""When a gate fails by shared lines: by numbers of each structure, whatever its fields are
called."""

from typing import Any

import pytest

from helpers.examples import BOOTS, a_record, a_result
from helpers.shared_lines import a_boot, a_line, merged
from iopath.compare.limits import Limit
from iopath.compare.sharing_changes import judged
from iopath.results.result import Result, parse

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


def gate(whole: dict[str, Any], limit: float = 1) -> tuple[list[str], list[str]]:
    result: Result = parse(whole)
    return judged(result, [], limit)


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
    assert found.startswith(f"{rung} read 4 KiB: new shares more than old: ")
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
    some = [a_boot([a_line("a", 5.0)] if number % 2 else []) for number in range(BOOTS)]
    grown, unknown = gate(two([a_boot([])] * BOOTS, some))
    assert grown == []
    assert any(
        "files, a, " in one and ": boots differ: 0.00 in 7 boots; then" in one for one in unknown
    )


def untold(whole: dict[str, Any]) -> str:
    grown, (text,) = gate(whole)
    assert grown == []
    return text.removeprefix("dio.pread read 4 KiB: ")


def test_what_cannot_be_compared_is_not_judged() -> None:
    whole = two([a_boot([])] * BOOTS, [a_boot([])] * BOOTS)
    old = whole["results"][0]
    old["cpus"] = 8
    assert untold(whole) == "old has figures of 8 CPUs, new of 2"
    known, old["sharing"]["arrangements"] = old["sharing"]["arrangements"], []
    assert untold(whole) == "old has no figures of several CPUs, in no arrangement"
    old["cpus"], old["sharing"]["arrangements"] = 2, [known[0] | {"name": "threads"}]
    assert untold(whole) == "old has no figures of several CPUs, files"
    old["sharing"]["arrangements"] = known
    del old["sharing"]["figures"]
    assert untold(whole) == "old has no figures of each boot: measure again"
    del old["sharing"]
    assert untold(whole) == "old has no figures of several CPUs: measure with --cpus 2 or more"
    # Rungs that neither kernel ran on several CPUs are judged if a limit says so.
    del whole["results"][1]["sharing"]
    assert gate(whole) == ([], [])
    for limit, count in ((Limit("dio.pread", "", "sharing", 0), 1),
                         (Limit("dio.aio.1", "", "sharing", 0), 0)):  # fmt: skip
        assert len(judged(parse(whole), [limit], None)[1]) == count


def test_a_limit_of_its_own_goes_before_the_general_one() -> None:
    whole = two([a_boot([a_line("a")])] * BOOTS, [a_boot([a_line("a", 2.0)])] * BOOTS)
    assert len(gate(whole)[0]) == 1
    assert judged(parse(whole), [Limit("dio.pread", "", "sharing", 100)], 1) == ([], [])


def test_few_boots_do_not_tell() -> None:
    whole = two([a_boot([])] * 2, [a_boot([a_line("a")])] * 2)
    (text,) = gate(whole)[1]
    assert text.startswith("dio.pread read 4 KiB: files, CPU 0, instructions; ")
    assert text.endswith(" more: 2 boots are too few: 5 needed")
