# SPDX-License-Identifier: GPL-2.0
"""Measure the whole ladder with the QEMU of several Debian suites, and write the figures side by
side: they should be equal.

    build/venv/bin/python selftests/results/emulators.py [--output FILE] [KERNEL...]

The emulators are fetched and not installed. Kernels are as for iopath.
"""

import sys
from collections.abc import Mapping, Sequence

from page import main, table

from iopath.guest.machine import Machine
from iopath.measure.session import Session
from iopath.results.result import ExactResult
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings

SUITES = ("bookworm", "trixie", "trixie-backports")
KERNELS = ("debian:6.1", "debian:7.2", "debian:6.12-arm64")
EQUAL = 0.01  # instructions per I/O

Figures = Mapping[str, float]  # by the title of a record


def measure(session: Session, kernel: str, suite: str) -> tuple[str, Figures]:
    """The version of a suite's QEMU, and the figures of the ladder with it."""
    settings = Settings(rungs=select(()), machine=Machine(emulator=suite))
    result = session.measure([kernel], settings)
    assert isinstance(result, ExactResult)
    figures = {record.title: record.instructions_per_io for record in result.results}
    return result.qemu.version, figures


def differ(figures: Sequence[float]) -> bool:
    return max(figures) - min(figures) > EQUAL + 1e-9


def section(kernel: str, found: Mapping[str, Figures]) -> str:
    """The figures of a kernel, by version of QEMU. Those that differ are marked."""
    first, *others = found.values()
    rows, unequal = [], 0
    for title, figure in first.items():
        row = [figure, *(other[title] for other in others)]
        unequal += differ(row)
        mark = f"{max(row) - min(row):.2f}" if differ(row) else ""
        rows.append([title, *(f"{one:,.2f}" for one in row), mark])
    return f"""
## {kernel}

{table(["rung", *(f"QEMU {name}" for name in found), "differ by"], rows)}

{len(first) - unequal} of {len(first)} figures are equal to {EQUAL}.
"""


def document(session: Session, kernels: Sequence[str]) -> str:
    sections = [
        section(kernel, dict(measure(session, kernel, suite) for suite in SUITES))
        for kernel in kernels
    ]
    return f"""\
# One figure under each version of QEMU

Made by `selftests/results/emulators.py`: instructions per I/O with the QEMU of Debian's
{", ".join(SUITES)}. The last column says by how much figures differ, if by more than {EQUAL}.
{"".join(sections)}"""


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__ or "", document, KERNELS))
