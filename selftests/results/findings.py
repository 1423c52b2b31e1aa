# SPDX-License-Identifier: GPL-2.0
"""Say where rows of the results that grew most come from.

    build/venv/bin/python selftests/results/findings.py [--output FILE]

Of each: who executes more, the functions, the smallest rung that shows it, and the code of the
largest functions in both sources, as a difference.
"""

import difflib
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from page import main, measure, sums, table

from iopath.base.sources import source_root
from iopath.measure.session import Session
from iopath.results.result import REST, ExactRecord
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings

sys.path.append(str(source_root() / "userspace/iopath/tests"))
from helpers.linux_source import LinuxSource

ABOUT = """\
# Where the largest growth comes from

Made by `selftests/results/findings.py`: reads of 4 KiB that take more instructions on a newer
kernel, or with a scheduler. The smallest rung has at least half of the growth of the function that
grew most. The code is that of Linux, from Debian's packages linux-source. What calls a function
that is not there, or is called from elsewhere, is in the functions around it.
"""
# A rung and a kernel, against a rung and a kernel.
CASES = (
    ("tcm_loop.pread", "6.12", "tcm_loop.pread", "7.2"),
    ("nvme-loop.pread", "6.12", "nvme-loop.pread", "7.2"),
    ("ublk.pread", "6.12", "ublk.pread", "7.2"),
    ("nvme.pread", "6.1", "nvme.pread", "7.3"),
    ("mq.pread", "7.2", "sched.mq-deadline", "7.2"),
    ("mq.pread", "7.2", "sched.kyber", "7.2"),
    ("mq.pread", "7.2", "sched.bfq", "7.2"),
)
SMALLER = ("dio.pread", "mq.pread", "scsi_debug.pread")
SHOWN = 8  # functions of a case
CODE, LINES = 2, 60  # of which the code is shown, and how much of it
FOLDERS = (
    "block/*", "drivers/block/*", "drivers/nvme/*", "drivers/scsi/*.c", "drivers/target/*",
    "include/linux/sched*", "io_uring/*", "kernel/*.c", "kernel/irq/*", "kernel/sched/*",
    "kernel/locking/*", "kernel/rcu/*",
)  # fmt: skip

Records = Mapping[tuple[str, str], ExactRecord]  # by rung and kernel


def grown(before: ExactRecord, after: ExactRecord) -> Counter[str]:
    """By how much each function grew."""
    found = sums(after, "name")
    found.subtract(sums(before, "name"))
    return found


def executed(before: ExactRecord, after: ExactRecord) -> str:
    """Who executes more or less of all, by at least 100 instructions."""
    one, two = before.all_parts or {}, after.all_parts or {}
    parts = {name: two.get(name, 0) - one.get(name, 0) for name in {*one, *two} - {REST}}
    largest = sorted(parts, key=lambda name: -abs(parts[name]))
    return ", ".join(f"{name} {parts[name]:+,.0f}" for name in largest if abs(parts[name]) >= 100)


def smallest(records: Records, case: tuple[str, ...], function: str, by: float) -> str:
    """The shortest rung whose *function* grew by half as much between the same kernels."""
    _, old, rung, new = case
    both = [name for name, kernel in records if kernel == new and (name, old) in records]
    shown = [
        name
        for name in both
        if old != new and grown(records[name, old], records[name, new])[function] >= by / 2
    ]
    return min([*shown, rung], key=lambda name: records[name, new].path)


class Source:
    """The functions in the source of a series."""

    def __init__(self, session: Session, series: str, folder: Path) -> None:
        package = LinuxSource(session, series)
        folder.mkdir()
        patterns = (f"{package.name}/{pattern}" for pattern in FOLDERS)
        package.unpack(folder, "--wildcards", *patterns)
        self._texts = {path: path.read_text(errors="replace") for path in folder.rglob("*.[ch]")}
        self._folder = folder

    def function(self, name: str) -> tuple[str, list[str]]:
        """The file of a function, and its lines; nothing if it is not there, or several are."""
        pattern = re.compile(rf"^[a-z][^;{{}}=#]*?\b{re.escape(name)}\([^;{{}}]*\)\n\{{.*?^\}}$",
                             re.MULTILINE | re.DOTALL)  # fmt: skip
        found = [
            (str(path.relative_to(self._folder)), match[0].splitlines())
            for path, text in self._texts.items()
            if f"{name}(" in text
            for match in pattern.finditer(text)
        ]
        return found[0] if len(found) == 1 else ("", [])


def code(sources: Mapping[str, Source], old: str, new: str, names: Sequence[str]) -> Iterator[str]:
    """How the code of functions differs."""
    shown = 0
    for name in names:
        if shown == CODE:
            return
        (file, before), (place, after) = (sources[one].function(name) for one in (old, new))
        changed = [*difflib.unified_diff(before, after, file, place, f"v{old}", f"v{new}", "", 3)]
        if not changed or not after:
            continue
        shown += 1
        yield f"`{name}()`:\n\n```diff"
        yield "\n".join(changed[:LINES])
        yield "```\n" + (
            "" if len(changed) <= LINES else f"\n({len(changed) - LINES} lines more)\n"
        )


def finding(records: Records, case: tuple[str, ...], sources: Mapping[str, Source]) -> str:
    rung, old, other, new = case
    before, after = records[rung, old], records[other, new]
    by = after.path - before.path
    found = grown(before, after)
    names = sorted(found, key=lambda name: -abs(found[name]))
    first = max(found, key=lambda name: found[name])
    least = smallest(records, case, first, found[first])
    title = f"{other}, {old} to {new}" if old != new else f"{other} and {rung}, {new}"
    rows = [
        [f"`{name}`", *(f"{sums(one, 'name')[name]:,.0f}" for one in (before, after)),
         f"{found[name]:+,.0f}"]
        for name in names[:SHOWN]
    ]  # fmt: skip
    layers = sums(after, "layer")
    layers.subtract(sums(before, "layer"))
    largest = sorted(layers, key=lambda name: -abs(layers[name]))[:3]
    lines = [
        f"## {title}: {by:+,.0f} ({100 * by / before.path:+.0f} %)", "",
        f"From {before.path:,.0f} to {after.path:,.0f} instructions per read. By layer: "
        + ", ".join(f"{name} {layers[name]:+,.0f}" for name in largest) + ".",
        f"Of all, who executes more or less: {executed(before, after) or 'nobody'}.",
        f"The smallest rung that shows it: `{least}`.", "",
        table(["function", "before", "after", "difference"], rows), "",
    ]  # fmt: skip
    if old != new:
        lines += code(sources, old, new, [name for name in names[: 3 * SHOWN] if found[name] > 0])
    return "\n".join(lines)


def document(session: Session, names: Sequence[str]) -> str:
    wanted: dict[str, dict[str, None]] = defaultdict(dict)
    for rung, old, other, new in CASES:
        wanted[old][rung] = wanted[new][other] = None
        for name in SMALLER if old != new else ():
            wanted[old][name] = wanted[new][name] = None
    records = {
        (record.rung, kernel): record
        for kernel, rungs in wanted.items()
        for record in measure(
            session, f"debian:{kernel}", Settings(select([*rungs]), ops=("read",), profile=True)
        )
    }
    with tempfile.TemporaryDirectory() as folder:
        series = {kernel for _, old, _, new in CASES if old != new for kernel in (old, new)}
        sources = {one: Source(session, one, Path(folder) / one) for one in sorted(series)}
        return "\n".join([ABOUT, *(finding(records, case, sources) for case in CASES)])


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__ or "", document, ()))
