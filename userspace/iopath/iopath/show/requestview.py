# SPDX-License-Identifier: GPL-2.0
"""What became of requests: how many, how large, in what order, and who did it; a screen of text for
each rung, or for a program."""

import io
import statistics
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from iopath.compare.changes import Comparison, ExactChange
from iopath.results.iorequests import LATER, TASK
from iopath.results.metrics import METRICS, REQUESTS
from iopath.results.result import ExactRecord, ExactResult, Row, size_text
from iopath.show import texts
from iopath.show.console import put, put_text
from iopath.show.table import Table

_WIDTH = 80
_BAR = 10  # columns of a histogram
_SECTOR = 512

# What belongs together.
_SECTIONS = (
    ("system calls", "folios", "readaheads"),
    ("bios", "splits", "plug merges", "scheduler merges", "merged bios", "completions"),
    ("requests", "device requests", "sectors", "segments", "out of order", "requeues"),
    ("plug flushes", "queue runs", "cache flushes", "device flushes", "FUA writes"),
    ("interrupts", "wake-ups", "context switches", "work items"),
)
SHOWN = tuple(name for names in _SECTIONS for name in names)
_NONE = (
    "No requests were counted: the result is older than the metrics of requests, or the kernel's"
    " functions are inlined.\n"
)
_ALWAYS = ("bios", "requests")  # even if there are none
_THREADS = ("kworker ", "thread ")


def render(shown: tuple[ExactResult, Comparison | None]) -> str:
    """A screen for each rung of a result; if it is compared, also what changed."""
    result, comparison = shown
    file = io.StringIO()
    console = Console(file=file, width=_WIDTH, highlight=False)
    for row in result.rows():
        found = [(name, row.records.get(name)) for name in result.names]
        counted = [(name, record) for name, record in found if record and _means(record)]
        if not counted:
            continue
        put_text(console, f"{row.title}, per I/O" if row.rung else result.command)
        for name, record in counted:
            put_text(console, f"{name}: {story(record)}")
        for text in _changes(row, comparison):
            put_text(console, text)
        put(console, Text(), _table(counted), Text())
    return file.getvalue() or _NONE


def _changes(row: Row[ExactRecord], comparison: Comparison | None) -> Iterator[str]:
    """What became of requests, against the first kernel."""
    for name, change in (comparison.of(row.key) if comparison else {}).items():
        if isinstance(change, ExactChange) and change.requests:
            yield f"{name}: {change.requests}"


def _means(record: ExactRecord) -> dict[str, float]:
    """The metrics of requests, mean of the boots."""
    return {
        metric.name: statistics.fmean(boots)
        for metric in REQUESTS
        if (boots := metric.value(record))
    }


def story(record: ExactRecord) -> str:
    """In a line, from the program's call to what the device is given, and by whom."""
    means = _means(record)
    steps = [
        f"{texts.count(means[name])} {name}"
        for name in ("system calls", "folios", "bios", "requests")
        if means.get(name)
    ]
    if sectors := means.get("sectors"):
        kib = sectors * _SECTOR / 1024
        steps[-1] += f" of {kib:,.{0 if kib == round(kib) else 1}f} KiB"
    who = record.requests.who if record.requests else {}
    by = who.get("requests") or who.get("bios") or {}
    if by.keys() - {TASK}:
        steps[-1] += f" ({', '.join(f'{name} {texts.count(part)}' for name, part in by.items())})"
    if by.keys() - {TASK} or means.get("context switches", 0) >= 0.5:
        parts = record.all_parts or {}
        steps += [name for name in parts if name.startswith(_THREADS)][:2]
    return " -> ".join(steps)


def _table(counted: Sequence[tuple[str, ExactRecord]]) -> Table:
    """The metrics, the sizes and who did what, a column for each kernel."""
    table = Table("")
    for name, _ in counted:
        table.number_column(name.replace(":", ":\n") if len(counted) > 2 else name)
    records = [record for _, record in counted]
    means = [_means(record) for record in records]
    resolution = {metric.name: metric.resolution for metric in METRICS}
    for names in _SECTIONS:
        table.add_section()
        for name in names:
            values = [mean.get(name) for mean in means]
            if name in _ALWAYS or any(value and value >= resolution[name] for value in values):
                table.row(name, *("-" if v is None else texts.count(v) for v in values))
    table.add_section()
    _add_who(table, records)
    table.add_section()
    _add_sizes(table, records)
    return table


def _add_who(table: Table, records: Sequence[ExactRecord]) -> None:
    """Who did what, of what more than the task did."""
    who = [record.requests.who if record.requests else {} for record in records]
    for name in dict.fromkeys(name for one in who for name in one):
        by = [one.get(name, {}) for one in who]
        every = dict.fromkeys(part for one in by for part in one)
        for part in every if every.keys() - {TASK} else ():
            title = f"{name}, {part}" if part == LATER else f"{name} by {part}"
            table.row(title, *(texts.count(one.get(part, 0.0)) for one in by))


def _add_sizes(table: Table, records: Sequence[ExactRecord]) -> None:
    """A histogram of what the device was given."""
    sizes = [(record.requests and record.requests.sizes) or [] for record in records]
    longest = max(map(len, sizes))
    for at in range(longest):
        counts = [one[at] if one else 0 for one in sizes]
        if any(counts):
            size = size_text(_SECTOR << (at if at < longest - 1 else at - 1))
            title = f"{'up to' if at < longest - 1 else 'over'} {size}"
            table.row(title, *(_bar(one, count) for one, count in zip(sizes, counts, strict=True)))


def _bar(sizes: Sequence[int], count: int) -> str:
    share = count / (sum(sizes) or 1)
    return f"{'█' * round(share * _BAR)} {100 * share:.1f} %".lstrip()
