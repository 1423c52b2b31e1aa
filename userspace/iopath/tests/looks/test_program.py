# SPDX-License-Identifier: GPL-2.0
"""What a program costs: on the terminal, in Markdown and on the page."""

import io
import re

from rich.console import Console

from helpers.browser import Browser
from helpers.counted import a_boot, a_program
from helpers.parsed import Parsed, rows
from iopath.compare import compare
from iopath.counts.calls import Boot, Started, complete
from iopath.results.layers import Layers
from iopath.results.result import ExactResult
from iopath.results.syscalls import CALL, LATER
from iopath.show import markdown, page, terminal

CALLS: Boot = {(CALL, f"call{n}"): Started(1, 50 - n, 0, {"f": 50 - n}) for n in range(20)}


def shown(whole: ExactResult, *, every: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), width=120, highlight=False)
    if len(whole.names) == 1:
        terminal.show(whole, console, every=every)
    else:
        terminal.show_comparison(compare.compare(whole, Layers()), console)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_one_kernel() -> None:
    whole = a_program({"a": [a_boot(100, more=CALLS)]})
    lines = shown(whole)
    assert lines[0] == (
        "a: dd bs=4k 'a b': I/O calls 1,000 instructions. The whole 1,900 instructions."
    )
    found = {line[:20].strip(): line.split() for line in lines}
    assert found["read"] == ["read", "10", "2.00", "100.00", "1,020", "vfs_read", "100"]
    assert found["9 others (--all)"][3:5] == ["9", "315"]
    assert found["page fault"] == ["page", "fault", "1", "70.00", "70", "handle_mm_fault", "70"]
    assert found["in all"][-1] == "1,900"
    assert lines[-1] == "not in it: idle 1,000"
    assert not any(line.startswith("call19") for line in lines)
    assert any(line.startswith("call19") for line in shown(whole, every=True))


def test_boots() -> None:
    assert shown(a_program({"a": [a_boot(100)] * 2}))[-1] == "2 boots: the same count"
    differ = shown(a_program({"a": [a_boot(100), a_boot(102, fault=71)]}))[-1]
    assert differ == "2 boots differ by 21: read by 20, page fault by 1"


def test_two_kernels() -> None:
    """What is in the whole, by how much it changes that."""
    lines = shown(a_program({"a": [a_boot(100)] * 7, "b": [a_boot(105)] * 7}))
    assert " ".join(lines[:2]).startswith(
        "a to b: dd bs=4k 'a b': I/O calls 1,000 to 1,050 instructions, +5.0 %. read +5.00 a call"
        " (+5.0 %); mostly VFS, +5. The whole 1,090 to 1,140 instructions, +4.6 %. 1 system call:"
        " takes more."
    )
    row = ["read", "10", "100.00", "+5.00", "+5.0", "+50", "VFS", "+5.00"]
    assert [line.split() for line in lines if line.startswith("  read ")] == [row]
    assert "3 parts are the same (--all)" not in lines
    assert "2 parts are the same (--all)" in lines


def starts(count: int, read: int, more: int, ios: int = 0, others: Boot | None = None) -> Boot:
    """A boot of so many reads, with an interrupt each, in a program that starts."""
    parts: Boot = {
        (CALL, "read"): Started(count, count * read, 20, {"vfs_read": count * read}),
        (CALL, "execve"): Started(1, more, 0, {"do_execve": more}),
        (LATER, "interrupt: disk"): Started(count, count * 40, 0, {"handle_irq": count * 40}),
    }
    parts |= others or {}
    return complete(parts, ios, {"requests": count, "bios": 2 * count})


def test_io_comes_first_and_start_last() -> None:
    """Calls take more for each I/O, which a shorter start would hide."""
    whole = a_program({"a": [starts(10, 100, 9000, 8)] * 7, "b": [starts(10, 120, 5000, 8)] * 7})
    said, table = "\n".join(shown(whole)).split("\n\n")[:2]
    assert " ".join(said.split()) == (
        "a to b: dd bs=4k 'a b': 8 I/Os: I/O calls 125.00 to 150.00 instructions per I/O, +20.0 %."
        " read +20.00 a call (+20.0 %); mostly VFS, +20. Start and exit 9,000 to 5,000"
        " instructions, -44.4 %. The whole 10,400 to 6,600 instructions, -36.5 %."
        " 2 system calls: 1 takes more, 1 fewer."
    )
    titles = [line[: line.find("  ", 2)].strip() for line in table.splitlines()[2:-1]]
    assert titles == ["I/O calls", "read", "start and exit", "execve", "the whole"]


def test_sums_are_shown_however_many_parts_differ() -> None:
    """Besides them the parts that change most in all: not a rare call that does I/O."""
    rare: Boot = {(CALL, "fsync"): Started(1, 9, 0, {"f": 9})}
    longer: Boot = {key: Started(1, 900, 0, {"f": 900}) for key in CALLS}
    ran = {
        "a": [starts(10, 100, 9000, others=CALLS)],
        "b": [starts(10, 120, 5000, others=longer | rare)],
    }
    titles = [line.split("  ")[0] for line in shown(a_program(ran)) if line[:1] != " "]
    assert {"I/O calls", "start and exit", "the whole"} <= {*titles}
    assert sum(title.startswith("call") for title in titles) == 8
    assert not any("fsync" in line for line in shown(a_program(ran))[4:])


def test_calls_and_requests_that_are_more() -> None:
    """Without the program's own count, I/O is counted in requests; if these differ, in all."""
    whole = a_program({"a": [starts(10, 100, 9000)] * 7, "b": [starts(20, 100, 9000)] * 7})
    said = " ".join("\n".join(shown(whole)).split("\n\n")[0].split())
    assert said.startswith(
        "a to b: dd bs=4k 'a b': I/O calls 1,000 to 2,000 instructions, +100.0 %. read: 10 to 20"
        " calls, +1,000 instructions. interrupt: disk: 10 to 20 times, +400 instructions."
        " Requests 10 to 20, bios 20 to 40. Start and exit 9,000 to 9,000 instructions"
    )
    whole = a_program({"a": [starts(10, 100, 9000)] * 7, "b": [starts(10, 110, 9000)] * 7})
    said = " ".join("\n".join(shown(whole)).split("\n\n")[0].split())
    assert "10 requests: I/O calls 100.00 to 110.00 instructions per request, +10.0 %." in said
    (first, *_) = shown(a_program({"a": [starts(10, 100, 9000, 8)]}))
    assert first == (
        "a: dd bs=4k 'a b': 8 I/Os: I/O calls 125.00 instructions per I/O. Start and exit 9,000"
        " instructions. The whole 10,400"
    )


def test_noise_of_what_varies() -> None:
    """It is printed where boots differ, and only there."""
    boots = [starts(10, 120, 5000 + more) for more in (0, 40, -30, 10, 0, 20, -40)]
    lines = shown(a_program({"a": [starts(10, 100, 5000)] * 7, "b": boots}))
    rows = {line.split()[0]: line for line in lines if line.startswith("  ")}
    assert "+20.00 " in rows["read"]
    assert "±" not in rows["read"]
    lines = shown(a_program({"a": [starts(10, 100, 9000)] * 7, "b": boots}))
    (row,) = (line for line in lines if line.startswith("  execve"))
    assert re.search(r"-4,000\.00 ±\d+\.\d\d ", row)


def test_a_part_that_a_kernel_lacks() -> None:
    brk: Boot = {(CALL, "brk"): Started(2, 50, 0, {"do_brk": 50})}
    whole = a_program({"a": [a_boot(100)], "b": [a_boot(100, more=brk)]})
    (row,) = (line.split() for line in shown(whole) if line.startswith("  brk"))
    assert row == ["brk", "0", "to", "2", "0.00", "+25.00?", "+50", "other", "+25"]
    parsed = Parsed(drawn(whole))
    assert ["brk 2 times", "0.00", "25.00", "+50?", "other +25"] in parsed.rows


def test_markdown() -> None:
    whole = a_program({"a": [a_boot(100)] * 7, "b": [a_boot(105)] * 7})
    text = markdown.markdown(whole, compare.compare(whole, Layers()))
    assert text.splitlines()[0] == "## Instructions of dd bs=4k 'a b'"
    (row,) = (line for line in text.splitlines() if line.startswith("| read ") and "VFS" in line)
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    assert cells == ["read", "+5.00 (+5.0 %)", "+50 (+5.0 %)", "VFS +5.00"]
    assert "idle" not in text


# The page.


def drawn(whole: ExactResult) -> str:
    comparison = compare.compare(whole, Layers()) if len(whole.names) > 1 else None
    return page.render(whole, comparison)


def test_page() -> None:
    parsed = Parsed(drawn(a_program({"a": [a_boot(100)] * 7, "b": [a_boot(105)] * 7})))
    assert "a to b: dd bs=4k 'a b': I/O calls 1,000 to 1,050 instructions, +5.0 %" in parsed.text
    assert parsed.rows[:6] == [
        ["call", "a", "b", "change in all", "most of it, each time"],
        ["I/O calls", "1,000.00", "1,050.00", "+50 (+5.0 %)", "VFS +50"],
        ["read 10 times", "100.00", "105.00", "+50 (+5.0 %)", "VFS +5.00"],
        ["its own code", "20.00", "20.00", "same", ""],
        ["page fault once", "70.00", "70.00", "same", ""],
        ["the whole", "1,090.00", "1,140.00", "+50 (+4.6 %)", "VFS +50"],
    ]


def test_what_changes_most_in_all_is_first() -> None:
    """A rare call that changed by more per cent is below it, and has less colour."""
    found = {
        name: [a_boot(read, more={(CALL, "setsid"): Started(1, once, 0, {"f": once})})] * 7
        for name, read, once in (("a", 1000, 20), ("b", 1055, 64), ("c", 990, 20))
    }
    parsed = Parsed(drawn(a_program(found)))
    assert [row[0].split()[0] for row in parsed.rows[2:4]] == ["read", "setsid"]
    assert parsed.rows[2][1:] == ["1,000.00", "1,055.00 +550 (+5.5 %)", "990.00 -650 (-6.2 %)"]
    heat = [int(value[7:-1]) for name, value in parsed.attributes if value.startswith("--heat")]
    assert heat[4] > heat[7] > heat[3] == 0


def test_a_name_opens_its_functions(browser: Browser) -> None:
    browser.open(drawn(a_program({"a": [a_boot(100)], "b": [a_boot(105)]})))
    browser.run('document.querySelector(\'.heat a[href*="/read/0"][href*="against=a"]\').click()')
    browser.wait("document.querySelector('#about').textContent.startsWith('read')")
    (row,) = (row for row in rows(browser, "#view table") if row[0].startswith("vfs_read"))
    assert row[1:4] == ["100.00", "105.00", "+5.00"]
    assert browser.run("document.querySelector('#more').textContent") == ""
