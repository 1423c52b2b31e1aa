# SPDX-License-Identifier: GPL-2.0
"""The pages and charts that iopath makes, with figures as long and as many as real ones: those of
Documentation/results/five-kernels.md, by their functions."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from helpers import tracking
from helpers.counted import a_program
from helpers.examples import BOOTS, Stack, a_record, a_result
from helpers.shared_lines import shared
from iopath.base.sources import source_root
from iopath.compare import compare
from iopath.counts.calls import Boot, Started, complete
from iopath.results.layers import Layers
from iopath.results.result import ExactResult, alone, make
from iopath.results.symbol import Symbol
from iopath.results.syscalls import CALL, FAULT, LATER
from iopath.show import charts, page, picture
from iopath.studies import featurechart
from iopath.studies.features import Cost
from iopath.track import site, store

RESULTS = source_root() / "Documentation/results"
KERNELS = ("debian:5.10", "debian:6.1", "debian:6.12", "debian:7.2", "debian:7.3")
PAIR = ("debian:6.1", "debian:7.2")
_DEFERRED = {"buf.pread": 61.0, "mq.pread": 7.4}  # of writes, by kernel


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]


def _number(text: str) -> float:
    return float(text.replace(",", ""))


@cache
def _known() -> tuple[dict[str, dict[str, float]], dict[tuple[str, str], dict[str, float]]]:
    """The figure of each rung by kernel, and what is known of its functions, by rung and kernel."""
    figures: dict[str, dict[str, float]] = {}
    functions: dict[tuple[str, str], dict[str, float]] = {}
    _, _, text = (RESULTS / "five-kernels.md").read_text().partition("### Figures")
    for section in text.split("\n### "):
        lines = section.splitlines()
        head = re.match(r"(.*): (\S+) to (\S+)$", lines[0])
        rows = [_cells(line) for line in lines if line.startswith("| ") and "---" not in line]
        for name, *cells in rows:
            if not head and name:
                figures[name] = dict(zip(KERNELS, map(_number, cells), strict=True))
            elif head and re.fullmatch(r"[\w.]+( \[\w+\])?", name) and name != "function":
                for kernel, cell in zip(head.groups()[1:], cells, strict=False):
                    functions.setdefault((head[1], kernel), {})[name] = _number(cell)
    return figures, functions


def _stacks(rung: str, kernel: str, figure: float) -> Iterator[Stack]:
    """A profile: the functions that are known, within others."""
    _, functions = _known()
    left, layers = figure, Layers()
    own = functions[rung, KERNELS[0]] | functions.get((rung, kernel), {})
    for number, (name, count) in enumerate(own.items()):
        if 0 < count < left:
            layer = layers.of(Symbol(name.split(" ")[0]))
            above = ("loop [user]", "do_syscall_64", "vfs_read", "new_sync_read")[: 1 + number % 4]
            yield (*above, name), layer, count
            left -= count
    yield ("loop [user]", "entry_SYSCALL_64_after_hwframe"), "system call entry", left


def _seen(number: int) -> list[str]:
    """Requests of a kernel: merged, or each plug of 16 from its end; some writes, and flushes."""
    if number % 2 == 0:
        return [f"{'RW'[at % 5 == 4]} {4096 + 256 * at} 256" for at in range(128)]
    return ["F 0 0" if at % 16 == 15 else f"R {4096 + 256 * (at ^ 15)} 64" for at in range(128)]


@cache
def result(*kernels: str) -> ExactResult:
    """The ladder of some of KERNELS."""
    figures, functions = _known()
    made: list[dict[str, Any]] = []
    for rung, by_kernel in figures.items():
        name, op, *_ = [*rung.split(), "none"]
        if (rung, KERNELS[0]) not in functions:
            continue
        for number, kernel in enumerate(kernels):
            stacks = list(_stacks(rung, kernel, by_kernel[kernel] - 0.07))
            record = a_record(kernel, name, op, 0 if op == "none" else 4096, stacks)
            if op == "write" and name in _DEFERRED:
                later = record["with_deferred"] + number * _DEFERRED[name]
                record |= {"with_deferred": later, "with_deferred_boots": [later] * BOOTS}
            if rung.startswith("dio.uring read"):
                record["requests"] = {"who": {}, "seen": _seen(number)}
            made.append(record)
    whole = shared(a_result(made))
    for number, kernel in enumerate(whole["kernels"]):
        kernel["compiler"] = (
            f"gcc-{12 + number} (Debian {12 + number}.2.0-14+deb12u1) {12 + number}.2.0"
        )
        kernel["config"] |= {
            f"BLK_FEATURE_OF_A_LONG_NAME_{at}": "ny"[at % (number + 2) > 0] for at in range(9)
        }
    return make(whole)


def compared(*kernels: str) -> str:
    whole = result(*kernels)
    return page.render(whole, compare.compare(whole, Layers()), Layers())


_CALLS = (
    ("execve", 1, 412_345), ("brk", 3, 4_512), ("mmap", 31, 78_120), ("openat", 9, 31_022),
    ("read", 1004, 2_689_000), ("write", 1001, 411_003), ("io_uring_enter", 64, 1_204_551),
    ("setsid", 1, 2_331), ("rt_sigaction", 8, 1_870), ("exit_group", 1, 92_114),
)  # fmt: skip


def _ran(grown: float) -> Boot:
    functions = _known()[1]["dio.pread read 4 KiB", KERNELS[0]]
    share = sum(functions.values())
    parts: Boot = {}
    for at, (call, times, by) in enumerate(_CALLS):
        scale = by * (grown if at % 3 else 1) / share
        found = {f: count for f, n in functions.items() if (count := round(n * scale))}
        parts[CALL, call] = Started(times, sum(found.values()), times * 40, found)
    faults = round(212 * 1900 * grown)
    parts[FAULT, "page fault"] = Started(212, faults, 0, {"handle_mm_fault": faults})
    for what in ("blk_mq_run_work_fn", "wb_workfn", "vmstat_update"):
        parts[LATER, f"kworker: {what}"] = Started(4, 40_000, 0, {what: 40_000})
    return complete(parts)


def program(*kernels: str) -> str:
    """dd, on some kernels."""
    command = ["dd", "if=/dev/blknull0", "of=/dev/null", "bs=4k", "count=1000", "iflag=direct"]
    ran = {name: [_ran(1 + 0.055 * number)] for number, name in enumerate(kernels)}
    whole = a_program(ran, command)
    return page.render(whole, compare.compare(whole, Layers()) if len(kernels) > 1 else None)


def _costs() -> Iterator[Cost]:
    text = (RESULTS / "features.md").read_text()
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, *lines = section.splitlines()
        words = title.split()
        rows = [_cells(line) for line in lines if line.startswith("| ")]
        for name, *cells in rows[1:]:
            for kernel, cell in zip(rows[0][1:4], cells, strict=False):
                known = re.fullmatch(r"[-+][\d,.]+", cell.rstrip("?"))
                yield Cost(
                    kernel=kernel, feature=name, about="", rung=words[-2], op=words[-1],
                    layer=words[0] == "layers", tracer=words[0] == "tracers",
                    difference=_number(known[0]) if known else 0.0,
                    missing="" if known else "the kernel lacks it",
                )  # fmt: skip


# The pages, and the elements that have the answer of each.
PAGES: dict[str, tuple[Callable[[Path], str], str]] = {
    "two kernels": (lambda _: compared(*PAIR), ".verdict"),
    "five kernels": (lambda _: compared(*KERNELS), ".verdict"),
    "run": (lambda _: program(PAIR[0]), "h1, .heat tbody tr:first-child"),
    "run two kernels": (lambda _: program(*PAIR), ".verdict"),
    "track": (lambda folder: tracked(folder), "#answer"),
}


def pages(folder: Path) -> dict[str, str]:
    """All pages."""
    return {name: make(folder) for name, (make, _) in PAGES.items()}


def drawn(folder: Path) -> dict[str, Path]:
    """The charts, as files."""
    whole = result(*KERNELS)
    figures = {
        "ladder": charts.ladder(whole),
        "history": charts.history(whole),
        "picture": picture.draw(whole),
        "features": featurechart.chart([*_costs()]),
    }
    made = {name: folder / f"{name}.svg" for name in figures}
    for name, figure in figures.items():
        charts.save(figure, made[name])
    return made


_WATCHED = """
title = "What an I/O costs on Debian's kernels"
[[watch]]
name = "debian"
kernels = ["debian:7.3"]
[[watch]]
name = "block"
kernels = ["git:linux@v6.12..for-next"]
"""
_VERSIONS = (
    ("bullseye", "5.10.262-1"), ("bookworm", "6.1.192-2"), ("trixie", "6.12.118-1"),
    ("trixie", "7.2.12-1~bpo13+1"), ("trixie", "7.3.4-1~bpo13+1"),
)  # fmt: skip
_SAME = ("preadv", "fixed", "mq", "splice", "batch", "aio.1 ")  # rungs that are left out


def tracked(folder: Path) -> str:
    """A site of Debian's kernels and of a branch. A kernel of Debian has too few boots."""
    tracking.keep(folder, [tracking.a_point(number) for number in range(8)], planted=5)
    whole = result(*KERNELS)
    some = [one for one in whole.results if not any(word in one.rung for word in _SAME)]
    for kernel, point in zip(KERNELS, tracking.debian_points(_VERSIONS), strict=True):
        own = alone(replace(whole, results=some), kernel)
        if kernel == KERNELS[-1]:
            few = [replace(one, boots=one.boots[:2], rounds=17) for one in own.results]
            own = replace(own, results=few)
        store.write(folder, replace(point, date="2026-11-15"), own)
    site.write(folder, tracking.config(folder, _WATCHED), tracking.index_of(folder))
    return (folder / site.NAME).read_text()
