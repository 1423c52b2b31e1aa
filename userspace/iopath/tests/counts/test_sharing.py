# SPDX-License-Identifier: GPL-2.0
"""Rungs on several CPUs: the plan, which lines count as shared, and guests with two CPUs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.examples import a_record, a_result
from helpers.printed import printed
from iopath.base import typed
from iopath.compare import sharing_changes
from iopath.counts import sharing
from iopath.counts.memory import Place
from iopath.guest.machine import Machine
from iopath.results import result
from iopath.results.shared import Sharing
from iopath.rungs import builtin, together
from iopath.rungs.runs import Settings, make_runs
from iopath.show import sharing_tables
from iopath.show.markdown import markdown

KERNEL = 0xFFFFFFFF81000000


def runs(name: str, cpus: int = 2) -> list[together.Shared]:
    settings = Settings(rungs=builtin.select([name]), ops=("read",), cpus=cpus)
    made, _ = make_runs(settings)
    return together.runs(made, settings)


def access(cpu: int, touched: int, *, store: bool = False) -> sharing.Access:
    return sharing.Access(cpu, KERNEL, False, store, touched, 100, KERNEL, 0)


@pytest.mark.parametrize(
    ("accesses", "kind"),
    [
        ([access(0, 0xFF), access(1, 0xFF)], None),
        ([access(0, 0xFF, store=True), access(0, 0xFF)], None),
        ([access(0, 0xFF, store=True), access(1, 0xFF)], "true"),
        ([access(0, 0xFF, store=True), access(1, 0x80)], "true"),
        ([access(0, 0xFF, store=True), access(1, 0xFF00)], "false"),
        ([access(0, 0xF, store=True), access(1, 0xF0, store=True)], "false"),
        ([access(0, 0xF, store=True), access(1, 0xF0, store=True), access(2, 0xF0)], "true"),
    ],
)
def test_kind(accesses: list[sharing.Access], kind: str | None) -> None:
    assert sharing.kind_of(accesses) == kind


def test_arrangements() -> None:
    """Each CPU has a device; then they share one, and then the open file."""
    devices, files, threads = (run.command() for run in runs("dio.pread", 3))
    assert "--filename=/dev/blknull0:/dev/blknull1:/dev/blknull2" in devices
    (*_, requests) = (run.command() for run in runs("mq.pread", 3)[:1])
    assert "--filename=/dev/blknull6:/dev/blknull7:/dev/blknull8" in requests
    assert not {"--numjobs=3", "--thread"} & set(devices)
    assert {"--filename=/dev/blknull0", "--numjobs=3"} <= set(files)
    assert {"--filename=/dev/blknull0", "--numjobs=3", "--thread", "--share_file"} <= set(threads)
    assert all("--cpus_allowed=0-2" in words for words in (devices, files, threads))


@pytest.mark.parametrize(
    ("rung", "arrangements"),
    [
        ("null", ["files", "threads"]),
        ("raw.pread", ["devices", "files", "threads"]),
        ("gen.sync", ["devices"]),
        ("mq.pread", ["devices", "files", "threads"]),
        ("nullb.pread", ["devices", "files", "threads"]),
        ("remote.mq.pread", ["devices", "files", "threads"]),
        ("dm-linear.pread", ["files", "threads"]),
        ("partition.pread", ["files", "threads"]),
        ("ext4.pread", ["files", "threads"]),
    ],
)
def test_arrangements_of(rung: str, arrangements: list[str]) -> None:
    """A rung without a device, with a layer on it, or whose device runs one job at a time, has
    fewer."""
    assert [run.arrangement for run in runs(rung)] == arrangements


def test_one_cpu_only() -> None:
    """It is not known whether a user's program can use several CPUs."""
    settings = Settings(rungs=builtin.select(["null"]), cpus=2)
    (run,) = make_runs(settings)[0]
    own = replace(run, rung=replace(run.rung, program=Path("/bin/true")))
    assert together.able([run, own], settings) == [run]
    assert together.able([run], replace(settings, cpus=1)) == []


def test_one_cpu_is_as_before() -> None:
    """The number of CPUs is not part of what a guest with one CPU depends on."""
    assert "cpus" not in Machine().inputs()
    assert Machine(cpus=2).inputs()["cpus"] == 2
    assert Machine().processors()[-1] == "1"
    assert Machine().parameters == Machine().cmdline


def a_line(where: str, per_io: float = 1.0, kind: str = "true") -> dict[str, object]:
    rows = [
        {
            "function": "f", "module": "", "cpu": cpu, "at": where, "locked": True,
            "per_io": per_io,
        }
        for cpu in (0, 1)
    ]  # fmt: skip
    return {
        "arrangement": "threads", "where": where, "place": "static", "kind": kind, "lines": 1,
        "reads": [], "writes": rows,
    }  # fmt: skip


def an_arrangement(name: str) -> dict[str, object]:
    return {
        "name": name, "instructions_per_io": [1.0, 1.0], "called_per_io": [0.0, 0.0],
        "rounds": [12, 12], "rounds_left_out": [0, 0], "command": [],
    }  # fmt: skip


def compared(
    before: list[dict[str, object]],
    after: list[dict[str, object]],
    arrangements: tuple[str, str] = ("threads", "threads"),
) -> result.Result:
    """A result of two kernels with such lines, each in one arrangement."""
    records = [
        a_record(kernel, "dio.pread", "read", 4096)
        | {"cpus": 2, "sharing": {"arrangements": [an_arrangement(name)], "lines": lines}}
        for kernel, name, lines in zip(("one", "other"), arrangements, (before, after), strict=True)
    ]
    return result.parse(a_result(records))


@pytest.mark.parametrize(
    ("before", "after", "whats"),
    [
        ([a_line("a")], [a_line("a")], []),
        ([], [a_line("a")], ["new"]),
        ([a_line("a")], [a_line("b")], ["gone", "new"]),
        ([a_line("a")], [a_line("a", 2.0)], ["changed"]),
        ([a_line("a")], [a_line("a", 1.01)], []),
        ([a_line("a")], [a_line("a", kind="false")], ["changed"]),
        ([a_line("struct a.b")], [a_line("struct a.c")], ["renamed"]),
        ([a_line("struct a.b")], [a_line("struct a{c, d}")], ["renamed"]),
        ([a_line("struct a.b")], [a_line("struct a.c", 2.0)], ["gone", "new"]),
        ([a_line("struct a.b")], [a_line("struct b.b")], ["gone", "new"]),
        (
            [a_line("struct a.b"), a_line("struct a.c")],
            [a_line("struct a.d")],
            ["gone", "gone", "new"],
        ),
        ([a_line("a+0x8")], [a_line("a+0x10")], ["gone", "new"]),
    ],
)
def test_changes(
    before: list[dict[str, object]], after: list[dict[str, object]], whats: list[str]
) -> None:
    """Lines are told apart by what is written in them."""
    whole = compared(before, after)
    assert [change.what for change in sharing_changes.changes(whole)] == whats
    text = " ".join(markdown(whole, None).split())
    for what in whats:
        assert f"- dio.pread read 4 KiB, other, threads: {what} " in text


def test_arrangements_that_one_kernel_lacks() -> None:
    """Lines of an arrangement that one kernel has no figures of are not new."""
    assert sharing_changes.changes(compared([], [a_line("a")], ("files", "threads"))) == []


def test_runs_of_bytes() -> None:
    assert sharing.runs_of(0) == []
    assert sharing.runs_of(0xFF) == [(0, 7)]
    assert sharing.runs_of(1 << 63 | 0b1011) == [(0, 1), (3, 3), (63, 63)]


def test_tables_fit_80_columns() -> None:
    """What is written and the functions are wrapped beside the figures."""
    line = a_line("filp: struct file.f_count.counter")
    for row, name in zip(
        line["writes"], ("a_function_of_a_name", "a_function_of_another"), strict=True
    ):
        row["function"] = name
    whole = compared([line], [a_line("vm_node_stat+0x110"), line])
    said = printed(sharing_tables.show, whole, width=80)
    said += printed(sharing_tables.show_changes, sharing_changes.changes(whole), width=80)
    assert max(map(len, said.splitlines())) <= 80
    for words in ("new true", "a_function_of_another", "vm_node_stat+0x110: f"):
        assert words in said


def test_table_of_many_cpus() -> None:
    """If there are more than two CPUs, those with the fewest and the most instructions are
    shown."""
    whole = compared([], [])
    for record in whole.results:
        record.cpus = 8
        (part,) = record.sharing.arrangements
        part.instructions_per_io = [2000.0 + cpu for cpu in (3, 0, 1, 2, 5, 6, 7, 4)]
        part.called_per_io = [2000.0] * 8
    said = printed(sharing_tables.show, whole, width=80)
    assert max(map(len, said.splitlines())) <= 80
    assert "2,000.00 + 2,000.00  2,007.00 + 2,000.00" in said


def test_lines_of_neighbours() -> None:
    """Whether small objects of different CPUs lie in one line differs from boot to boot."""
    line = a_line("a", 2.0, "false") | {"place": "neighbours"}
    more = a_line("a", 5.0, "false") | {"place": "neighbours", "lines": 3}
    for before, after in (([], [line]), ([line], []), ([line], [more])):
        assert sharing_changes.changes(compared(before, after)) == []


def test_lines_that_the_other_kernel_has_in_some_boots() -> None:
    """They are not a difference, unless they are of another kind."""
    whole = compared([a_line("a"), a_line("b")], [a_line("a")])
    assert [change.what for change in sharing_changes.changes(whole)] == ["gone"]
    _, after = whole.results
    for kind, expected in (("false", ["gone"]), ("true", [])):
        after.sharing.in_some_boots = [replace(whole.results[0].sharing.lines[1], kind=kind)]
        assert [change.what for change in sharing_changes.changes(whole)] == expected


def test_calls_of_cpus() -> None:
    """If CPUs call each other, their turns decide what is shared. Kernels differ if they differ by
    more than boots do; a line is new if it belongs to another structure that each I/O touches."""

    def changes(before: list[Any], after: list[Any], called: float) -> list[str]:
        whole = compared(before, after)
        for record in whole.results:
            record.sharing.arrangements[0].called_per_io = [called, called]
        return [change.where for change in sharing_changes.changes(whole)]

    noisy = a_line("n", 10.0) | {"spread": 0.5}
    before = [noisy, a_line("a.x", 20.0), a_line("b", 0.3), a_line("r of CPU 0{x, y}", 2.0)]
    false = a_line("a.x", 22.9, kind="false")
    after = [noisy, false, a_line("a.y, z", 3.0), a_line("r of CPU 1.x", 2.0)]
    fields = a_line("q{x}", 3.0), a_line("q{x, y}", 3.0)
    assert changes([*before, fields[0]], [*after, fields[1]], 300.0) == []
    assert "a.x" in changes(before, after, 2.5)
    read = a_line("e", 0.01) | {"reads": a_line("e", 2.0)["writes"]}
    after = [noisy, a_line("a.x", 23.6), a_line("c", 1.2), a_line("d", 0.9), read, before[3]]
    assert changes(before, after, 300.0) == ["a.x", "c"]


@pytest.mark.parametrize(
    ("places", "neighbours"),
    [
        # CPU, the byte of the line, what it is, the offset there
        ([(0, 4, "slab", 4), (1, 36, "slab", 4)], True),
        ([(0, 4, "slab", 4), (0, 8, "slab", 8), (1, 36, "slab", 4)], True),
        ([(0, 4, "slab", 4), (1, 36, "slab", 36)], False),
        ([(0, 4, "slab", 4), (1, 8, "slab", 8), (1, 36, "slab", 4)], False),
        ([(0, 0, "static", 0), (1, 32, "static", 0)], False),
    ],
)
def test_neighbours(places: list[tuple[int, int, str, int]], neighbours: bool) -> None:
    found = {
        replace(access(cpu, 1 << byte, store=True), physical=byte): Place(kind, "a", offset)
        for cpu, byte, kind, offset in places
    }
    assert sharing.are_neighbours(found) == neighbours


class Vmalloc:
    """The memory of a guest, with stacks only."""

    def place(self, _at: int, _physical: int) -> Place:
        return Place("vmalloc", "stack or vmalloc", 0)


def test_owners_of_stacks() -> None:
    """A stack belongs to the CPU with most accesses: arm64's IPI writes a ninth of them. It has no
    owner if tasks of both CPUs had it one after the other: then both execute the same code."""

    def owners(*times: int, code: int) -> dict[int, int]:
        accesses = [
            replace(access(cpu, 1, store=True), pc=KERNEL + pc, times=count, at=0)
            for cpu, count in enumerate(times)
            for pc in range(code if cpu else 60)
        ]
        return sharing._stacks(sharing.SharingRegion({}, {}, {}, {0: accesses}), Vmalloc())

    assert owners(100, 5, code=60) == {0: 0}
    assert owners(5, 100, code=60) == {0: 1}
    assert owners(12, 100, code=60) == {0: 1}
    assert owners(100, 90, code=60) == {0: sharing._NOBODY}
    assert owners(100, 90, code=40) == {}


def test_lines_that_one_boot_has() -> None:
    """The layout of memory put objects together there: such lines are listed apart."""
    run = runs("dio.pread")[1].run
    region = str(runs("dio.pread")[1].region)

    def boots(*lines: list[Any]) -> list[sharing.Boot]:
        part = {"arrangement": an_arrangement("files")}
        return [sharing.read({region: part | {"lines": found}}) for found in lines]

    found = sharing.merged(boots([a_line("a"), a_line("b")], [a_line("b"), a_line("c")]), run)
    assert [line.where for line in found.lines] == ["b"]
    assert sorted(line.where for line in found.in_some_boots) == ["a", "c"]
    # In JSON they are what they are when they were read from JSON.
    again = typed.structure(typed.unstructure(found), Sharing)
    assert json.dumps(typed.unstructure(found)) == json.dumps(typed.unstructure(again))
    counted = boots(*([a_line("b", count)] for count in (2.5, 2.0, 2.25)))
    assert [line.spread for line in sharing.merged(counted, run).lines] == [0.5]
    assert sharing.failures(counted, run) == []


def test_arrangements_without_figures() -> None:
    """If a CPU waited for others in each round of a boot, its arrangement is left out."""
    run = runs("dio.pread")[1].run
    files, threads = (str(shared.region) for shared in runs("dio.pread")[1:])
    parts = [
        {"arrangement": an_arrangement(name), "lines": [a_line(name)]} for name in ("files", "x")
    ]
    one = sharing.read(dict(zip((files, threads), parts, strict=True)))
    other = {**one, threads: sharing.InBoot(failed="CPU 1 waited")}
    for boots in ([one, other], [other, one], [other, other]):
        found = sharing.merged(boots, run)
        assert [part.name for part in found.arrangements] == ["files"]
        assert [line.where for line in found.lines] == ["files"]
        assert found.in_some_boots == []
        assert sharing.failures(boots, run) == ["CPU 1 waited"]
