# SPDX-License-Identifier: GPL-2.0
"""What the scripts of this folder share: each measures, and writes a page of tables."""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rich.console import Console

from iopath.base.cache import Cache, cache_root
from iopath.base.errors import IopathError
from iopath.base.progress import Reporter
from iopath.base.sources import source_root
from iopath.measure.session import Session
from iopath.results.result import ExactRecord, ExactResult
from iopath.rungs.runs import Settings

RESULTS = source_root() / "Documentation/results"


def measure(session: Session, kernel: str, settings: Settings) -> list[ExactRecord]:
    """The records of a kernel."""
    found = session.measure([kernel], settings)
    assert isinstance(found, ExactResult)
    return found.results


def sums(record: ExactRecord, what: str) -> Counter[str]:
    """Instructions per I/O by layer, module or name of the function."""
    found: Counter[str] = Counter()
    for function in record.profile.functions:
        found[getattr(function, what)] += function.instructions
    return found


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def main(
    script: str,
    about: str,
    document: Callable[[Session, Sequence[str]], str],
    kernels: Sequence[str],
) -> int:
    """The command line of a *script*: the kernels, and where its page is written, by default in
    Documentation/results."""
    parser = argparse.ArgumentParser(description=about.partition("\n\n")[0])
    default = RESULTS / f"{Path(script).stem}.md"
    parser.add_argument("--output", type=Path, default=default, metavar="FILE")
    parser.add_argument("kernels", nargs="*", default=kernels, metavar="KERNEL")
    args = parser.parse_args()
    reporter = Reporter(Console(stderr=True))
    try:
        text = document(Session(Cache(cache_root(), reporter.warn), reporter), args.kernels)
    except IopathError as error:
        print(f"{Path(script).name}: {error}", file=sys.stderr)
        return 1
    part = args.output.with_suffix(".part")
    part.write_text(text)
    part.rename(args.output)
    return 0
