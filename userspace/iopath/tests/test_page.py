# SPDX-License-Identifier: GPL-2.0
"""The report holds the figures, needs nothing from outside, and shows names as what they are."""

import copy
import json
import re
import subprocess
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from test_charts import COUNTS, STACKS, Stack, a_record, a_result

from iopath import webpage
from iopath.compare_exact import compare
from iopath.comparison import ExactComparison
from iopath.layers import Layers
from iopath.markdown import markdown
from iopath.process import need
from iopath.result import make, parse

HOSTILE = "</script><script>alert('1')</script>&\"|"

# What became of STACKS: one function is new, one gone, one grew, one lost a compiler's suffix.
CHANGED: tuple[Stack, ...] = (
    *STACKS[:2],
    (("loop [user]", "do_syscall_64", "vfs_read"), "VFS", 146.0),
    *STACKS[3:4],
    (("loop [user]", "do_syscall_64", "vfs_read", "gup", "helper"), "page pinning", 24.0),
    (("loop [user]", "do_syscall_64", "vfs_read", "check"), "security", 9.0),
    *STACKS[5:6],
)
DIFFERENCE = 24 + 9 - 7.5


class Parsed(HTMLParser):
    """What of a page the tests look at."""

    VOID = ("meta", "input", "link", "img", "br", "hr")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.data: dict[str, Any] = {}
        self._is_data = False
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
        self._is_data = ("id", "data") in attrs

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._is_data:
            self.data = json.loads(data)
            self._is_data = False
        elif self.open[-1:] not in (["script"], ["style"]):
            self.text += data
            if self.open and {"td", "th"} & set(self.open) and self.rows:
                self.rows[-1][-1] += data


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


def rebuild(data: dict[str, Any], flat: list[float]) -> list[list[Any]]:
    """The folded stacks of a tree as the page has it."""
    path: list[str] = []
    stacks = []
    for at in range(0, len(flat), 3):
        depth, name, own = flat[at : at + 3]
        path[int(depth) :] = [data["names"][int(name)]]
        if own:
            stacks.append([";".join(path), own])
    return stacks


def test_what_the_tests_use_is_a_result() -> None:
    parse(pair(), "the tests' result")


def test_summary_has_figures_changes_and_verdicts() -> None:
    result = pair()
    parsed = Parsed(webpage.render(parse(result), compared(result)))
    assert ["rung", "old", "new", "change"] in parsed.rows
    assert ["syscall", "43.43", "43.43", "same"] in parsed.rows
    row = ["dio.pread read 4 KiB", "601.93", "627.43", f"+{DIFFERENCE:.2f} (+4.24 %)"]
    assert row in parsed.rows
    assert ("class", "change longer") in parsed.attributes
    assert ("class", "change same") in parsed.attributes


def test_without_a_comparison_changes_have_no_verdict() -> None:
    parsed = Parsed(webpage.render(parse(pair()), None))
    assert ["syscall", "43.43", "43.43", "+0.00 (+0.00 %)"] in parsed.rows
    assert ("class", "change ") in parsed.attributes


def test_what_may_be_noise_is_marked() -> None:
    result = pair()
    for record in result["results"]:
        record["boots"] = record["boots"][:1]
    parsed = Parsed(webpage.render(parse(result), compared(result)))
    assert parsed.rows[2][-1] == "+25.50 (+4.24 %)?"
    assert "--boots 4 or more" in parsed.text
    assert "+25.50 (+4.2 %)?" in markdown(parse(result), compared(result))


def test_header_says_what_was_measured_on_what() -> None:
    result = pair()
    result["kernels"][1]["config"]["PREEMPT"] = "n"
    text = webpage.render(parse(result), compared(result))
    parsed = Parsed(text)
    for words in ("QEMU 7.2", "CPU max", "nokaslr", "iopath 0", "PREEMPT y/n"):
        assert words in parsed.text
    assert ["compiler", "gcc-12", "gcc-12"] in parsed.rows
    assert ["PREEMPT", "y", "n"] in parsed.rows
    assert text.count('<tr class="differs">') == 1


def test_profiles_are_there_whole() -> None:
    result = pair()
    data = Parsed(webpage.render(parse(result), compared(result))).data
    assert data["kernels"] == ["old", "new"]
    assert data["counts"] == list(COUNTS)
    assert [rung["title"] for rung in data["rungs"]] == ["syscall", "dio.pread read 4 KiB"]
    assert data["start"] == 1  # the one that changed
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
    data = Parsed(webpage.render(parse(pair()), None)).data
    names, canonical = data["names"], data["canonical"]
    assert canonical[names.index("helper.part.0")] == names.index("helper")
    assert canonical[names.index("submit [blknull]")] == names.index("submit [blknull]")
    for number, name in enumerate(canonical):
        assert canonical[name] == name, names[number]


def test_a_tree_has_the_callers_that_execute_nothing_themselves() -> None:
    stacks = [(("a", "b", "c"), "VFS", 1.0), (("a", "b", "d"), "VFS", 2.5), (("e",), "VFS", 3.0)]
    result = parse(a_result([a_record("k", "x", "read", 512, stacks)]))
    data = Parsed(webpage.render(result, None)).data
    flat = data["rungs"][0]["profiles"][0]["stacks"]
    nodes = [(flat[at], data["names"][flat[at + 1]], flat[at + 2]) for at in range(0, len(flat), 3)]
    assert nodes == [(0, "a", 0), (1, "b", 0), (2, "c", 1), (2, "d", 2.5), (0, "e", 3)]


def test_the_page_needs_nothing_from_outside() -> None:
    result = a_result(a_record(name, "dio.pread", "read", 4096) for name in "abc")
    text = webpage.render(parse(result), compared(result))
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
    text = webpage.render(parse(result), compared(result))
    attributes = Parsed(text).attributes
    ids = [value for name, value in attributes if name == "id"]
    assert [name for name, times in Counter(ids).items() if times > 1] == []
    wanted = {value[1:] for name, value in attributes if name == "href"}
    wanted |= set(re.findall(r"url\(#([^)]*)\)", text))
    assert {name for name in wanted if not name.startswith("rung=")} <= set(ids)


def test_names_are_text_and_never_markup() -> None:
    result = pair(second=HOSTILE)
    hostile = copy.deepcopy(result)
    hostile["machine"]["cmdline"] = HOSTILE
    hostile["kernels"][0]["compiler"] = HOSTILE
    hostile["kernels"][0]["config"][HOSTILE] = HOSTILE
    record = hostile["results"][3]
    record["rung"] = record["profile"]["functions"][0]["name"] = HOSTILE
    record["profile"]["stacks"][0][0] = HOSTILE
    expected = Parsed(webpage.render(parse(pair()), compared(pair())))
    parsed = Parsed(webpage.render(parse(hostile), compared(hostile)))
    assert parsed.tags["script"] == expected.tags["script"] == 2
    assert HOSTILE in parsed.data["names"]
    assert parsed.data["kernels"][1] == HOSTILE
    assert HOSTILE in parsed.text


def test_without_profiles_there_are_figures_and_no_script() -> None:
    result = a_result(
        a_record(name, "dio.pread", "read", 4096, stacks=None) for name in ("old", "new")
    )
    parsed = Parsed(webpage.render(parse(result), compared(result)))
    assert parsed.tags["script"] == 0
    assert ["dio.pread read 4 KiB", "601.93", "601.93", "same"] in parsed.rows
    assert parsed.tags["svg"] == 1


@pytest.mark.parametrize(("kernels", "drawn"), [("a", 1), ("ab", 1), ("abc", 2)])
def test_history_takes_three_kernels(kernels: str, drawn: int) -> None:
    result = a_result(a_record(name, "dio.pread", "read", 4096) for name in kernels)
    parsed = Parsed(webpage.render(parse(result), None))
    assert parsed.tags["svg"] == drawn


def test_a_kernel_without_a_rung() -> None:
    result = pair()
    del result["results"][1]  # dio.pread on the base
    parsed = Parsed(webpage.render(parse(result), compared(result)))
    assert ["dio.pread read 4 KiB", "-", "627.43", ""] in parsed.rows
    assert parsed.data["rungs"][1]["profiles"][0] is None
    assert "| dio.pread read 4 KiB |     - | 627.43 |" in markdown(parse(result), compared(result))


def test_a_report_of_five_kernels_and_the_whole_ladder_is_small() -> None:
    stacks = [
        ((*(f"function_{at}" for at in range(number % 12)), f"function_with_a_long_name_{number}"),
         "VFS", number + 0.1234)
        for number in range(200)
    ]  # fmt: skip
    result = make(
        a_result(
            a_record(kernel, f"rung.{number}", "read", 4096, stacks)
            for kernel in "abcde"
            for number in range(20)
        )
    )
    assert len(webpage.render(result, compare(result, Layers()))) < 4_000_000


# The text.


def test_the_text_is_a_table_that_reads_well() -> None:
    result = pair()
    lines = markdown(parse(result), compared(result)).splitlines()
    assert "| dio.pread read 4 KiB | 601.93 | 627.43 |" in lines
    assert "| dio.pread read | +25.50 (+4.2 %) | `│██████` | VFS +24    |" in lines
    assert "1 rung is the same." in lines
    assert f"+{DIFFERENCE:.2f} (+4.24 %), longer (noise 0.00)" in lines
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
    assert re.search(r"^\| \d+ more +\|", tail, re.MULTILINE)


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


# The script, in a browser.


def browse(text: str, address: str, folder: Path) -> Parsed:
    """The page as the script has made it at an address; no error must have been said."""
    path = folder / "page.html"
    path.write_text(text)
    done = subprocess.run(
        [
            need("chromium", "chromium"),
            "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr",
            "--virtual-time-budget=5000", "--dump-dom", f"{path.as_uri()}#{address}",
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr
    return Parsed(done.stdout)


@pytest.mark.parametrize("second", ["new", HOSTILE])
def test_the_script_draws(second: str, tmp_path: Path) -> None:
    result = pair(second=second)
    text = webpage.render(parse(result), compared(result))
    rung = "rung=dio.pread/read/4096"
    parsed = browse(text, f"{rung}&against=&view=functions", tmp_path)
    assert ["gup", "page pinning", "400.00", "63.76 %", *["0.00"] * 6] in parsed.rows
    parsed = browse(text, f"{rung}&view=layers", tmp_path)
    assert ["VFS", "122.00", "146.00", "+24.00"] in parsed.rows
    assert ["all", "601.86", "627.36", "+25.50"] in parsed.rows
    parsed = browse(text, f"{rung}&view=functions&find=CHECK", tmp_path)
    assert ["check", "security", "0.00", "9.00", "+9.00", "new"] in parsed.rows
    assert not any(row[0] == "vfs_read" for row in parsed.rows)


def test_the_script_draws_flame_graphs(tmp_path: Path) -> None:
    result = pair()
    text = webpage.render(parse(result), compared(result))
    rung = "rung=dio.pread/read/4096&view=flame"

    def labels(parsed: Parsed) -> list[str]:
        return [value for name, value in parsed.attributes if name == "aria-label"]

    parsed = browse(text, f"{rung}&against=", tmp_path)
    assert (
        "vfs_read; layer: VFS; inclusive: 584.00 instructions per I/O, 93.09 %;"
        " exclusive: 146.00, 23.27 %" in labels(parsed)
    )
    assert "Found" not in parsed.text
    parsed = browse(text, rung, tmp_path)
    found = labels(parsed)
    assert (
        "vfs_read; inclusive: 551.00 to 584.00, +33.00 (5.99 %);"
        " exclusive: 122.00 to 146.00, +24.00 (19.67 %)" in found
    )
    gone = "odd; inclusive: 7.50 to 0.00, -7.50 (-100.00 %); exclusive: 7.50 to 0.00, -7.50"
    assert any(label.startswith(gone) for label in found)
    # One node, not two, for the function that lost its suffix.
    assert sum(label.startswith("helper") for label in found) == 1
    # What is found within what is found counts once; zooming in leaves out what is beside.
    parsed = browse(text, f"{rung}&find=gup&zoom=4", tmp_path)
    assert "Found: 424.00 to 424.00, 0.00" in parsed.text
    assert not any(label.startswith("odd") for label in labels(parsed))
