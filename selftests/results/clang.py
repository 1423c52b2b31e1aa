# SPDX-License-Identifier: GPL-2.0
"""Compare what GCC and Clang make of the path of an I/O.

    build/venv/bin/python selftests/results/clang.py [--output FILE] [KERNEL ...]

A kernel is one of Debian's, whose source is built with the minimal configuration, or one that is
built from a repository, as iopath names it. Both compilers build each of them. This one has
Debian's configuration, without what clang.config names:

    git:build/linux@HEAD[config=debian:7.2+selftests/results/clang.config]
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from page import main, table
from peak import repository

from iopath.compare.changes import ExactChange, ExactRungChange
from iopath.compare.compare import compare
from iopath.kernels.recipe import LLVM, MINIMAL
from iopath.kernels.sources.debian import DebianKernel
from iopath.measure.session import Session
from iopath.results.layers import Layers
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings

KERNEL = "debian:7.2"
SPLIT = ("dio.pread", "raw.pread")  # the rungs that are shown by functions
FUNCTIONS = 20  # of those that differ most

ABOUT = """\
# GCC against Clang

Made by `selftests/results/clang.py`: instructions per read of 4 KiB, of one source, built by
the GCC and the Clang of Debian 13. The modules are built by the compiler of the kernel.

In the tables by functions, a function that only one of the kernels calls at some place is counted
there with its caller on both sides. The last column names it, and the compiler that inlines it. So
each row compares what the compilers make of the same source.

The minimal configuration has 800 objects, Debian's without modules 2,700, which take each compiler
hours. `clang.config` leaves out of them what is not in the path, such as ACPI, IPv6, netfilter and
graphics. The script adds this kernel if it is told
`git:build/linux@HEAD[config=debian:7.2+selftests/results/clang.config]`, too.
"""


def row(name: str, one: float, other: float) -> list[str]:
    share = f" ({100 * (other - one) / one:+.1f} %)" if one else ""
    return [name, f"{one:,.2f}", f"{other:,.2f}", f"{other - one:+,.2f}{share}"]


def by_functions(rung: ExactRungChange, change: ExactChange) -> list[list[str]]:
    """The functions that differ most, and what the others differ by."""
    shown, rest = change.functions[:FUNCTIONS], change.functions[FUNCTIONS:]
    rows = [[*row(f"`{one.name}`", one.before, one.after), one.note] for one in shown]
    if rest:
        sums = (sum(getattr(one, side) for one in rest) for side in ("before", "after"))
        rows.append([*row(f"{len(rest)} more that differ", *sums), ""])
    whole = (figure.instructions for figure in rung.figures.values())
    return [*rows, [*row("**all**", *whole), ""]]


def both(name: str) -> list[str]:
    """The names of a kernel that is built by GCC and by Clang."""
    return [name, f"{name[:-1]},{LLVM}]" if name.endswith("]") else f"{name}[{LLVM}]"]


def document(session: Session, kernels: Sequence[str]) -> str:
    settings = Settings(select([]), block_sizes=(4096,), ops=("read", "none"), profile=True)
    parts = [ABOUT]
    for name in kernels:
        kernel = session.find(name)
        if isinstance(kernel, DebianKernel):
            name = repository(session, kernel, Path("build/linux"))
        whole = session.measure(names := both(name), settings)
        gcc, clang = whole.kernels
        found = compare(whole, Layers())
        config = name.partition("config=")[2].strip("]") or MINIMAL
        columns = ["GCC", "Clang", "difference"]
        rungs = {rung.rung: rung for rung in found.rungs}
        rows = [row(rung, *map(one.figure, names)) for rung, one in rungs.items()]
        parts += [f"## Linux {gcc.release}, configuration: {config}", ""]
        parts += [f"{gcc.compiler}; {clang.compiler}.", "", table(["rung", *columns], rows), ""]
        for rung in SPLIT:
            lines = by_functions(rungs[rung], rungs[rung].differences[names[1]])
            head = ["function", *columns, "inlined"]
            parts += [f"### {rung}, by functions", "", table(head, lines), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__ or "", document, [KERNEL]))
