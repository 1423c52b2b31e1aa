# SPDX-License-Identifier: GPL-2.0
"""Say where rows of the results that grew most come from.

    build/venv/bin/python selftests/results/findings.py [--output FILE]

Of each: what changed in requests and tasks, the functions, the smallest rung that shows it, the
cause in words, and the code in Linux's source.
"""

import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from page import main, measure, table
from worst import worst

from iopath.base.errors import IopathError
from iopath.base.sources import source_root
from iopath.compare import attribution
from iopath.compare.attribution import Pair
from iopath.guest.machine import Machine
from iopath.measure.session import Session
from iopath.results.layers import Layers
from iopath.results.result import REST, ExactRecord
from iopath.results.symbol import plain
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings

sys.path.append(str(source_root() / "userspace/iopath/tests"))
from helpers.linux_source import LinuxSource

ABOUT = """\
# Where the largest growth comes from

Made by `selftests/results/findings.py`: reads of 4 KiB that take more instructions on a newer
kernel, or with a scheduler, on one CPU. The smallest rung that shows a case is the shortest one
with at least half of the growth of the function that grew most. The code is that of Linux, from
Debian's packages linux-source.
"""


@dataclass(frozen=True)
class Case:
    """A rung and a kernel, against a rung and a kernel."""

    before: tuple[str, str]
    after: tuple[str, str]

    @property
    def title(self) -> str:
        (rung, old), (other, new) = self.before, self.after
        return f"{other}, {old} to {new}" if old != new else f"{rung} and {other}, {new}"


@dataclass(frozen=True)
class Code:
    """Lines of a function around a text."""

    series: str
    function: str
    text: str


@dataclass(frozen=True)
class Finding:
    """Cases with one cause, in words, and the code that has it. *also* are functions that the words
    name. The cases are measured again with the *control*, words of the kernel's command line, and
    *then* says what this shows. *tried* is what could be."""

    title: str
    cases: Sequence[Case]
    why: str
    tried: str
    code: Sequence[Code]
    also: Sequence[str] = ()
    control: str = ""
    then: str = ""


FINDINGS = (
    Finding(
        "A kworker sleeps after each I/O, and is woken for the next one",
        [
            Case(("tcm_loop.pread", "6.12"), ("tcm_loop.pread", "7.2")),
            Case(("nvme-loop.pread", "6.12"), ("nvme-loop.pread", "7.2")),
            Case(("ublk.pread", "6.12"), ("ublk.pread", "7.2")),
        ],
        """\
The work is the same, but one more task sleeps and is woken per read, and most of the growth is the
scheduler. The worker that ended the I/O has woken the reader. On 6.12, which is
`PREEMPT_VOLUNTARY`, `cond_resched()` after each work item then switches to the reader, and the
worker stays runnable: it finds the next item when the reader sleeps. Debian's 7.2 is
`PREEMPT_LAZY`, where `cond_resched()` does nothing: the tables have `__cond_resched` last. So the
worker finds its list empty and sleeps, and the next read has to wake it. The server of ublk waits
in `io_uring_enter()`, and is woken once more, too.
""",
        """\
What could be tried: `RUN_TO_PARITY` off (`/sys/kernel/debug/sched/features`) tells whether the
worker's protected slice makes the reader wait; a worker could yield once before it goes idle.
""",
        [
            Code("6.12", "process_one_work", "cond_resched();"),
            Code("7.2", "__sched_dynamic_update", "case preempt_dynamic_lazy:"),
        ],
        also=("__cond_resched",),
        control="preempt=full",
        then="""\
Here, `cond_resched()` does nothing on either kernel. With the two targets in memory, 7.2 takes as
many instructions as before: also then, the reader does not preempt the worker. 6.12 takes more than
before: this much of the growth is `cond_resched()`, and what is left is a longer sleep and wake-up,
as of NVMe below. With ublk, 7.2 takes almost as few as 6.12: most of this growth comes with
`PREEMPT_LAZY`.
""",
    ),
    Finding(
        "A sleep and a wake-up take more instructions",
        [Case(("nvme.pread", "6.1"), ("nvme.pread", "7.3"))],
        """\
Wake-ups, switches and interrupts are the same: one sleep of the reader and its wake-up take more
instructions in the scheduler. Dequeueing, picking and enqueueing were taken apart for delayed
dequeue, and each `update_curr()` also charges the fair server. `migrate_disable_switch()` is called
twice, at each switch, and returns at once; its scoped guard and affinity context are set up before
the test.
""",
        """\
What could be tried: the test of `migration_disabled` in `__schedule()`, before the call.
""",
        [
            Code("7.2", "migrate_disable_switch", "migration_disabled"),
            Code("7.2", "update_curr", "dl_server_update("),
        ],
        also=("migrate_disable_switch",),
    ),
    Finding(
        "With a scheduler, a kworker dispatches each request",
        [
            Case(("mq.pread", "7.2"), (f"sched.{name}", "7.2"))
            for name in ("mq-deadline", "kyber", "bfq")
        ],
        """\
A task without a plug gives its request to the scheduler and has a kworker run the queue, even
though nothing else is queued: `blk_mq_run_hw_queue(hctx, true)` is asynchronous for each request
with a scheduler. The read then takes two wake-ups and two switches, of the kworker and of the
reader. The scheduler itself is the smaller part. Requests of a plug are dispatched by the task.
""",
        """\
What could be tried: `false` there, for synchronous requests at least, as `blk_mq_flush_plug_list()`
does; a queue whose driver blocks (`BLK_MQ_F_BLOCKING`) is for a task that may sleep, which this one
is.
""",
        [Code("7.2", "blk_mq_submit_bio", "blk_mq_run_hw_queue(hctx, true);")],
    ),
)
SMALLER = ("dio.pread", "mq.pread", "scsi_debug.pread")
SHOWN = 8  # functions of a case
AROUND = 4  # lines of code before and after
FOLDERS = ("block/*.c", "kernel/*.c")
# What is compared besides instructions: who had to run.
TURNS = ("wake-ups", "context switches", "work items", "interrupts")

Records = Mapping[tuple[str, str], ExactRecord]  # by rung and kernel


def pairs(before: ExactRecord, after: ExactRecord) -> list[Pair]:
    """The functions, those that grew most first. Those that were renamed are one."""
    names = ({plain(one.name) for one in record.profile.functions} for record in (before, after))
    found = attribution.pair(before.profile, after.profile, Layers().renamed(*names))
    return sorted(found, key=lambda pair: -pair.changes["instructions"])


def executed(before: ExactRecord, after: ExactRecord) -> str:
    """Who executes more or less of all, by at least 100 instructions."""
    one, two = before.all_parts or {}, after.all_parts or {}
    parts = {name: two.get(name, 0) - one.get(name, 0) for name in {*one, *two} - {REST}}
    names = sorted(parts, key=lambda name: -abs(parts[name]))
    return ", ".join(f"{name} {parts[name]:+,.0f}" for name in names if abs(parts[name]) >= 100)


def smallest(records: Records, case: Case, most: Pair) -> str:
    """The shortest rung in which the function that grew most grew by half as much between the same
    kernels."""
    (_, old), (rung, new) = case.before, case.after
    shown = [rung]
    for name in SMALLER if old != new else ():
        found = pairs(records[name, old], records[name, new])
        by = sum(one.changes["instructions"] for one in found if one.name == most.name)
        if by >= most.changes["instructions"] / 2:
            shown.append(name)
    return min(shown, key=lambda name: records[name, new].path)


class Source:
    """The functions in the source of a series."""

    def __init__(self, session: Session, series: str, folder: Path) -> None:
        package = LinuxSource(session, series)
        folder.mkdir()
        patterns = (f"{package.name}/{pattern}" for pattern in FOLDERS)
        package.unpack(folder, "--wildcards", *patterns)
        self._texts = {path: path.read_text(errors="replace") for path in folder.rglob("*.c")}
        self._folder = folder

    def excerpt(self, code: Code) -> str:
        """The lines of a function around a text."""
        head = rf"^[a-z][^;{{}}=#]*?\b{re.escape(code.function)}\([^;{{}}]*"
        pattern = re.compile(head + r"\n\{.*?^\}$", re.MULTILINE | re.DOTALL)
        for path, text in self._texts.items():
            for match in pattern.finditer(text) if f"{code.function}(" in text else ():
                lines = match[0].splitlines()
                at = next((n for n, line in enumerate(lines) if code.text in line), None)
                if at is not None:
                    shown = "\n".join(lines[max(at - AROUND, 0) : at + AROUND + 1])
                    place = path.relative_to(self._folder)
                    return f"`{code.function}()` of {code.series}, {place}:\n\n```c\n{shown}\n```\n"
        raise IopathError(f"{code.function}() of {code.series} has no '{code.text}'")


def turns(records: Records, finding: Finding) -> str:
    """What each case costs, and how often tasks ran."""
    rows = []
    for case in finding.cases:
        one, two = records[case.before], records[case.after]
        counts = (f"{one.counts[name][0]:.2f} to {two.counts[name][0]:.2f}" for name in TURNS)
        rows.append(
            [case.title, f"{one.path:,.0f}", f"{two.path:,.0f}",
             f"{100 * (two.path / one.path - 1):+.0f} %", *counts]
        )  # fmt: skip
    return table(["per read", "before", "after", "", *TURNS], rows)


def details(records: Records, case: Case, also: Sequence[str]) -> Iterator[str]:
    before, after = records[case.before], records[case.after]
    found = pairs(before, after)
    renames = case.before[1] != case.after[1]
    rows = [
        [
            f"`{one.name}`" + (f" ({one.note})" if renames and one.note else ""),
            *(f"{counts['instructions']:,.0f}" for counts in (one.before, one.after)),
            f"{one.changes['instructions']:+,.0f}",
        ]
        for number, one in enumerate(found)
        if number < SHOWN or one.name in also
    ]
    layers = ", ".join(
        f"{layer.layer} {layer.difference:+,.0f}" for layer in attribution.by_layer(found)[:3]
    )
    yield f"### {case.title}: {after.path - before.path:+,.0f}\n"
    yield f"By layer: {layers}."
    yield f"Of all, who executes more or less: {executed(before, after) or 'nobody'}."
    yield f"The smallest rung that shows it: `{smallest(records, case, found[0])}`.\n"
    yield table(["function", "before", "after", "difference"], rows) + "\n"


def measured(
    session: Session, cases: Iterable[Case], smaller: Sequence[str], machine: Machine
) -> Records:
    """The records of *cases*, and of *smaller* rungs on their kernels."""
    wanted: dict[str, dict[str, None]] = defaultdict(dict)
    for case in cases:
        for rung, kernel in (case.before, case.after):
            wanted[kernel][rung] = None
            for name in smaller if case.before[1] != case.after[1] else ():
                wanted[kernel][name] = None
    settings = Settings([], ops=("read",), machine=machine, profile=True)
    return {
        (record.rung, kernel): record
        for kernel, rungs in wanted.items()
        for record in measure(
            session, f"debian:{kernel}", replace(settings, rungs=select([*rungs]))
        )
    }


def controlled(session: Session, finding: Finding) -> Iterator[str]:
    """The cases of a finding with its control."""
    if finding.control:
        machine = Machine()
        machine = replace(machine, cmdline=f"{machine.cmdline} {finding.control}")
        yield f"The same with `--cmdline '{machine.cmdline}'`:\n"
        yield turns(measured(session, finding.cases, (), machine), finding) + "\n"
        yield finding.then


def document(session: Session, names: Sequence[str]) -> str:
    cases = [case for finding in FINDINGS for case in finding.cases]
    records = measured(session, cases, SMALLER, Machine())
    parts = [ABOUT]
    with tempfile.TemporaryDirectory() as folder:
        series = {code.series for finding in FINDINGS for code in finding.code}
        sources = {one: Source(session, one, Path(folder) / one) for one in sorted(series)}
        for finding in FINDINGS:
            parts += [f"## {finding.title}\n", turns(records, finding) + "\n", finding.why]
            parts += [*controlled(session, finding), finding.tried]
            parts += (sources[code.series].excerpt(code) for code in finding.code)
            parts += (
                part for case in finding.cases for part in details(records, case, finding.also)
            )
    return "\n".join([*parts, worst()])


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__ or "", document, ()))
