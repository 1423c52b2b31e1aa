#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test pathcount: boot a guest whose marked code is known to the instruction,
and check everything in the plugin's output. Prints TAP.

Needs gcc with a static libc, make, nm and qemu-system-x86_64; with --keep also iopath.
"""

import argparse
import collections
import functools
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[2]
LINE, PAGE = 64, 4096

# Region: the body that guest.c runs in it, the instructions it executes in
# user mode with the call that enters it, and the rounds.
EXPECTED = {
    1: ("body_loop", 2003, 10),
    2: ("body_calls", 1303, 10),
    3: ("body_locked", 404, 10),
    4: ("body_indirect", 504, 10),
    5: ("body_long", 40000003, 2),
    6: ("body_fault", 259, 4),
    7: ("body_fault_call", 390, 4),
    8: ("body_fault_rep", 6, 4),
    9: ("body_rep", 7, 2),
    10: ("body_getppid", 403, 10),
    11: ("body_pingpong", 1204, 10),
    12: ("body_retpoline", 804, 10),
    13: ("body_long_indirect", 20000004, 2),
    14: ("body_costly", 1112, 10),
    15: ("body_fault_syscall", 387, 4),
    16: ("body_long_loops", 36000003, 2),
    65535: ("body_lines", 9, 4),
}

# Conditional branches that are taken in a round, of regions that stay in user mode.
TAKEN = {1: 999, 2: 99, 3: 99, 4: 99, 12: 99, 65535: 0}

# Iterations of repeated string instructions, which are not instructions.
ITERATIONS = {8: 65536, 9: 5000000, 14: 64 + 7}

# In guest.c, from one rdtsc to the other: rdtsc, mov, and the two markers.
UNCOUNTED = 4

# A page fault for each page that these regions touch first.
FAULTS = {6: 64, 7: 64, 8: 16, 15: 64}


class Output:
    """The plugin's output, sorted."""

    def __init__(self, path: Path) -> None:
        self.blocks = {}
        self.rounds = collections.defaultdict(list)
        self.nodes = collections.defaultdict(dict)
        self.contexts = collections.defaultdict(dict)
        self.median = {}
        self.flat = {}
        self.types = []
        with path.open(encoding="ascii") as file:
            for line in file:
                item = json.loads(line)
                self.types.append(item["type"])
                if item["type"] == "pathcount":
                    self.header = item
                elif item["type"] == "region":
                    self.median[item["region"]] = item["median_round"]
                elif item["type"] == "block":
                    self.blocks[item["block"]] = item
                elif item["type"] == "round":
                    self.rounds[item["region"]].append(item)
                elif item["type"] == "node":
                    self.nodes[item["region"]][item["node"]] = item
                elif item["type"] == "context":
                    self.contexts[item["region"]][item["context"]] = item
                elif item["type"] == "flat":
                    self.flat[item["region"]] = item
                elif item["type"] == "end":
                    self.end = item

    def total(self, region: int, columns: Iterable[str], context: int | None = None) -> int:
        """Instructions that the nodes of a region add up to."""
        return sum(
            executed * times
            for node in self.nodes[region].values()
            for column in columns
            for _, executed, times, *_ in node[column]
            if context in (None, node["context"])
        )

    def flat_total(self, region: int, user_of_the_task: bool = False) -> int:
        """Instructions of a flat region; or the task's in user mode."""
        return sum(
            executed * times
            for block, executed, context, times in self.flat[region]["counts"]
            if not user_of_the_task or (not context and not is_kernel(self.blocks[block]["addr"]))
        )

    def kinds(self, region: int, column: str) -> collections.Counter[str]:
        """How many instructions of each kind were executed in user mode."""
        count = collections.Counter()
        for node in self.nodes[region].values():
            for block, executed, times, *_ in node[column]:
                if not is_kernel(self.blocks[block]["addr"]):
                    for kind in self.blocks[block]["kinds"][:executed]:
                        count[kind] += times
        return count

    def accesses(self, region: int, column: str) -> tuple[int, int]:
        """Memory reads and writes of a region."""
        rows = [row for node in self.nodes[region].values() for row in node[column]]
        return self.count("reads", rows), self.count("writes", rows)

    def count(self, name: str, rows: Iterable[list[int]]) -> int:
        """A count of executed blocks. Those at the end of a row that are 0 are not written."""
        at = 3 + self.header["counts"].index(name)
        return sum(sum(row[at : at + 1]) for row in rows)

    def strings(self, region: int, column: str) -> int:
        """Bytes of repeated string instructions in user mode."""
        return self.count(
            "strings",
            (
                row
                for node in self.nodes[region].values()
                for row in node[column]
                if not is_kernel(self.blocks[row[0]]["addr"])
            ),
        )

    def times(self, region: int, column: str, addr: int) -> int:
        """How often the instruction at an address was executed."""
        count = 0
        for node in self.nodes[region].values():
            for block, executed, times, *_ in node[column]:
                if addr in self.addresses(block, executed):
                    count += times
        return count

    def addresses(self, block: int, executed: int) -> Iterator[int]:
        """The addresses of the first instructions of a block."""
        pc = int(self.blocks[block]["addr"], 16)
        for length in self.blocks[block]["lens"][:executed]:
            yield pc
            pc += length

    def code_places(self, region: int, column: str, size: int) -> int:
        """Distinct lines or pages, of *size* bytes, of user code."""
        places = set()
        for node in self.nodes[region].values():
            for block, executed, *_ in node[column]:
                item = self.blocks[block]
                start = int(item["addr"], 16)
                end = start + sum(item["lens"][:executed]) - 1
                if not is_kernel(item["addr"]):
                    places.update(range(start // size, end // size + 1))
        return len(places)

    def path(self, region: int, node: int | None) -> list[int]:
        """Addresses of a node and its callers, outermost first."""
        path = []
        while node is not None:
            item = self.nodes[region][node]
            path.insert(0, int(item["addr"], 16))
            node = item["parent"]
        return path


def is_kernel(addr: str) -> bool:
    return int(addr, 16) >> 63 == 1


class Tap:
    """Numbers and prints results."""

    def __init__(self) -> None:
        self.number = 0
        self.failed = 0

    def check(self, faults: list[str], name: str) -> None:
        """A check with the list of its faults; it passes if there are none."""
        self.number += 1
        self.failed += bool(faults)
        print(f"{'not ok' if faults else 'ok'} {self.number} - {name}")
        for fault in faults[:5]:
            print(f"# {fault}")
        if len(faults) > 5:
            print(f"# and {len(faults) - 5} more")
        sys.stdout.flush()


def differs(what: str, is_: object, should: object) -> list[str]:
    return [] if is_ == should else [f"{what}: {is_}, should be {should}"]


# The checks. Each returns a list of faults.


def check_rounds(output: Output) -> list[str]:
    return [
        fault
        for region, (body, _, rounds) in EXPECTED.items()
        for fault in differs(body, len(output.rounds[region]), rounds)
    ]


def check_user(output: Output, expected: dict[int, tuple[str, int, int]]) -> list[str]:
    """The task's instructions in user mode, exactly, in every round."""
    faults = []
    for region, (body, user, rounds) in expected.items():
        for item in output.rounds[region][:rounds]:
            is_ = sum(share[1] for share in item["contexts"] if not share[0])
            faults += differs(f"{body} round {item['round']}", is_, user)
    return faults


def check_clock(output: Output, ticks: dict[int, list[int]]) -> list[str]:
    """The guest's clock has the same count, up to a constant."""
    faults = []
    for region, (body, _, rounds) in EXPECTED.items():
        faults += differs(f"{body}: ticks", len(ticks[region]), rounds)
        for item, tick in zip(output.rounds[region], ticks[region], strict=False):
            faults += differs(
                f"{body} round {item['round']}: ticks over {item['instructions']} instructions",
                tick - item["instructions"] - item["iterations"],
                UNCOUNTED,
            )
    return faults


def check_sums(output: Output) -> list[str]:
    """Nodes, contexts and rounds add up to each other."""
    faults = []
    for region, rounds in output.rounds.items():
        total = sum(item["instructions"] for item in rounds)
        faults += differs(
            f"region {region}: nodes", output.total(region, ("quiet", "disturbed")), total
        )
        quiet = sum(i["instructions"] for i in rounds if i["quiet"])
        faults += differs(f"region {region}: quiet nodes", output.total(region, ("quiet",)), quiet)
        for context in output.contexts[region]:
            share = sum(
                user + kernel
                for item in rounds
                for number, user, kernel in item["contexts"]
                if number == context
            )
            faults += differs(
                f"region {region} context {context}",
                output.total(region, ("quiet", "disturbed"), context),
                share,
            )
        for item in rounds:
            faults += differs(
                f"region {region} round {item['round']}: contexts",
                sum(share[1] + share[2] for share in item["contexts"]),
                item["instructions"],
            )
    return faults


def others(item: dict[str, Any]) -> int:
    """The instructions of other tasks in a round."""
    return sum(user + kernel for context, user, kernel in item["contexts"] if context == 1)


def check_median(output: Output, waits: Container[int] = ()) -> list[str]:
    """In regions that wait, the rounds are compared without the instructions of other tasks. Where
    all rounds count lines, the shortest is taken."""
    faults = []
    for region, rounds in output.rounds.items():
        own = [item["instructions"] - (others(item) if region in waits else 0) for item in rounds]
        quiet = sorted(count for count, item in zip(own, rounds, strict=True) if item["quiet"])
        number = output.median[region]
        if not quiet:
            faults += differs(f"region {region}", number, None)
            continue
        middle = 0 if "lines" in rounds[-1] else (len(quiet) - 1) // 2
        faults += differs(f"region {region}: median", own[number], quiet[middle])
        faults += differs(
            f"region {region}: nodes of the median round",
            output.total(region, ("median",)),
            rounds[number]["instructions"],
        )
    return faults


def check_unmatched(output: Output) -> list[str]:
    return [
        f"region {region} round {item['round']}: {item['unmatched']}"
        for region, rounds in output.rounds.items()
        for item in rounds
        if item["unmatched"]
    ]


def check_tree(output: Output, symbols: dict[str, int]) -> list[str]:
    """leaf and mid are below their callers, with the right number of calls."""
    body, leaf, mid = (symbols[s] for s in ("body_calls", "leaf", "mid"))
    calls = collections.Counter()
    for node in output.nodes[2]:
        path = output.path(2, node)
        if path[-1] not in (leaf, mid):
            continue
        for block, executed, times, *_ in output.nodes[2][node]["median"]:
            if path[-1] in output.addresses(block, executed):
                calls[tuple(path[path.index(body) :])] += times
    return differs(
        "calls", dict(calls), {(body, leaf): 100, (body, mid): 100, (body, mid, leaf): 200}
    )


def check_kinds(output: Output) -> list[str]:
    faults = []
    for region, kind, count in (
        (3, "L", 200),
        (4, "C", 101),
        (2, "c", 400),
        (2, "r", 401),
        (1, "b", 1000),
        (10, "s", 100),
        (8, "R", 1),
        (14, "T", 200),
        (14, "S", 100),
        (14, "P", 200),
        (14, "F", 300),
        (14, "R", 2),
    ):
        faults += differs(
            f"{EXPECTED[region][0]}: kind {kind}", output.kinds(region, "median")[kind], count
        )
    return faults


def check_iterations(output: Output) -> list[str]:
    """The clock counts each iteration of a repeated string instruction, and the instruction."""
    faults = []
    for region in (1, 14):
        for item in output.rounds[region]:
            faults += differs(
                f"{EXPECTED[region][0]} round {item['round']}: iterations",
                item["iterations"],
                ITERATIONS.get(region, 0),
            )
    # The kernel clears the pages of the first, and ticks come into the second.
    for region, more in ((8, 16 * 4096), (9, 0)):
        for item in output.rounds[region]:
            if not 0 <= item["iterations"] - ITERATIONS[region] - more < 10000:
                faults.append(f"region {region}: {item['iterations']} iterations")
    return faults


def check_strings(output: Output) -> list[str]:
    """The bytes of repeated string instructions, over page faults and interrupts, too."""
    faults = []
    for region, column, count in (
        (8, "median", 65536),
        (9, "disturbed", 2 * 5000000),
        (14, "median", 64 + 7 * 8),
        (3, "median", 0),
    ):
        faults += differs(EXPECTED[region][0], output.strings(region, column), count)
    return faults


def check_faults(output: Output) -> list[str]:
    """Page faults are exceptions of the task, not interrupts."""
    faults = []
    for region, count in FAULTS.items():
        for item in output.rounds[region]:
            faults += differs(
                f"{EXPECTED[region][0]} round {item['round']}: faults", item["faults"], count
            )
    return faults


def check_interrupts(output: Output) -> list[str]:
    """A loop in user mode has no kernel instructions of its own."""
    faults = []
    for region in (5, 9, 13):
        for item in output.rounds[region]:
            what = f"{EXPECTED[region][0]} round {item['round']}"
            faults += differs(f"{what}: quiet", item["quiet"], False)
            faults += differs(
                f"{what}: kernel instructions of the task",
                sum(share[2] for share in item["contexts"] if not share[0]),
                0,
            )
    return faults


def check_switches(output: Output) -> list[str]:
    """Each of 200 blocking system calls switches, and the other task works."""
    faults = []
    for item in output.rounds[11]:
        what = f"body_pingpong round {item['round']}"
        if item["switches"] < 200:
            faults.append(f"{what}: {item['switches']} switches")
        if not any(share[0] == 1 and share[1] and share[2] for share in item["contexts"]):
            faults.append(f"{what}: nothing counted in the other task")
    return faults


def check_slept(output: Output) -> list[str]:
    """Of the regions that wait, body_getppid never switches, and body_pingpong always does."""
    return differs(
        "quiet rounds of body_getppid", [item["quiet"] for item in output.rounds[10]].count(True), 0
    ) + differs(
        "rounds that switch and are not quiet, without an interrupt",
        [i["quiet"] for i in output.rounds[11] if i["entries"] == i["faults"]].count(False),
        0,
    )


def check_retpoline(output: Output, symbols: dict[str, int]) -> list[str]:
    return differs("leaf behind a retpoline", output.times(12, "median", symbols["leaf"]), 100)


def check_lines(output: Output) -> list[str]:
    lines = [item.get("lines") for item in output.rounds[65535][:4]]
    if None in lines[:3] or lines[3] is not None:
        return [f"not the first three rounds have lines: {lines}"]
    return (
        differs("reads and writes", output.accesses(65535, "median"), (5, 2))
        + differs("data lines", lines[2]["data_user"], 6)
        + differs("code lines", lines[2]["code_user"], output.code_places(65535, "median", LINE))
        + differs("kernel lines", (lines[2]["code_kernel"], lines[2]["data_kernel"]), (0, 0))
    )


def check_pages(output: Output) -> list[str]:
    """The page of body_lines' memory and that of the stack, and those of its code."""
    faults = []
    for item in output.rounds[65535][:3]:
        pages, what = item["pages"], f"body_lines round {item['round']}"
        faults += differs(f"{what}: data pages", pages["data_user"], 2)
        count = output.code_places(65535, "median", PAGE)
        faults += differs(f"{what}: code pages", pages["code_user"], count)
        kernel = pages["code_kernel"], pages["data_kernel"]
        faults += differs(f"{what}: kernel pages", kernel, (0, 0))
    return faults


def check_taken(output: Output) -> list[str]:
    """Conditional branches that were taken: of each loop all but the last one."""
    faults, seen = [], set()
    for region, count in TAKEN.items():
        for item in output.rounds[region][:3]:
            if item["quiet"]:
                seen.add(region)
                what = f"{EXPECTED[region][0]} round {item['round']}"
                faults += differs(f"{what}: taken branches", item["taken"], count)
    return faults + differs("regions with a quiet round", seen, set(TAKEN))


def check_model(output: Output) -> list[str]:
    """The first round misses each line and page once. So does a round after other work, which has
    the lines in L2. Rounds in between miss nothing."""
    faults = []
    for item in output.rounds[65535][:3]:
        what, first = f"body_lines round {item['round']}", not item["round"]
        lines, pages = item["lines"], item["pages"]
        misses = {
            "l1i": lines["code_user"], "l1d": lines["data_user"],
            "itlb": pages["code_user"], "dtlb": pages["data_user"],
        }  # fmt: skip
        l2 = (misses["l1i"] + misses["l1d"]) * first
        none = dict.fromkeys(("conditional", "indirect", "returns"), 0)
        # It is entered by an indirect call.
        none["indirect"] = int(first)
        warm = (misses if first else dict.fromkeys(misses, 0)) | {"l2": l2} | none
        faults += differs(f"{what}: warm", item["model"]["warm"], warm)
        faults += differs(f"{what}: cold", item["model"]["cold"], misses | {"l2": l2} | none)
    # A loop of 999 taken branches and one that is not taken. 13 histories are new, then 11 that
    # contain the last round's end. The end is never predicted.
    mispredicted = [item["model"]["warm"]["conditional"] for item in output.rounds[1][:3]]
    return faults + differs("body_loop: mispredicted", mispredicted, [14, 12, 1])


def check_flat_user(output: Output) -> list[str]:
    """Known code counts the same as in a call tree."""
    faults = differs("regions", sorted(output.flat), sorted(EXPECTED))
    for region, (body, user, rounds) in EXPECTED.items():
        faults += differs(f"{body}: rounds", output.flat[region]["rounds"], rounds)
        is_ = output.flat_total(region, user_of_the_task=True)
        faults += differs(body, is_, user * rounds)
    return faults


def check_flat_clock(output: Output, ticks: dict[int, list[int]]) -> list[str]:
    """The guest's clock has the same count for all contexts together, interrupts and exceptions
    included."""
    faults = []
    for region, (body, _, rounds) in EXPECTED.items():
        item = output.flat[region]
        pairs = zip(ticks[region], item["each"], strict=True)
        over = [clock - counted[0] - counted[1] for clock, counted in pairs]
        faults += differs(f"{body}: ticks over instructions", over, [UNCOUNTED] * rounds)
        sums = output.flat_total(region), item["iterations"], item["switches"]
        for at, what in enumerate(sums):
            faults += differs(f"{body}: sum {at}", sum(part[at] for part in item["each"]), what)
        entries = collections.Counter()
        for *_, entered in item["each"]:
            entries.update(dict(entered))
        whole = {context: times for context, _, times in item["entries"] if times}
        faults += differs(f"{body}: entries of each", dict(entries), whole)
    return faults


def check_flat_entries(output: Output) -> list[str]:
    """Each page fault is an entry; the tick, in long regions, is another."""
    faults = []
    found = {
        region: {address: times for _, address, times in item["entries"] if times}
        for region, item in output.flat.items()
    }
    ticks = set(found[5])
    if not ticks:
        faults.append("body_long: no tick")
    for region, count in FAULTS.items():
        others = {
            address: times for address, times in found[region].items() if address not in ticks
        }
        faults += differs(EXPECTED[region][0], list(others.values()), [count * EXPECTED[region][2]])
    if output.flat[11]["switches"] < 200 * EXPECTED[11][2]:
        faults.append(f"body_pingpong: {output.flat[11]['switches']} switches")
    return faults


def check_flat_parts(output: Output) -> list[str]:
    """Parts add up to all but the task; page faults and ticks are the interrupted task's, and the
    other task of a region is one thread that has been in user space. A page fault in a block that a
    system call ends is executed by the task."""
    faults = []
    page_fault = {address for _, address, times in output.flat[6]["entries"] if times >= 64}
    for region, (body, _, _) in EXPECTED.items():
        item = output.flat[region]
        beside = sum(executed * times for _, executed, context, times in item["counts"] if context)
        faults += differs(f"{body}: parts", sum(part[-1] for part in item["parts"]), beside)
        entries = {address for _, address, times in item["entries"] if times}
        if body == "body_fault_syscall":
            entries -= page_fault
        found = {address for _, kind, address, *_ in item["parts"] if kind == "e"}
        faults += differs(f"{body}: entries", found, entries)
    parts = output.flat[11]["parts"]
    threads = [place for place, (_, kind, *_) in enumerate(parts) if kind == "t"]
    in_user = [place for place in threads if [place, "r", "0x0"] in [part[:3] for part in parts]]
    faults += differs("body_pingpong: programs", len(in_user), 1)
    return faults


def check_end(output: Output, **counts: int) -> list[str]:
    faults = differs("first line", output.types[0], "pathcount")
    faults += differs("last line", output.types[-1], "end")
    for name in (
        "nested_begin",
        "end_without_begin",
        "region_not_ended",
        "no_begin",
        "not_followed",
    ):
        faults += differs(name, output.end[name], counts.get(name, 0))
    return faults + differs("errors", len(output.end["errors"]), len(counts))


def check_program(work: Path, *sources: Path) -> list[str]:
    """A test in C of files of the plugin: it prints a line for each fault."""
    includes = [f"-I{HERE.parent}", f"-I{HERE.parents[2]}/kernel/include"]
    build(["gcc", "-O2", "-Wall", "-Werror", *includes, "-o", work / "program", *sources])
    done = subprocess.run([work / "program"], text=True, stdout=subprocess.PIPE, check=False)
    return done.stdout.splitlines() or differs("status", done.returncode, 0)


# The guest.


def cpio_entry(name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> bytes:
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08x" % field for field in fields)
    head += name.encode() + b"\0"
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


def build(command: Sequence[str | Path]) -> None:
    try:
        subprocess.run(command, check=True, stdout=sys.stderr)
    except (OSError, subprocess.SubprocessError) as error:
        bail_out(error)


def build_initrd(work: Path) -> dict[str, int]:
    build(
        [
            "gcc",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-static",
            "-mno-red-zone",
            f"-I{TOP}/kernel/include",
            "-o",
            work / "init",
            HERE / "guest.c",
        ]
    )
    (work / "initrd").write_bytes(
        cpio_entry("dev", 0o40755)
        + cpio_entry("dev/console", 0o20600, device=(5, 1))
        + cpio_entry("dev/ttyS1", 0o20600, device=(4, 65))
        + cpio_entry("init", 0o100755, (work / "init").read_bytes())
        + cpio_entry("TRAILER!!!", 0)
    )
    out = subprocess.run(
        ["nm", work / "init"], check=True, text=True, stdout=subprocess.PIPE
    ).stdout
    return {
        line.split()[2]: int(line.split()[0], 16)
        for line in out.splitlines()
        if len(line.split()) == 3
    }


def qemu(
    args: argparse.Namespace,
    work: Path,
    name: str,
    options: str | None = None,
    append: str = "",
) -> str:
    """Boot the guest, with the plugin and *options* of it if they are not None; returns its output.
    With --keep, a guest that was given the same before is not booted; its output is."""
    command = [
        args.qemu,
        "-M",
        "q35",
        "-accel",
        "tcg",
        "-cpu",
        "max",
        "-m",
        "1G",
        "-smp",
        "1",
        "-icount",
        "shift=0,sleep=off",
        "-nodefaults",
        "-display",
        "none",
        "-no-reboot",
        "-seed",
        "1",
        "-rtc",
        "base=2026-01-01,clock=vm",
        "-serial",
        f"file:{work / name}.console",
        "-serial",
        f"file:{work / name}.results",
        "-kernel",
        args.kernel,
        "-initrd",
        work / "initrd",
        "-append",
        f"console=ttyS0 nokaslr mitigations=off panic=-1 {append}",
    ]
    said = [f"{name}.results", f"{name}.console"]
    if options is not None:
        said.append(f"{name}.json")
        command += ["-plugin", f"{args.plugin},out={work}/{name}.json{options}"]
    if args.keep:
        again = functools.partial(boot, args, work, name, command)
        find_or_boot(args, work, command, said, again)
    else:
        boot(args, work, name, command)
    return (work / f"{name}.results").read_text()


def find_or_boot(
    args: argparse.Namespace,
    work: Path,
    command: Sequence[str | Path],
    said: Sequence[str],
    boot: Callable[[], None],
) -> None:
    """Copy the files that a guest *said* from the cache to *work*, or have it say them now."""
    from iopath.base.arch import X86_64
    from iopath.base.cache import Cache, cache_root, digest_file
    from iopath.guest.machine import Qemu

    booted = False

    def make(folder: Path) -> None:
        nonlocal booted
        boot()
        for file in said:
            shutil.copy(work / file, folder)
        booted = True

    program = Path(shutil.which(args.qemu) or bail_out(f"{args.qemu}: no such program"))
    inputs = {
        "command": [str(word).replace(str(work), "") for word in command],
        "qemu": Qemu.started_by((str(program),), program, X86_64).digest,
        "files": [digest_file(Path(file)) for file in (work / "init", args.kernel, args.plugin)],
    }
    entry = Cache(cache_root()).entry("passed", inputs, make)
    if not booted:
        for file in said:
            shutil.copy(entry / file, work)
        args.found += 1


def boot(args: argparse.Namespace, work: Path, name: str, command: Sequence[str | Path]) -> None:
    """Boot the guest, until its end."""
    try:
        subprocess.run(command, check=True, timeout=args.timeout)
    except (OSError, subprocess.SubprocessError) as error:
        bail_out(f"boot '{name}': {error}")
    results = (work / f"{name}.results").read_text()
    if not results.replace("\r", "").endswith("done\n"):
        console = (work / f"{name}.console").read_text(errors="replace")
        for line in console.splitlines()[-20:]:
            print(f"# {line}")
        bail_out(f"boot '{name}': the guest did not get to its end")


def bail_out(why: str) -> NoReturn:
    print(f"Bail out! {why}")
    sys.exit(1)


def refused(args: argparse.Namespace, options: str, text: str, smp: str = "1") -> list[str]:
    """QEMU does not start, and one line says why."""
    done = subprocess.run(
        [
            args.qemu,
            "-accel",
            "tcg",
            "-smp",
            smp,
            "-nodefaults",
            "-display",
            "none",
            "-S",
            "-plugin",
            f"{args.plugin}{options}",
        ],
        stderr=subprocess.PIPE,
        text=True,
        timeout=1800,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("pathcount: ")]
    if done.returncode and len(lines) == 1 and text in lines[0]:
        return []
    return [f"status {done.returncode}: {done.stderr.strip()}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", required=True, help="vmlinuz to boot")
    parser.add_argument("--plugin", help="pathcount.so; default: build it")
    parser.add_argument("--qemu", default="qemu-system-x86_64")
    parser.add_argument(
        "--keep",
        action="store_true",
        help="keep what guests say in iopath's cache, and boot none again that is given the same",
    )
    parser.set_defaults(found=0)
    parser.add_argument("--timeout", type=int, default=3600, help="seconds for one boot")
    args = parser.parse_args()
    if not Path(args.kernel).is_file():
        parser.error(f"--kernel {args.kernel}: not a file; give the path of a vmlinuz")
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="pathcount-") as name:
        work = Path(name)
        for decoder in sorted((HERE.parent / "arch").glob("*.c")):
            faults = check_program(work, HERE / f"decode_{decoder.name}", decoder)
            tap.check(faults, f"instructions of {decoder.stem} are decoded")
        faults = check_program(work, HERE / "model.c", HERE.parent / "model.c")
        tap.check(faults, "the model counts known sequences as by hand")
        others = [HERE.parent / name for name in ("flow.c", "model.c", "arch.c")]
        faults = check_program(work, HERE / "flow.c", *others, *(HERE.parent / "arch").glob("*.c"))
        tap.check(faults, "a tick before clac is followed")
        symbols = build_initrd(work)
        if not args.plugin:
            build(["make", "-s", "-C", HERE.parent, f"O={work}"])
            args.plugin = work / "pathcount.so"
        run(args, tap, work, symbols)
    print(f"1..{tap.number}")
    if args.found:
        print(f"# guests not run again: {args.found}")
    return 1 if tap.failed else 0


def run(
    args: argparse.Namespace,
    tap: Tap,
    work: Path,
    symbols: dict[str, int],
) -> None:
    plain = qemu(args, work, "plain")
    counted = qemu(args, work, "counted", "")
    ticks = collections.defaultdict(list)
    for line in counted.split("\n"):
        if len(line.split()) == 2:
            region, tick = map(int, line.split())
            ticks[region].append(tick)
    output = Output(work / "counted.json")
    counted_rounds = [item for rounds in output.rounds.values() for item in rounds]

    tap.check(
        differs("results", counted == plain, True), "the guest runs the same with and without"
    )
    tap.check(check_end(output), "the output is whole and without errors")
    tap.check(check_rounds(output), "all rounds of all regions are there")
    tap.check(check_user(output, EXPECTED), "known code counts exactly")
    planted = {
        region: (body, user + (region == 11), rounds)
        for region, (body, user, rounds) in EXPECTED.items()
    }
    tap.check(
        differs("rounds found wrong", len(check_user(output, planted)), EXPECTED[11][2]),
        "one instruction more or less would be found",
    )
    tap.check(check_clock(output, ticks), "the guest's clock says the same")
    tap.check(check_sums(output), "nodes, contexts and rounds add up")
    tap.check(check_median(output), "the median round is the median")
    tap.check(check_unmatched(output), "every return has its call")
    tap.check(check_tree(output, symbols), "the call tree is exact")
    tap.check(check_kinds(output), "kinds of instructions are counted")
    tap.check(check_iterations(output), "iterations of string instructions are told apart")
    tap.check(check_strings(output), "bytes of string instructions are counted")
    tap.check(check_faults(output), "page faults are told from interrupts")
    tap.check(check_interrupts(output), "interrupts are told from the task")
    tap.check(check_switches(output), "tasks are told from each other")
    tap.check(check_retpoline(output, symbols), "a retpoline is followed")

    qemu(args, work, "flat", ",flat=1")
    output = Output(work / "flat.json")
    tap.check(check_end(output), "flat: the output is whole and without errors")
    tap.check(check_flat_user(output), "flat: known code counts exactly")
    tap.check(check_flat_clock(output, ticks), "flat: the guest's clock says the same")
    tap.check(check_flat_entries(output), "flat: entries and switches are counted")
    tap.check(check_flat_parts(output), "flat: what others executed adds up, by who did")

    # The kernel's mitigations bring retpolines and calls without return. To start with another
    # timer than the local APIC's takes half the time.
    qemu(
        args,
        work,
        "faults",
        ",lines=3,lines=5:1,model=1,interrupts=5:any,waits=10,waits=11",
        "faults=1 mitigations=auto noapictimer",
    )
    output = Output(work / "faults.json")
    tap.check(
        check_end(output, nested_begin=1, end_without_begin=1, region_not_ended=1),
        "nested, missing and superfluous markers are reported",
    )
    tap.check(check_user(output, EXPECTED), "and do not disturb the counts")
    tap.check(check_unmatched(output), "every return has its call, with mitigations")
    tap.check(check_sums(output), "nodes, contexts and rounds add up, with mitigations")
    tap.check(check_median(output, (10, 11)), "rounds that wait are compared without other tasks")
    tap.check(check_slept(output), "a round that did not wait is not quiet")
    tap.check(check_lines(output), "cache lines, reads and writes")
    of_region = ["lines" in item for item in output.rounds[5]]
    tap.check(
        differs("rounds with lines", (of_region[:2], sum(of_region)), ([True, False], 1)),
        "the rounds of one region whose cache lines are counted",
    )
    tap.check(check_pages(output), "pages of code and data")
    tap.check(check_taken(output), "branches that are taken are told from others")
    tap.check(check_model(output), "the model misses what is known")
    quiet = [item["quiet"] for item in output.rounds[5]]
    entries = [item["entries"] > item["faults"] for item in output.rounds[5]]
    tap.check(
        differs("quiet, interrupted", (all(quiet), all(entries)), (True, True)),
        "where any interrupts belong to a round, it is quiet",
    )
    tap.check(
        differs("modelled", {"model" in item for item in counted_rounds}, {False}),
        "without the option, no round is modelled",
    )

    qemu(args, work, "unmarked", "", "unmarked=1 noapictimer")
    tap.check(
        check_end(Output(work / "unmarked.json"), no_begin=1), "a guest without markers is reported"
    )

    out = f",out={work}/refused.json"
    tap.check(refused(args, "", "out=PATH"), "no output: refused")
    tap.check(refused(args, out + ",colour=red", "colour=red"), "an unknown option: refused")
    tap.check(refused(args, out + ",lines=-1", "lines=-1"), "a bad value: refused")
    tap.check(refused(args, out + ",lines=5:0", "lines=5:0"), "no rounds of a region: refused")
    tap.check(refused(args, out + ",model=2", "model=2"), "a model that is none: refused")
    tap.check(
        refused(args, out + ",interrupts=5:all", "interrupts=5:all"),
        "interrupts that are no number: refused",
    )
    tap.check(
        refused(args, out + ",waits=65536", "waits=65536"),
        "a region that waits and that there is not: refused",
    )
    tap.check(
        refused(args, out + ",flat=65536", "flat=65536"),
        "a region that there is not: refused",
    )
    tap.check(
        refused(args, f",out={work}/none/x", "No such file"),
        "an output that cannot be written: refused",
    )
    tap.check(refused(args, out, "at most 8", smp="9"), "nine CPUs: refused")


if __name__ == "__main__":
    sys.exit(main())
