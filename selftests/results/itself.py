# SPDX-License-Identifier: GPL-2.0
"""Compare kernels with themselves: with other seeds, nothing may differ and all be decided.

    build/venv/bin/python selftests/results/itself.py [--sets N] [--size small|large]
        [--rung PATTERN]... [KERNEL...]

A set is the boots of a kernel that compare makes, with seeds of their own. Each is compared with
each other, as `compare --fail-above 0` does. Exits with 1 if any pair differs. What was measured
before is not measured again, so that more sets can follow.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence

from page import table
from rich.console import Console

from iopath.base.cache import Cache, cache_root
from iopath.base.errors import IopathError
from iopath.base.progress import Reporter
from iopath.compare import limits
from iopath.compare.compare import compare_all
from iopath.compare.noise import BOOTS
from iopath.guest.machine import Machine
from iopath.measure.session import Session
from iopath.results import layers
from iopath.results.result import Result
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings

KERNELS = ("debian:6.1", "debian:7.2")
SIZES = {"small": ("4 KiB", (4096,)), "large": ("64 KiB and 1 MiB", (65536, 1 << 20))}


def differences(one: Result, other: Result) -> Iterator[str]:
    """What differs between two sets of a kernel, or is not decided, in words."""
    comparison = compare_all([("one", one), ("other", other)], layers.table(None), anyway=True)
    (name,) = comparison.comparison.others
    for rung in comparison.comparison.rungs:
        title = comparison.comparison.title(rung)
        if name not in rung.differences:
            yield f"{title}: only one set has it"
            continue
        for metric, change in rung.differences[name].judged.items():
            if change.verdict != "same":
                yield f"{title}: {metric} {change.verdict}, {change.difference:+,.2f}"
    grown, unknown = limits.regressions(comparison.comparison, 0.0, [])
    yield from (*grown, *unknown)


def compared(session: Session, kernel: str, settings: Settings, sets: int) -> tuple[int, list[str]]:
    """How many pairs of sets there are, and what differs between any."""
    measured = [
        session.results(
            [kernel],
            Settings(
                settings.rungs, block_sizes=settings.block_sizes, boots=BOOTS, profile=True,
                machine=Machine(seed=1 + BOOTS * number),
            ),
        )[kernel]
        for number in range(sets)
    ]  # fmt: skip
    pairs = [*itertools.combinations(measured, 2)]
    return len(pairs), [text for pair in pairs for text in differences(*pair)]


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--sets", type=int, default=7, metavar="N")
    parser.add_argument("--size", choices=SIZES, help="(default: both)")
    parser.add_argument("--rung", action="append", default=[], metavar="PATTERN")
    parser.add_argument("kernels", nargs="*", default=KERNELS, metavar="KERNEL")
    args = parser.parse_args(argv)
    reporter = Reporter(Console(stderr=True))
    session = Session(Cache(cache_root(), reporter.warn), reporter)
    wanted = [SIZES[args.size]] if args.size else [*SIZES.values()]
    rows, every = [], []
    try:
        for kernel, (size, sizes) in itertools.product(args.kernels, wanted):
            settings = Settings(select(args.rung), block_sizes=sizes)
            pairs, found = compared(session, kernel, settings, args.sets)
            rows.append([kernel, size, str(pairs), str(len(found))])
            every += [f"{kernel}, {size}: {text}" for text in found]
    except IopathError as error:
        print(f"itself.py: {error}", file=sys.stderr)
        return 1
    print(table(["kernel", "size", "pairs", "differences"], rows), *every, sep="\n")
    return bool(every)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
