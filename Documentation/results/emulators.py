# SPDX-License-Identifier: GPL-2.0
"""Measure the whole ladder with the QEMU of several Debian suites, and write the figures side by
side: they should be equal.

    build/venv/bin/python Documentation/results/emulators.py [--output FILE] [KERNEL...]

The emulators are fetched and not installed. Kernels are as for iopath.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from iopath.base.cache import Cache, cache_root
from iopath.base.progress import Reporter
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


def table(kernel: str, found: Mapping[str, Figures]) -> list[str]:
    """The figures of a kernel, by version of QEMU. Those that differ are marked."""
    first, *others = found.values()
    lines = [
        f"## {kernel}",
        "",
        f"| rung | {' | '.join(f'QEMU {name}' for name in found)} | |",
    ]
    lines.append(f"|---|{'---:|' * len(found)}---|")
    unequal = 0
    for title, figure in first.items():
        row = [figure, *(other[title] for other in others)]
        unequal += differ(row)
        mark = f"{max(row) - min(row):.2f}" if differ(row) else ""
        lines.append(f"| {title} | {' | '.join(f'{one:,.2f}' for one in row)} | {mark} |")
    lines += ["", f"{len(first) - unequal} of {len(first)} figures are equal to {EQUAL}.", ""]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    default = Path(__file__).with_suffix(".md")
    parser.add_argument("--output", type=Path, default=default, metavar="FILE")
    parser.add_argument("kernels", nargs="*", default=KERNELS, metavar="KERNEL")
    args = parser.parse_args()
    session = Session(Cache(cache_root()), Reporter(Console(stderr=True)))
    lines = [
        "# One figure under each version of QEMU",
        "",
        "Made by `Documentation/results/emulators.py`: instructions per I/O with the QEMU of"
        f" Debian's {', '.join(SUITES)}. The last column says by how much figures differ, if by"
        f" more than {EQUAL}.",
        "",
    ]
    for kernel in args.kernels:
        lines += table(kernel, dict(measure(session, kernel, suite) for suite in SUITES))
    args.output.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
