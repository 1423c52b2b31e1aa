# SPDX-License-Identifier: GPL-2.0
"""Compare what GCC and Clang make of the path of an I/O.

    build/venv/bin/python selftests/results/clang.py [--output FILE] [KERNEL]

The kernel is one of Debian's. Its source is built four times: by both compilers, with the minimal
configuration and with that of Debian's kernel.
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from page import main, measure, sums, table
from peak import repository

from iopath.base.errors import UsageError
from iopath.kernels.recipe import LLVM
from iopath.kernels.sources.debian import DebianKernel
from iopath.measure.session import Session
from iopath.results.result import ExactRecord
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings

KERNEL = "debian:7.2"
SPLIT = ("dio.pread", "raw.pread")  # the rungs that are shown by functions
FUNCTIONS = 15  # of those that differ most

ABOUT = f"""\
# GCC against Clang

Made by `selftests/results/clang.py`: instructions per read of 4 KiB, of one source, built by
the GCC and the Clang of Debian 13, with the minimal configuration and with that of Debian's kernel.
The modules are built by the compiler of the kernel.

A function that one compiler inlines is not in the profile of its kernel; its instructions are
counted for the functions that call it. So the tables by functions have three parts: functions that
both kernels call, and those that only one calls. The last two are what the compilers inline
differently. The {FUNCTIONS} functions of each that differ most are named.
"""

Records = Mapping[str, ExactRecord]


def rungs(session: Session, kernel: str) -> Records:
    settings = Settings(select([]), block_sizes=(4096,), ops=("read",), profile=True)
    return {record.rung: record for record in measure(session, kernel, settings)}


def row(name: str, one: float, other: float) -> list[str]:
    share = f" ({100 * (other - one) / one:+.1f} %)" if one else ""
    return [name, f"{one:,.2f}", f"{other:,.2f}", f"{other - one:+,.2f}{share}"]


def part(title: str, names: set[str], gcc: Counter[str], clang: Counter[str]) -> list[list[str]]:
    """The rows of some functions: their sum, and those that differ most."""
    order = sorted(names, key=lambda name: (-abs(clang[name] - gcc[name]), name))
    total = (sum(counts[name] for name in names) for counts in (gcc, clang))
    shown = [name for name in order if clang[name] != gcc[name]][:FUNCTIONS]
    return [
        row(f"**{title}: {len(names)}**", *total),
        *(row(f"`{name}`", gcc[name], clang[name]) for name in shown),
    ]


def by_functions(gcc: ExactRecord, clang: ExactRecord) -> list[list[str]]:
    one, other = sums(gcc, "name"), sums(clang, "name")
    return [
        *part("called in both", one.keys() & other.keys(), one, other),
        *part("inlined by Clang", one.keys() - other.keys(), one, other),
        *part("inlined by GCC", other.keys() - one.keys(), one, other),
        row("**all**", one.total(), other.total()),
    ]


def document(session: Session, kernels: Sequence[str]) -> str:
    name = kernels[0]
    kernel = session.find(name)
    if len(kernels) > 1 or not isinstance(kernel, DebianKernel):
        raise UsageError("invalid kernels: must be one of Debian's")
    at = repository(session, kernel, Path.cwd() / "build/linux")
    parts = [ABOUT]
    for title, config in (("Minimal configuration", ""), ("Debian's configuration", name)):
        words = [f"config={config}"] if config else []
        gcc, clang = (
            rungs(session, f"{at}[{','.join([*words, *more])}]" if words or more else at)
            for more in ([], [LLVM])
        )
        columns = ["GCC", "Clang", "difference"]
        rows = [
            row(rung, gcc[rung].instructions_per_io, clang[rung].instructions_per_io)
            for rung in gcc
            if rung in clang
        ]
        parts += [f"## {title}", "", table(["rung", *columns], rows), ""]
        for rung in SPLIT:
            found = by_functions(gcc[rung], clang[rung])
            parts += [f"### {rung}, by functions", "", table(["function", *columns], found), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__ or "", document, [KERNEL]))
