# SPDX-License-Identifier: GPL-2.0
"""The plugin's counts of a program become parts by system call, which add up."""

import json
from dataclasses import replace

import pytest

from helpers.counted import HEADER
from iopath.base.arch import AARCH64, X86_64
from iopath.base.errors import IopathError
from iopath.counts import calls, plugin_output
from iopath.counts.calls import Started, complete
from iopath.counts.plugin_output import Output
from iopath.counts.symbols import Symbols
from iopath.results.layers import Layers
from iopath.results.result import KernelName
from iopath.results.syscalls import BESIDE, CALL, EVERY, FAULT, LATER, OWN, WHOLE, Calls

KALLSYMS = """\
ffffffff81000000 T _stext
ffffffff81001000 T __x64_sys_read
ffffffff81002000 T asm_exc_page_fault
ffffffff81003000 T asm_sysvec_apic_timer_interrupt
ffffffff81004000 T __do_softirq
ffffffff81005000 T ret_from_fork
ffffffff81006000 t do_idle
ffffffff81007000 t worker_thread
ffffffff81008000 T vfs_read
"""


def block(number: int, addr: int, instructions: int) -> dict:
    kinds = "." * instructions
    return {
        "type": "block", "block": number, "addr": hex(addr), "lens": [1] * instructions,
        "kinds": kinds,
    }  # fmt: skip


def bucket(number: int, kind: str, addr: int, times: int, counted: int, **more: object) -> dict:
    return {
        "type": "bucket", "bucket": number, "kind": kind, "addr": hex(addr), "beside": False,
        "user": False, "times": times, "instructions": counted, "before": 0, **more,
    }  # fmt: skip


RECORDS = [
    HEADER,
    block(0, 0x400000, 10),
    block(1, 0xFFFFFFFF81001000, 5),
    block(2, 0xFFFFFFFF81008000, 20),
    block(3, 0xFFFFFFFF81002000, 7),
    block(4, 0xFFFFFFFF81003000, 8),
    block(5, 0xFFFFFFFF81006000, 9),
    block(6, 0xFFFFFFFF81007000, 11),
    bucket(0, "u", 0, 0, 26),
    bucket(1, "c", 0xFFFFFFFF81001000, 2, 50, before=20),
    bucket(2, "e", 0xFFFFFFFF81002000, 1, 7),
    bucket(3, "e", 0xFFFFFFFF81003000, 1, 8, beside=True),
    bucket(4, "t", 0xFF11000001000000, 1, 9),
    bucket(5, "t", 0xFF11000002000000, 1, 11),
    bucket(6, "t", 0xFF11000003000000, 1, 5, user=True),
    {
        "type": "calls", "begun": 121, "tried": 2, "iterations": 3, "switches": 3, "unmatched": 0,
        "last": 6,
        "counts": [
            [0, 10, 0, 2], [0, 6, 0, 1], [1, 5, 1, 2], [2, 20, 1, 2], [3, 7, 2, 1], [4, 8, 3, 1],
            [5, 9, 4, 1], [6, 11, 5, 1], [1, 5, 6, 1],
        ],
    },
    {"type": "end", "errors": []},
]  # fmt: skip


def counted() -> Output:
    return plugin_output.read(json.dumps(record) for record in RECORDS)


def test_parts() -> None:
    boot = calls.boot(counted(), Symbols(KALLSYMS), X86_64)
    read = boot[CALL, "read"]
    assert (read.times, read.instructions, read.before, read.each) == (2, 50, 20, 25.0)
    assert read.functions == {"vfs_read": 40, "__x64_sys_read": 10}
    assert boot[OWN, "its own code"].instructions == 26
    assert boot[FAULT, "page fault"].instructions == 7
    assert boot[BESIDE, "interrupt: apic timer"].instructions == 8
    assert boot[LATER, "kworker"].instructions == 11
    assert boot[BESIDE, "idle"].instructions == 9
    assert boot[BESIDE, "iopath's own process"].instructions == 5
    assert boot[EVERY, WHOLE].instructions == 26 + 50 + 7 + 11


def test_requests() -> None:
    """The whole has the functions that were entered, but for those of what is beside."""
    symbols = KALLSYMS.replace("vfs_read", "bio_endio").replace("do_idle", "bio_split")
    boot = calls.boot(counted(), Symbols(symbols), X86_64)
    assert boot[LATER, "another kernel thread"].instructions == 9
    assert (boot[EVERY, WHOLE].counts["completions"], boot[EVERY, WHOLE].counts["splits"]) == (2, 1)
    symbols = KALLSYMS.replace("T __x64_sys_read", "T bio_endio")
    boot = calls.boot(counted(), Symbols(symbols), X86_64)
    assert boot[EVERY, WHOLE].counts == {"completions": 2}


def test_pages_that_are_freed_later_belong_to_exit() -> None:
    """iopath's own process frees them on older kernels, when it waits for the program."""
    symbols = Symbols(
        KALLSYMS + "ffffffff81009000 T __x64_sys_exit_group\nffffffff8100a000 t __free_one_page\n"
    )
    ended = "ffffffff81009000", "ffffffff8100a000"
    records = [
        *RECORDS[:-2],
        *(block(7 + number, int(at, 16), 20) for number, at in enumerate(ended)),
        bucket(7, "c", int(ended[0], 16), 1, 20),
        RECORDS[-2] | {
            "begun": 161, "counts": [*RECORDS[-2]["counts"], [7, 20, 7, 1], [8, 20, 6, 1]],
        },
        RECORDS[-1],
    ]  # fmt: skip
    records[14] = records[14] | {"instructions": 25}  # of iopath's own process
    boot = calls.boot(plugin_output.read(map(json.dumps, records)), symbols, X86_64)
    assert boot[CALL, "exit_group"].instructions == 40
    assert boot[CALL, "exit_group"].functions["__free_one_page"] == 20
    assert boot[BESIDE, "iopath's own process"].instructions == 5
    assert boot[EVERY, WHOLE].instructions == 94 + 40


def test_records() -> None:
    """Figures are means of the boots. A part may be missing in the first one."""
    own: calls.Boot = {(CALL, "read"): Started(2, 50, 20, {"vfs_read": 40, "do [ext4]": 10})}
    first = complete(own, 1, {"bios": 3})
    more: calls.Boot = {(LATER, "kworker"): Started(1, 7, 0, {"worker_thread": 7})}
    second = complete(own | more, 1, {"bios": 5})
    name = KernelName(name="a", release="a")
    whole, ios, read, later = calls.records(name, ["dd"], "", [first, second], Layers())
    assert (whole.title, whole.command, whole.boots) == ("the whole", ["dd"], [50, 57])
    assert whole.counts == {"bios": [3, 5]}
    assert (ios.title, ios.path, ios.calls.times) == ("I/O calls", 50, [1, 1])
    assert (read.title, read.path, read.boot_spread) == ("read", 25.0, 0.0)
    assert [(one.name, one.module, one.instructions) for one in read.profile.functions] == [
        ("vfs_read", "", 20.0), ("do", "ext4", 5.0),
    ]  # fmt: skip
    assert sum(read.profile.layers.values()) == 25.0
    assert read.calls == Calls(kind=CALL, times=[2, 2], instructions=[50, 50], before=[20, 20])
    assert (later.boots, later.path, later.profile.functions) == ([0.0, 7.0], 3.5, [])


@pytest.mark.parametrize("name", ["begun", "tried", "iterations", "last"])
def test_what_does_not_add_up_is_refused(name: str) -> None:
    found = counted()
    assert found.calls
    found.calls = replace(found.calls, **{name: getattr(found.calls, name) + 1})
    with pytest.raises(IopathError, match="do not add up"):
        calls.boot(found, Symbols(KALLSYMS), X86_64)


def test_functions() -> None:
    assert calls.functions(KALLSYMS, X86_64).splitlines() == [
        "c 0xffffffff81001000",
        "x 0xffffffff81002000",
        "s 0xffffffff81004000",
        "f 0xffffffff81005000",
    ]


def test_a_table_of_vectors() -> None:
    """The first of each four is for exceptions, which are not told apart."""
    kallsyms = KALLSYMS.replace("__x64_sys_", "__arm64_sys_").replace(
        "asm_exc_page_fault", "vectors"
    )
    lines = calls.functions(kallsyms, AARCH64).splitlines()
    assert lines[:6] == [
        "c 0xffffffff81001000", "x 0xffffffff81002000", "i 0xffffffff81002080",
        "i 0xffffffff81002100", "i 0xffffffff81002180", "x 0xffffffff81002200",
    ]  # fmt: skip
    assert [line[0] for line in lines].count("x") == 4
    boot = calls.boot(counted(), Symbols(kallsyms), AARCH64)
    assert boot[CALL, "read"].times == 2
    assert boot[FAULT, "exception"].instructions == 7


def test_a_new_task_begins_in_assembler() -> None:
    text = calls.functions(KALLSYMS + "ffffffff81009000 T ret_from_fork_asm\n", X86_64)
    assert [line for line in text.splitlines() if line[0] == "f"] == ["f 0xffffffff81009000"]


def test_a_kernel_without_such_functions() -> None:
    with pytest.raises(IopathError, match="no function __x64_sys_"):
        calls.functions(KALLSYMS.replace("__x64_sys_", "__arm64_sys_"), X86_64)
