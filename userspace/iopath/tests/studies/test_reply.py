# SPDX-License-Identifier: GPL-2.0
"""The reply to a series that came by mail."""

import shlex
from datetime import UTC, datetime

import pytest

from helpers.examples import STACKS, a_record, a_result
from helpers.shared_lines import a_boot, a_line, merged
from iopath.compare import compare, shared_writes
from iopath.kernels.mail import Mail, Series
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import ExactResult
from iopath.studies import reply
from iopath.studies.series import SeriesCommit

COMMAND = "iopath series --from-mail 0@example.org --onto 'git:linux@0123[A=y]' --rung dio.pread"
BROKEN = "does not build: /src/block/bdev.c:1360:1: error: expected declaration specifiers (log: x)"


def a_mail(number: int, last: int, subject: str = "block: a change") -> Mail:
    return Mail(
        b"", f"[PATCH v2 {number}/{last}] {subject} {number}", f"<{number}@example.org>",
        ("<0@example.org>",) if number else (), datetime.now(UTC), 2, number, last, bool(number),
    )  # fmt: skip


def a_commit(number: int, more: int) -> ExactResult:
    """One whose vfs_read takes *more* instructions, in each record."""
    stacks = [*STACKS[:2], (*STACKS[2][:2], 122.0 + more), *STACKS[3:]]
    sizes = (4096, 65536)
    return result.parse(
        a_result([a_record(f"c{number}", "dio.pread", "read", size, stacks) for size in sizes])
    )


def compared(number: int, before: ExactResult, after: ExactResult) -> SeriesCommit:
    (one,), (other,) = before.names, after.names
    whole = compare.join([(one, before), (other, after)])
    comparison = compare.compare(whole, Layers())
    shared = shared_writes.written(whole)
    return SeriesCommit(other, f"patch {number}", "", one, after, comparison, whole, shared)


def a_text(costs: list[int | str], *, always: bool = False, subject: str = "block: a") -> str:
    """The reply to patches that add so many instructions, or fail with an error."""
    patches, total = {0: SeriesCommit("c0", "base", result=a_commit(0, 0))}, 0
    for number, cost in enumerate(costs, 1):
        if isinstance(cost, str):
            patches[number] = SeriesCommit("", f"patch {number}", cost)
        else:
            before = a_commit(number - 1, total)
            total += cost
            patches[number] = compared(number, before, a_commit(number, total))
    last = len(costs)
    thread = Series(a_mail(0, last), [a_mail(n, last, subject) for n in range(1, last + 1)])
    text = reply.text(thread, patches, COMMAND, always=always)
    assert len(text.splitlines()) <= 25, text
    assert max(map(len, text.splitlines()), default=0) <= 72, text
    return text


def test_what_changed_is_said() -> None:
    text = a_text([0, 7, BROKEN, -7, "does not apply: patch failed: block/bio.c:7"])
    assert text.splitlines() == [
        "Subject: Re: [PATCH v2 0/5] block: a change 0",
        "In-Reply-To: <0@example.org>",
        "References: <0@example.org>",
        "",
        "> [PATCH v2 2/5] block: a 2",
        "dio.pread read 4 KiB: path +7.00 (+1.16 %); vfs_read +7.00; 1 rung more",
        "> [PATCH v2 3/5] block: a 3",
        "does not build: block/bdev.c:1360:1: error: expected declaration",
        "specifiers",
        "> [PATCH v2 4/5] block: a 4",
        "dio.pread read 4 KiB: path -7.00 (-1.15 %); vfs_read -7.00; 1 rung more",
        "> [PATCH v2 5/5] block: a 5",
        "does not apply: patch failed: block/bio.c:7",
        "",
        "Measured, not timed: instructions per I/O in emulation. Repeat it with:",
        "  iopath series --from-mail 0@example.org --onto 'git:linux@0123[A=y]' \\",
        "    --rung dio.pread",
    ]
    (command,) = [text.partition(" Repeat it with:\n")[2].replace("\\\n", "")]
    assert shlex.split(command) == shlex.split(COMMAND)


def test_silent_if_nothing_changed() -> None:
    assert a_text([0, 0]) == ""
    assert "\n\nNo patch changes anything.\n\n" in a_text([0, 0], always=True)


def test_a_long_series_is_cut() -> None:
    text = a_text([7] * 30)
    assert "> [PATCH v2 7/30] block: a 7\n" in text
    assert "\n22 more patches that change something\n" in text
    assert len(text.splitlines()) == 25


def test_what_a_block_lacks_is_taken_from_those_after_it() -> None:
    """Seven patches leave room for three further lines."""
    text = a_text([7, BROKEN, BROKEN, 7, BROKEN, BROKEN, 7])
    assert text.count("error: expected declaration\nspecifiers\n") == 3
    assert text.count("error: expected declaration ...\n") == 1


@pytest.mark.parametrize("subject", ["block: größer", "block: " + "long " * 30])
def test_subjects(subject: str) -> None:
    """The character set is said where it matters; what is too long is cut."""
    text = a_text([7], subject=subject)
    assert ("Content-Type: text/plain; charset=utf-8\n" in text) == (not subject.isascii())
    assert f"> [PATCH v2 1/1] {subject[:30].strip()}" in text


def test_headers_of_a_reply() -> None:
    """A long subject is folded, one with other characters is encoded; the thread's first and last
    messages are named."""
    mail = a_mail(3, 8, "block: größer " * 8)
    mail = Mail(**{**vars(mail), "references": ("<a@b>", "<c@d>", "<e@f>")})
    lines = [*reply._headers(mail)]
    assert lines[0].startswith("Subject: =?utf-8?")
    assert all(line.startswith(" =?utf-8?") for line in lines[1:-4])
    assert lines[-4:] == [
        "In-Reply-To: <3@example.org>", "References: <a@b>", " <e@f>", " <3@example.org>",
    ]  # fmt: skip


def test_shared_lines_are_said() -> None:
    line = a_line("bios_submitted", locked=True, by="submit_bio")
    found = []
    for name, lines in (("c0", []), ("c1", [line])):
        record = a_record(name, "dio.pread", "read", 4096)
        record["counts"]["locked"] = [3.0 + len(lines)] * len(record["boots"])
        record |= {"cpus": 2, "sharing": merged([a_boot(lines)] * 7, "dio.pread")}
        found.append(result.parse(a_result([record])))
    patches = {0: SeriesCommit("c0", "base", result=found[0]), 1: compared(1, *found)}
    text = reply.text(Series(a_mail(1, 1), [a_mail(1, 1)]), patches, COMMAND, always=False)
    assert (
        "dio.pread read: path +0.00 (+0.00 %); shared: new bios_submitted:\n"
        "submit_bio; locked +1\n" in text
    )
