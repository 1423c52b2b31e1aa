# SPDX-License-Identifier: GPL-2.0
"""The report has the figures, needs nothing from outside, and shows names literally."""

import copy
import json
import re
from collections import Counter
from typing import Any

import pytest

from helpers.browser import Browser
from helpers.examples import COUNTS, STACKS, Stack, a_record, a_result
from helpers.parsed import OVERLAPS, Parsed, labels, rebuild, rows
from helpers.shared_lines import shared
from iopath.compare.changes import ExactComparison
from iopath.compare.exact import compare
from iopath.results.layers import Layers
from iopath.results.result import make, parse
from iopath.show import page
from iopath.show.markdown import markdown

HOSTILE = "</script><script>alert('1')</script>&\"|"

# STACKS changed: one function is new, one gone, one grew, one lost a compiler's suffix.
CHANGED: tuple[Stack, ...] = (
    *STACKS[:2],
    (("loop [user]", "do_syscall_64", "vfs_read"), "VFS", 146.0),
    *STACKS[3:4],
    (("loop [user]", "do_syscall_64", "vfs_read", "gup", "helper"), "page pinning", 24.0),
    (("loop [user]", "do_syscall_64", "vfs_read", "check"), "security", 9.0),
    *STACKS[5:6],
)
DIFFERENCE = 24 + 9 - 7.5


def pair(first: str = "old", second: str = "new") -> dict[str, Any]:
    """A result of two kernels, the second of which is longer on one rung."""
    return a_result(
        [
            a_record(first, "syscall", "none", 0, STACKS[:2]),
            a_record(first, "dio.pread", "read", 4096),
            a_record(second, "syscall", "none", 0, STACKS[:2]),
            a_record(second, "dio.pread", "read", 4096, CHANGED),
        ]
    )


def compared(result: dict[str, Any]) -> ExactComparison:
    return compare(parse(result), Layers())


def test_what_the_tests_use_is_a_result() -> None:
    parse(pair(), "the tests' result")


def test_summary_has_figures_changes_and_verdicts() -> None:
    result = pair()
    parsed = Parsed(page.render(parse(result), compared(result)))
    assert ["rung", "old", "new", "change", "most of it"] in parsed.rows
    assert ["syscall", "43.43", "43.43", "same", ""] in parsed.rows
    change = [f"+{DIFFERENCE:.2f} (+4.2 %)", "VFS +24"]
    assert ["dio.pread read", "601.93", "627.43", *change] in parsed.rows
    assert (
        "2 rungs: 1 takes more, 1 the same. Worst and largest: dio.pread read +25.50 (+4.2 %);"
        " mostly VFS, +24." in parsed.text
    )
    functions = "Functions of dio.pread read: vfs_read +24; check +9 (new); odd -8 (gone)."
    assert functions in parsed.text


def test_without_a_comparison_changes_have_no_verdict() -> None:
    parsed = Parsed(page.render(parse(pair()), None))
    assert ["syscall", "43.43", "43.43", "+0.00 (+0.0 %)", ""] in parsed.rows
    assert ["dio.pread read", "601.93", "627.43", "+25.50 (+4.2 %)", ""] in parsed.rows


def test_what_may_be_noise_is_marked() -> None:
    result = pair()
    for record in result["results"]:
        record["boots"] = record["boots"][:1]
    parsed = Parsed(page.render(parse(result), compared(result)))
    assert parsed.rows[1][2:4] == ["627.43", "+25.50 (+4.2 %)?"]
    assert "--boots 7" in parsed.text
    assert "+25.50 (+4.2 %)?" in markdown(parse(result), compared(result))


def test_header_says_what_was_measured_on_what() -> None:
    result = pair()
    result["kernels"][1]["config"]["PREEMPT"] = "n"
    text = page.render(parse(result), compared(result))
    parsed = Parsed(text)
    for words in ("QEMU 7.2", "CPU max", "nokaslr", "iopath 0", "PREEMPT y/n"):
        assert words in parsed.text
    assert parsed.text.count("compiler\n") + parsed.text.count("compilergcc-12") == 2
    assert ["PREEMPT", "y", "n"] in parsed.rows
    assert text.count('<tr class="differs">') == 1


def test_profiles_are_there_whole() -> None:
    result = pair()
    data = Parsed(page.render(parse(result), compared(result))).data
    assert data["kernels"] == ["old", "new"]
    assert data["counts"] == list(COUNTS)
    assert [rung["title"] for rung in data["rungs"]] == ["syscall", "dio.pread read 4 KiB"]
    assert data["starts"] == [1, 1]  # the one that changed
    for kernel, stacks in enumerate((STACKS, CHANGED)):
        profile = data["rungs"][1]["profiles"][kernel]
        assert rebuild(data, profile["stacks"]) == sorted(
            [";".join(path), count] for path, _, count in stacks
        )
        assert {
            data["names"][row[0]]: (data["layers"][data["layerOf"][row[0]]][0], row[1])
            for row in profile["functions"]
        } == {path[-1]: (layer, count) for path, layer, count in stacks}
        assert profile["total"] == pytest.approx(sum(row[1] for row in profile["functions"]))
    joined = data["rungs"][1]["joined"]["0,1"]
    rows = {
        tuple(data["names"][at] if at >= 0 else "" for at in row[:2]): row[4] - row[3]
        for row in joined["functions"]
    }
    assert rows == {("vfs_read", "vfs_read"): 24, ("", "check"): 9, ("odd", ""): -7.5}
    assert sum(rows.values()) + joined["unattributed"] == pytest.approx(DIFFERENCE)
    by_layer = {data["layers"][row[0]][0]: row[2] - row[1] for row in joined["layers"]}
    assert {name: by for name, by in by_layer.items() if by} == {
        "VFS": 24, "security": 9, "other": -7.5,
    }  # fmt: skip


def test_functions_are_joined_by_the_name_they_are_compared_by() -> None:
    data = Parsed(page.render(parse(pair()), None)).data
    names, canonical = data["names"], data["canonical"]
    assert canonical[names.index("helper.part.0")] == names.index("helper")
    assert canonical[names.index("submit [blknull]")] == names.index("submit [blknull]")
    for number, name in enumerate(canonical):
        assert canonical[name] == name, names[number]


def test_a_tree_has_the_callers_that_execute_nothing_themselves() -> None:
    stacks = [(("a", "b", "c"), "VFS", 1.0), (("a", "b", "d"), "VFS", 2.5), (("e",), "VFS", 3.0)]
    result = parse(a_result([a_record("k", "x", "read", 512, stacks)]))
    data = Parsed(page.render(result, None)).data
    flat = data["rungs"][0]["profiles"][0]["stacks"]
    nodes = [(flat[at], data["names"][flat[at + 1]], flat[at + 2]) for at in range(0, len(flat), 3)]
    assert nodes == [(0, "a", 0), (1, "b", 0), (2, "c", 1), (2, "d", 2.5), (0, "e", 3)]


def test_the_page_needs_nothing_from_outside() -> None:
    result = a_result(a_record(name, "dio.pread", "read", 4096) for name in "abc")
    text = page.render(parse(result), compared(result))
    # The name of speedscope's format is an address, which is not fetched.
    text = text.replace("https://www.speedscope.app/file-format-schema.json", "")
    assert not re.search(r"https?:|@import|url\((?!#)", text)
    parsed = Parsed(text)
    for name, value in parsed.attributes:
        assert name != "src"
        if name in ("href", "xlink:href"):
            assert value.startswith("#")
    assert "link" not in parsed.tags
    assert any(value.startswith("default-src 'none'") for _, value in parsed.attributes)


def test_ids_are_unique_and_references_lead_somewhere() -> None:
    result = a_result(a_record(name, "dio.pread", "read", 4096) for name in "abc")
    text = page.render(parse(result), compared(result))
    attributes = Parsed(text).attributes
    ids = [value for name, value in attributes if name == "id"]
    assert [name for name, times in Counter(ids).items() if times > 1] == []
    wanted = {value[1:] for name, value in attributes if name == "href"}
    wanted |= set(re.findall(r"url\(#([^)]*)\)", text))
    assert {name for name in wanted if not name.startswith(("rung=", "kernel="))} <= set(ids)


def test_names_are_text_and_never_markup() -> None:
    result = pair(second=HOSTILE)
    hostile = copy.deepcopy(result)
    hostile["machine"]["cmdline"] = HOSTILE
    hostile["kernels"][0]["compiler"] = HOSTILE
    hostile["kernels"][0]["config"][HOSTILE] = HOSTILE
    record = hostile["results"][3]
    record["rung"] = record["profile"]["functions"][0]["name"] = HOSTILE
    record["profile"]["stacks"][0][0] = HOSTILE
    expected = Parsed(page.render(parse(pair()), compared(pair())))
    parsed = Parsed(page.render(parse(hostile), compared(hostile)))
    assert parsed.tags["script"] == expected.tags["script"] == 2
    assert HOSTILE in parsed.data["names"]
    assert parsed.data["kernels"][1] == HOSTILE
    assert HOSTILE in parsed.text


def test_without_profiles_there_are_figures_and_no_attribution() -> None:
    result = a_result(
        a_record(name, "dio.pread", "read", 4096, stacks=None) for name in ("old", "new")
    )
    parsed = Parsed(page.render(parse(result), compared(result)))
    assert ("id", "attribution") not in parsed.attributes
    assert ["dio.pread read", "601.93", "601.93", "same", ""] in parsed.rows
    assert ("class", "g0") in parsed.attributes


def three() -> dict[str, Any]:
    """Three kernels: the second is longer, mostly on a rung without I/O, and the third shorter."""
    stacks = {"a": STACKS, "b": CHANGED, "c": STACKS}
    empty = {"a": 31.0, "b": 62.0, "c": 62.0}
    return a_result(
        record
        for name in "abc"
        for record in (
            a_record(name, "syscall", "none", 0, [(("do_syscall_64",), "VFS", empty[name])]),
            a_record(name, "raw.pread", "read", 4096),
            a_record(name, "dio.pread", "read", 4096, stacks[name]),
        )
    )


def test_the_heat_map_has_each_change_against_the_column_before() -> None:
    result = three()
    parsed = Parsed(page.render(parse(result), compared(result)))
    assert parsed.rows[:4] == [
        ["rung", "a", "b", "c"],
        ["dio.pread read", "601.93", "627.43 +4.2 %", "601.93 -4.1 %"],
        ["raw.pread read", "601.93", "601.93 same", "601.93 same"],
        ["syscall", "31.07", "62.07 +99.8 %", "62.07 same"],
    ]
    strength = [int(value[7:-1]) for name, value in parsed.attributes if value.startswith("--heat")]
    first, grew, shrank = strength[:3]
    assert first == 0
    assert grew >= shrank > 10
    assert strength[3:6] == [0, 0, 0]
    assert max(strength) == strength[7] == 40
    # The page begins with the largest step of an I/O.
    data = parsed.data
    assert data["kernels"][data["kernel"]] == "b"
    assert data["rungs"][data["starts"][1]]["title"] == "dio.pread read 4 KiB"
    assert (
        "a to b: 3 rungs: 2 take more, 1 the same. Worst and largest: dio.pread read +25.50"
        in parsed.text
    )
    assert "Best and largest: dio.pread read -25.50" in parsed.text


def test_the_ladder_has_each_figure_by_group() -> None:
    result = pair()
    text = page.render(parse(result), compared(result))
    labels = [value for name, value in Parsed(text).attributes if name == "aria-label"]
    assert "601.93: system call 43, VFS 122, pinning and copying 424, drivers 5, other 8" in labels
    assert "+25.50: VFS +33, other -8" in labels


def test_a_kernel_without_a_rung() -> None:
    result = pair()
    del result["results"][1]  # dio.pread on the base
    parsed = Parsed(page.render(parse(result), compared(result)))
    assert ["dio.pread read", "-", "627.43", "", ""] in parsed.rows
    assert parsed.data["rungs"][1]["profiles"][0] is None
    assert "| dio.pread read 4 KiB |     - | 627.43 |" in markdown(parse(result), compared(result))


# The text.


def test_the_text_is_a_table_that_reads_well() -> None:
    result = pair()
    lines = markdown(parse(result), compared(result)).splitlines()
    assert "| dio.pread read 4 KiB | 601.93 | 627.43 |" in lines
    assert "| dio.pread read | +25.50 (+4.2 %) | `│██████` | VFS +24    |" in lines
    assert "1 rung is the same." in lines
    assert f"+{DIFFERENCE:.2f} (+4.24 %), more (noise 0.00)" in lines
    assert "By layer: VFS +24.00, security +9.00, other -7.50." in lines
    assert "| vfs_read | 122.00 | 146.00 |     +24.00 |      |" in lines
    assert "| odd      |   7.50 |   0.00 |      -7.50 | gone |" in lines
    assert not any("syscall:" in line for line in lines)  # it did not change


def test_the_text_adds_up() -> None:
    result = pair()
    many = [((f"f{number}",), "VFS", 100.0 + number) for number in range(20)]
    result["results"][1] = a_record("old", "dio.pread", "read", 4096, many)
    text = markdown(parse(result), compared(result))
    _, _, tail = text.partition("### dio.pread read 4 KiB: old to new")
    changes = re.findall(r"^\|[^|]*\|[^|]*\|[^|]*\| +([-+][\d,.]+) \|", tail, re.MULTILINE)
    total = re.search(r"^([-+][\d,.]+) \(", tail, re.MULTILINE)
    assert total
    assert sum(float(change.replace(",", "")) for change in changes) == pytest.approx(
        float(total.group(1).replace(",", "")), abs=0.03
    )
    assert re.search(r"^\| the other \d+ +\|", tail, re.MULTILINE)


def test_the_text_is_narrow_however_many_kernels() -> None:
    names = [f"debian:7.{number}.12+deb13-amd64" for number in range(9)]
    result = a_result(
        a_record(name, rung, "read", 4096, CHANGED if name == names[3] else STACKS)
        for name in names
        for rung in ("dio.pread", "raw.aio.100")
    )
    lines = markdown(parse(result), compared(result)).splitlines()
    assert max(map(len, lines)) <= 100
    for name in names:
        assert any(line.startswith("|") and name in line for line in lines)


def test_a_bar_in_a_name_does_not_break_a_table() -> None:
    result = pair()
    result["results"][3]["profile"]["functions"][2]["name"] = "a|b"
    row = next(
        line for line in markdown(parse(result), compared(result)).splitlines() if "a\\|b" in line
    )
    assert len(re.findall(r"(?<!\\)\|", row)) == 6


def text_of(browser: Browser, selector: str) -> str:
    return browser.run(f"document.querySelector({json.dumps(selector)}).innerText")


PREAD = "rung=dio.pread/read/4096"


@pytest.mark.parametrize("second", ["new", HOSTILE])
def test_attribution(second: str, browser: Browser) -> None:
    result = pair(second=second)
    text = page.render(parse(result), compared(result))
    browser.open(text)  # on the worst change
    assert "dio.pread read 4 KiB: 601.93 to 627.43, +25.50" in text_of(browser, "#about")
    layers, functions = (f"#view table:nth-of-type({at})" for at in (1, 2))
    assert rows(browser, layers)[1:] == [
        ["VFS", "122.00", "146.00", "+24.00", ""],
        ["security", "0.00", "9.00", "+9.00", ""],
        ["other", "7.50", "0.00", "-7.50", ""],
        ["all", "601.93", "627.43", "+25.50", ""],
    ]
    assert rows(browser, functions)[1:] == [
        ["vfs_read VFS", "122.00", "146.00", "+24.00", ""],
        ["check security; new", "0.00", "9.00", "+9.00", ""],
        ["odd other; gone", "7.50", "0.00", "-7.50", ""],
    ]
    browser.open(text, f"{PREAD}&find=CHECK")
    assert [row[0] for row in rows(browser, functions)[1:]] == ["check security; new"]
    browser.open(text, f"{PREAD}&against=&all=1")
    found = rows(browser, functions)
    assert found[1][:3] == ["gup page pinning", "400.00", "63.76 %"]
    assert len(found[0]) == 4 + len(COUNTS) - 1


def test_flame_graphs(browser: Browser) -> None:
    result = pair()
    text = page.render(parse(result), compared(result))
    alone = "vfs_read; layer: VFS; inclusive: 584.00 instructions per I/O, 93.09 %; exclusive: 146.00, 23.27 %"  # noqa: E501
    for address in (f"{PREAD}&view=flame&against=", f"{PREAD}&view=after"):
        browser.open(text, address)
        assert alone in labels(browser)
        assert "Found" not in text_of(browser, "#about")
    browser.open(text, f"{PREAD}&view=before")
    assert any("exclusive: 122.00, 20.27 %" in label for label in labels(browser))
    browser.open(text, f"{PREAD}&view=flame")
    found = labels(browser)
    assert (
        "vfs_read; layer: VFS; inclusive: before: 551.00, after: 584.00, +33.00 (+5.99 %);"
        " exclusive: before: 122.00, after: 146.00, +24.00 (+19.67 %);"
        " the function in all: +24.00" in found
    )
    gone = "odd; layer: other; inclusive: before: 7.50, after: none, -7.50 (-100.00 %);"
    assert any(label.startswith(gone) for label in found)
    new = "check; layer: security; inclusive: before: none, after: 9.00, +9.00;"
    assert any(label.startswith(new) for label in found)
    # One node, not two, for the function that lost its suffix.
    assert sum(label.startswith("helper") for label in found) == 1
    # A match within a match counts once; zooming in leaves out frames beside.
    browser.open(text, f"{PREAD}&view=flame&find=gup&zoom=4")
    assert "Found: 424.00 to 424.00, 0.00" in text_of(browser, "#about")
    assert not any(label.startswith("odd") for label in labels(browser))


def test_callers_that_came_or_went_do_not_unpair_what_they_call(browser: Browser) -> None:
    """The frames below an inserted, a removed and a replaced caller are grey."""
    chains = {
        "old": ("a;work", "b;gone;work2;deep2", "c;was;work3", "d;e", "d;moved"),
        "new": ("a;come;work", "b;work2;deep2", "c;is;work3", "d;e;moved", "d;e"),
    }
    records = [
        a_record(
            kernel, "x", "read", 512,
            [(tuple(f"loop;{path}".split(";")), "VFS", 10.0 + at)
             for at, path in enumerate(sorted(paths, key=lambda path: path.split(";")[-1]))],
        )
        for kernel, paths in chains.items()
    ]  # fmt: skip
    result = a_result(records)
    browser.open(page.render(parse(result), None), "view=flame")
    found = {label.split(";")[0]: label for label in labels(browser)}
    for name in ("work", "work2", "deep2", "work3", "e"):
        assert sum(label.startswith(f"{name};") for label in labels(browser)) == 1
        assert "the function in all: 0.00" in found[name]
    grey = browser.run(
        """[...document.querySelectorAll('.frame')]
        .filter((frame) => getComputedStyle(frame).backgroundColor !== 'rgb(217, 220, 224)')
        .map((frame) => frame.ariaLabel)"""
    )
    assert grey == []


def test_sorting_and_filtering(browser: Browser) -> None:
    result = pair()
    browser.open(page.render(parse(result), compared(result)))
    table = ".heat"

    def titles() -> list[str]:
        return [row[0] for row in rows(browser, table)[1:]]

    def click(selector: str) -> None:
        browser.run(f"document.querySelector({json.dumps(selector)}).click()")
        browser.settle()

    assert titles() == ["dio.pread read"]  # what is the same is folded away
    click("#narrow [name=same]")
    assert titles() == ["dio.pread read", "syscall"]
    click(f"{table} th:nth-of-type(3) button")  # the figure after, largest first
    assert titles() == ["dio.pread read", "syscall"]
    click(f"{table} th:nth-of-type(3) button")
    assert titles() == ["syscall", "dio.pread read"]
    assert "order=3" in browser.run("location.hash")
    browser.run("document.querySelector('#narrow [name=rungs]').focus()")
    for letter in "vfs":
        browser.press(letter)
    assert titles() == ["dio.pread read"]  # by its largest part
    assert "rungs=vfs" in browser.run("location.hash")
    # The address holds it all.
    address = browser.run("location.hash.slice(1)")
    browser.open(page.render(parse(result), compared(result)), address)
    assert titles() == ["dio.pread read"]
    assert browser.run("document.querySelector('#narrow [name=rungs]').value") == "vfs"
    click(f"{table} tbody tr:not([hidden]) a")
    assert "rungs=vfs" in browser.run("location.hash")
    assert PREAD in browser.run("location.hash")


def test_a_cell_opens_its_functions_beside_it(browser: Browser) -> None:
    result = three()
    text = page.render(parse(result), compared(result))
    browser.open(text)
    current = "document.querySelector('.heat a[aria-current] b').innerText"

    def cell(row: int, column: int) -> str:
        return f".heat tbody tr:nth-child({row}) td:nth-of-type({column}) a"

    assert browser.run(current) == "627.43"
    assert "601.93 to 627.43" in text_of(browser, "#about")
    # By a click.
    browser.run(f"document.querySelector('{cell(1, 3)}').click()")
    browser.wait("location.hash.includes('kernel=c&against=b')")
    browser.settle()
    assert "627.43 to 601.93, -25.50" in text_of(browser, "#about")
    for selector in (".verdict", "#ladder [data-kernel]"):
        visible = browser.run(
            f"[...document.querySelectorAll('{selector}')].filter((part) => !part.hidden)"
            ".map((part) => part.dataset.kernel)"
        )
        assert visible == ["c"]
    # By keys: left, down, and Enter. A cell of the first kernel opens what it executes.
    browser.run("document.querySelector('.heat a[aria-current]').focus()")
    for key in ("ArrowLeft", "ArrowDown", "ArrowDown", "Enter"):
        browser.press(key)
    browser.wait("location.hash.includes('rung=syscall')")
    browser.settle()
    assert "syscall: 31.07 to 62.07, +31.00" in text_of(browser, "#about")
    assert browser.run("document.activeElement.innerText").startswith("62.07")
    for key in ("ArrowLeft", "ArrowLeft", "Enter"):
        browser.press(key)
    browser.wait("location.hash.includes('kernel=a')")
    browser.settle()
    assert "syscall on a: 31.07 instructions" in text_of(browser, "#about")
    # By its address; the functions are beside it, in the flame graph's view, too.
    for view in ("functions", "flame", "before", "after"):
        browser.open(text, f"{PREAD}&kernel=c&against=b&view={view}")
        assert browser.run(current) == "601.93"
        boxes = browser.run(
            "['summary', 'attribution', 'view'].map((name) =>"
            " document.getElementById(name).getBoundingClientRect().toJSON())"
        )
        assert boxes[0]["right"] <= boxes[1]["left"] <= boxes[2]["left"]
        assert boxes[2]["right"] <= boxes[1]["right"]


def test_sides_are_options_of_the_flame_graph(browser: Browser) -> None:
    result = pair()
    text = page.render(parse(result), compared(result))
    views = "[...document.querySelectorAll('[name=view]')].map((input) => input.value)"
    for address, visible, checked in (
        (PREAD, False, "functions"),
        (f"{PREAD}&view=flame", True, "flame"),
        (f"{PREAD}&view=after", True, "flame"),
        (f"{PREAD}&view=flame&against=", False, "flame"),
    ):
        browser.open(text, address)
        assert browser.run(views) == ["functions", "flame"]
        assert browser.run("document.getElementById('sides').checkVisibility()") == visible
        assert browser.run("document.getElementById('choice').view.value") == checked
    browser.open(text, f"{PREAD}&view=flame")
    browser.run("document.querySelector('[name=side][value=before]').click()")
    browser.wait("location.hash.includes('view=before')")


def test_narrow_windows_keep_every_figure(browser: Browser, five_kernels: str) -> None:
    browser.window(390)
    browser.open(five_kernels)
    first, second, *_ = rows(browser, ".heat tbody")
    assert len(first) == len(second) == 6
    assert all(re.match(r"[\d,]+\.\d\d( [-+][\d.]+ %)?$", cell) for cell in first[1:])
    for table in ("#view table:nth-of-type(1)", "#view table:nth-of-type(2)"):
        head, row, *_ = rows(browser, table)
        assert head[1:] == ["before", "after", "change"]
        assert all(row[1:])


def test_the_keyboard_reaches_everything(browser: Browser) -> None:
    result = pair()
    text = page.render(parse(result), compared(result))
    browser.open(text, "view=flame")
    reached = []
    for _ in range(100):
        browser.press("Tab")
        focused = browser.run(
            "document.activeElement === document.body ? '' : document.activeElement.name"
            " || document.activeElement.id || document.activeElement.className"
            " || document.activeElement.tagName"
        )
        if not focused and reached:
            break
        reached.append(focused)
    for name in ("rungs", "A", "BUTTON", "rung", "kernel", "against", "view", "find", "reset",
                 "speedscope", "frame", "SUMMARY"):  # fmt: skip
        assert name in reached, name
    # In the flame graph: down, zoom in, Escape zooms out, and so does Reset.
    browser.run("document.querySelector('.frame').focus()")
    for _ in range(2):
        for key in ("ArrowDown", "ArrowDown", "Enter"):
            browser.press(key)
        browser.wait("location.hash.includes('zoom=2')")
        browser.settle()
        browser.press("Escape")
        browser.wait("!location.hash.includes('zoom')")
        browser.settle()
    browser.open(text, "view=flame&zoom=2&find=gup")
    browser.run("document.getElementById('reset').click()")
    browser.wait("location.hash === '#view=flame'")
    browser.open(text, "view=flame&find=gup")
    browser.press("Escape")
    browser.wait("location.hash === '#view=flame'")


def test_costly_instructions(browser: Browser) -> None:
    """A function shows how its costly instructions differ, in both directions, and so do the sums;
    one kernel's table has a column of them."""
    result = pair()
    for record in result["results"]:
        record["profile"]["costly"] = {}
    profile = result["results"][-1]["profile"]
    (function,) = (part for part in profile["functions"] if part["name"] == "vfs_read")
    function["costly"] = profile["costly"] = {"timestamps": 2.0}
    text = page.render(parse(result), compared(result))
    for address, said in (("", "+2.00"), (f"{PREAD}&kernel=old&against=new", "-2.00")):
        browser.open(text, address)
        (name,) = (cells[0] for cells in rows(browser, "#view") if "timestamps" in cells[0])
        assert name.startswith("vfs_read")
        assert name.endswith(f"timestamps {said}")
    assert "timestamps 2.00 to 0.00" in text_of(browser, "#more")
    browser.open(text, f"{PREAD}&against=&all=1")
    table = [cells for cells in rows(browser, "#view") if cells[-1] in ("timestamps", "2.00")]
    assert [cells[0] for cells in table] == ["function", "vfs_read VFS", "all"]


def figures(browser: Browser) -> list[list[str]]:
    """The captions and the labels of the pictures of shared lines."""
    return browser.run(
        """[...document.querySelectorAll("#shared figure")].map((figure) =>
            [figure.querySelector("figcaption").innerText.replace("\\n", "; "),
             ...[...figure.querySelectorAll("[role=img]")].map((lane) => lane.ariaLabel)])"""
    )


def test_shared_lines(browser: Browser) -> None:
    """A picture of each line shows who writes and reads which bytes, and what differs."""
    result = shared(pair())
    text = page.render(parse(result), compared(result))
    browser.open(text, PREAD)
    packed, counter, same = figures(browser)
    each = "1.50 writes, 1.50 of them locked, and {} reads per I/O and CPU"
    assert packed == [
        f"packed; new; false sharing; {each.format('0.00')}",
        "CPU 0 writes bytes: 0 to 7; reads bytes: none",
        "CPU 1 writes bytes: 8 to 15; reads bytes: none",
        "written by one CPU, touched by another: none",
    ]
    assert same[0] == f"same; true sharing; {each.format('0.00')}"
    assert counter[0].startswith("struct file.f_count; gone; true sharing; ")
    assert counter[2:] == [
        "CPU 1 writes bytes: 56 to 63; reads bytes: 0 to 3",
        "written by one CPU, touched by another: 56 to 63",
    ]
    lane = browser.run(
        """(() => {
        const lane = document.querySelectorAll("#shared figure")[1].querySelectorAll(".lane")[1];
        const all = lane.getBoundingClientRect();
        return [...lane.children].map((part) => part.getBoundingClientRect()).map((box) =>
            [box.left - all.left, box.width].map((length) => 64 * length / all.width));
        })()"""
    )
    assert lane == [pytest.approx([56, 8], abs=0.3), pytest.approx([0, 4], abs=0.3)]
    said = text_of(browser, "#shared p")
    assert said.startswith("Instructions per I/O: CPU 0 610.50, CPU 1 611.25; one CPU alone 627.43")
    assert "1 of 24 rounds are left out." in said
    # The list of functions is opened by a key.
    browser.run("document.querySelector('#shared summary').focus()")
    browser.press("Enter")
    assert text_of(browser, "#shared ul") == (
        "f_writes writes bytes 0 to 7, packed, locked, 1.50 per I/O on CPU 0\n"
        "f_writes writes bytes 8 to 15, packed, locked, 1.50 per I/O on CPU 1"
    )
    # In the opposite direction, and without another kernel.
    browser.open(text, f"{PREAD}&kernel=old&against=new")
    assert [caption.split("; ")[:2] for caption, *_ in figures(browser)] == [
        ["struct file.f_count", "new"], ["packed", "gone"], ["same", "true sharing"],
    ]  # fmt: skip
    browser.open(text, f"{PREAD}&kernel=old&against=")
    assert [caption.split("; ")[:2] for caption, *_ in figures(browser)] == [
        ["same", "true sharing"], ["struct file.f_count", "true sharing"],
    ]  # fmt: skip
    # A rung that ran on one CPU only is not offered; the first one on several is shown instead.
    browser.open(text, "rung=syscall/none/0")
    assert browser.run("[...several.rung.options].map((option) => option.text)") == [
        "dio.pread read 4 KiB"
    ]
    assert len(figures(browser)) == 3


def test_shared_lines_without_profiles(browser: Browser) -> None:
    """They are shown without profiles, and without a picture if the file lacks the bytes."""
    result = copy.deepcopy(shared(pair()))
    for record in result["results"]:
        del record["profile"]
        for line in record.get("sharing", {}).get("lines", ()):
            for access in (*line["reads"], *line["writes"]):
                access.pop("bytes", None)
    browser.open(page.render(parse(result), compared(result)))
    assert [len(figure) for figure in figures(browser)] == [1, 1, 1]
    parsed = Parsed(page.render(parse(pair()), compared(pair())))
    assert ("id", "sharing") not in parsed.attributes


def test_a_profile_for_speedscope(browser: Browser) -> None:
    result = pair()
    browser.open(page.render(parse(result), compared(result)))
    found = browser.run("speedscope(data.rungs[1], [0, 1])")
    assert found["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    names = [frame["name"] for frame in found["shared"]["frames"]]
    for profile, stacks in zip(found["profiles"], (STACKS, CHANGED), strict=True):
        read = {
            tuple(names[at] for at in sample): weight
            for sample, weight in zip(profile["samples"], profile["weights"], strict=True)
        }
        assert read == {path: count for path, _, count in stacks}
        assert profile["endValue"] == pytest.approx(sum(read.values()))


def large() -> dict[str, Any]:
    """Five kernels, many rungs and functions, long names."""

    def stacks(kernel: int) -> list[Stack]:
        layers = Layers().names
        return [
            ((*(f"function_{at}" for at in range(number % 12)),
              f"function_with_a_long_name_{number}"),
             layers[number % len(layers)], number + 0.1234 + kernel * (number % 7))
            for number in range(80)
        ]  # fmt: skip

    return shared(a_result(
        a_record(f"debian:{kernel}.12+deb13-amd64", f"rung.number.{number}", "read", 4096,
                 stacks(kernel if number % 3 else 0))
        for kernel in range(5)
        for number in range(12)
    ))  # fmt: skip


@pytest.fixture(scope="module")
def five_kernels() -> str:
    result = make(large())
    return page.render(result, compare(result, Layers()))


def test_a_page_of_five_kernels_is_small(five_kernels: str) -> None:
    assert 100_000 < len(five_kernels.encode()) < 3_000_000


@pytest.mark.parametrize("address", ["", "view=flame", "against=&all=1"])
def test_a_page_is_drawn_at_once(address: str, browser: Browser, five_kernels: str) -> None:
    """It draws the functions of one rung, and few of them, however many it carries."""
    browser.open(five_kernels, address)
    elements = browser.run("document.querySelectorAll('*').length")
    assert 500 < elements < 5000


@pytest.mark.parametrize("width", [390, 800, 1400])
@pytest.mark.parametrize("address", ["", "view=flame", "against=&all=1"], ids=str)
def test_nothing_is_wider_than_the_window_or_overlaps(
    width: int, address: str, browser: Browser, five_kernels: str
) -> None:
    browser.window(width)
    browser.open(five_kernels, address)
    browser.open_details()
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert browser.too_wide() == []
    assert browser.run(OVERLAPS) == []


def test_print_has_all_but_the_controls(browser: Browser, five_kernels: str) -> None:
    browser.window(700)
    browser.media("print", "dark")
    browser.open(five_kernels)
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not browser.run("document.getElementById('choice').checkVisibility()")
    assert browser.run("document.getElementById('ladder').checkVisibility()")


@pytest.mark.parametrize(
    ("width", "scheme", "address"),
    [
        (390, "light", ""),
        (390, "dark", f"{PREAD}&view=after"),
        (1400, "light", "view=flame"),
        (1400, "dark", ""),
        (1400, "dark", "view=flame"),
    ],
)
def test_accessible(width: int, scheme: str, address: str, browser: Browser) -> None:
    """axe finds nothing wrong, contrast included."""
    result = a_result(
        [*pair()["results"], *(dict(record, kernel={"name": "third", "release": "third"})
                               for record in pair("old", "third")["results"][2:])]
    )  # fmt: skip
    shared(result)
    browser.window(width)
    browser.media(scheme=scheme)
    browser.open(page.render(parse(result), compared(result)), address)
    browser.open_details()
    assert browser.inaccessible() == []


def test_planted_faults_are_found(browser: Browser) -> None:
    """The checks of layout and of script errors notice faults."""
    browser.open(
        "<!DOCTYPE html><p>One<p style='margin-top:-2em'>Two"
        "<p style='width:200vw'>Wide<script>nonsense()</script>"
    )
    assert len(browser.run(OVERLAPS)) == 1
    assert len(browser.too_wide()) == 1
    assert any("nonsense" in error for error in browser.errors)
    browser.errors.clear()
