# SPDX-License-Identifier: GPL-2.0
"""The page of a program: figures of calls by kernels, and nothing from outside."""

import itertools
from dataclasses import replace

import pytest
from browser import Browser
from cases import cases
from counted import a_boot, a_run
from parsed import OVERLAPS, Parsed, browser, chromium, rows

from iopath.compare import program as changes
from iopath.results.layers import Layers
from iopath.results.program import CALL, MODE, SCHEMA, Part, Ran, Result
from iopath.show import programpage

__all__ = ["browser", "chromium"]

HOSTILE = "</title><script>alert('1')</script>&\"|"


def page(*ran: Ran, command: str = "bs=4k") -> str:
    result = Result(SCHEMA, MODE, "dd", [command], "null", "", "7.2", "iopath-1", "", [*ran])
    comparisons = [changes.compare(ran[0], other, Layers(None)) for other in ran[1:]]
    return programpage.render(result, comparisons)


def a_long_run(name: str, read: int) -> Ran:
    """With a call of many functions, which have long names, and of 30 calls."""
    boot = a_boot(read)
    functions = {f"internal_get_user_pages_fast.part.{n}.isra.0": 100 - n for n in range(40)}
    more = [Part(CALL, f"rt_sigaction{n}", 1000 + n, 1_000_000, 0, {"f": n}) for n in range(30)]
    parts = [*boot.parts, *more, Part(CALL, "mmap", 2, sum(functions.values()), 0, functions)]
    return a_run(name, replace(boot, parts=parts))


def test_two_kernels() -> None:
    parsed = Parsed(page(a_run("a", a_boot(100)), a_run("b", a_boot(105))))
    assert "a to b: 1,090 to 1,140 instructions, +4.6 %" in parsed.text
    assert parsed.rows[:5] == [
        ["call", "times", "a", "b", "change in all", "most of it, each time"],
        ["the whole", "", "1,090", "1,140", "+50 (+4.6 %)", ""],
        ["read", "10", "100.00", "105.00", "+50 (+5.0 %)", "vfs_read +5.00"],
        ["page fault", "1", "70.00", "70.00", "same", ""],
        ["its own code", "", "20.00", "20.00", "same", ""],
    ]
    assert ["vfs_read", "100.00", "105.00", "+5.00"] in parsed.rows


def test_one_kernel_and_a_call_that_another_lacks() -> None:
    parsed = Parsed(page(a_run("a", a_boot(100))))
    assert ["read", "10", "2.00", "100.00", "1,020", "vfs_read 100"] in parsed.rows
    more = a_boot(100)
    more.parts.append(Part(CALL, "brk", 2, 50, 0, {"do_brk": 50}))
    parsed = Parsed(page(a_run("a", a_boot(100)), a_run("b", more)))
    assert ["brk", "2", "-", "25.00", "+50", "do_brk +25.00"] in parsed.rows


def test_what_changes_most_in_all_is_first() -> None:
    """A rare call that changed by more per cent is below it, and has less colour."""
    ran = [
        a_run(name, replace(a_boot(read), parts=[
            *a_boot(read).parts, Part(CALL, "setsid", 1, once, 0, {"f": once})]))
        for name, read, once in (("a", 1000, 20), ("b", 1055, 64), ("c", 990, 20))
    ]  # fmt: skip
    parsed = Parsed(page(*ran))
    assert [row[0] for row in parsed.rows[2:4]] == ["read", "setsid"]
    assert parsed.rows[2][2:] == ["1,000.00", "1,055.00 +550 (+5.5 %)", "990.00 -100 (-1.0 %)"]
    heat = [int(value[7:-1]) for name, value in parsed.attributes if value.startswith("--heat")]
    assert heat[4] > heat[5] > heat[7] > heat[6] == heat[8] == 0


def test_each_function_is_in_a_row() -> None:
    """The least ones are in one."""
    parsed = Parsed(page(a_long_run("a", 100)))
    (rest,) = (row for row in parsed.rows if row[0] == "10 more")
    assert rest == ["10 more", f"{sum(range(61, 71)) / 2:.2f}"]


def test_it_needs_nothing_from_outside_and_names_are_texts() -> None:
    text = page(a_run(HOSTILE, a_boot(100)), command=HOSTILE)
    parsed = Parsed(text)
    assert parsed.tags["script"] == 0
    assert HOSTILE in parsed.text
    links = [value for name, value in parsed.attributes if name in ("src", "href")]
    assert links
    assert all(link.startswith("#") for link in links)
    assert "@import" not in text
    assert "url(" not in text


LAYOUTS = [*itertools.product((390, 1400), ("light", "dark"), (1, 2, 8))]
QUICK = [(390, "light", 8), (1400, "dark", 8), (390, "dark", 1), (1400, "light", 2)]


@pytest.mark.parametrize(("width", "scheme", "kernels"), cases(LAYOUTS, quick=QUICK))
def test_layout(width: int, scheme: str, kernels: int, browser: Browser) -> None:
    """Nothing is wider than the window, lies over another, or is hard to read."""
    ran = [a_long_run(f"debian:6.{number}", 100 + number) for number in range(kernels)]
    browser.window(width)
    browser.media(scheme=scheme)
    browser.open(page(*ran))
    browser.open_details()
    assert browser.inaccessible() == []
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert browser.too_wide() == []
    assert browser.run(OVERLAPS) == []


def test_a_name_opens_its_functions(browser: Browser) -> None:
    browser.open(page(a_run("a", a_boot(100)), a_run("b", a_boot(105))))
    before = rows(browser, "details table")
    browser.run("document.querySelector('a').click()")
    browser.wait("document.querySelector('details[open]') !== null")
    assert before == []
    assert [row[0] for row in rows(browser, "details table")] == ["function", "vfs_read"]
