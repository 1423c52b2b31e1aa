# SPDX-License-Identifier: GPL-2.0
"""Output to a terminal, a pipe or a file is complete."""

import contextlib
import copy
import io
import json
import re
import threading
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from helpers.cases import cases
from helpers.command import Command
from helpers.examples import BOOTS, DIGEST, a_record, a_result
from helpers.pairs import LOCKED, PLAIN, Row, compared, long_run, profiled, row, shown, two
from helpers.printed import printed, words
from helpers.waiting import wait_for
from iopath.base import progress
from iopath.compare.changes import Change
from iopath.results.model import Misses
from iopath.results.ops import OPS
from iopath.results.result import parse
from iopath.rungs import builtin
from iopath.show import charts, misses, page, terminal, texts
from iopath.show.markdown import markdown

LONG = "a_function_with_a_very_long_name_of_its_own"


def every_view(whole: dict[str, Any], width: int) -> str:
    return (
        printed(terminal.show, parse(whole), width=width)
        + printed(terminal.show_all, compared(whole), width=width)
        + printed(terminal.show_profile, parse(whole), 15, width=width)
    )


@pytest.mark.parametrize("width", [20, 60, 100, 400])
def test_nothing_is_cut(width: int) -> None:
    """However narrow the terminal is, no word and no figure is cut."""
    whole = two([*LOCKED[:2], row(LONG, 1234567.25, "iov_iter and copying", indirect=7.0)])
    whole["kernels"][0]["compiler"] = "gcc-" + "1" * 90
    texts = []
    for columns in (width, 1000):
        text = printed(terminal.show_comparison, compared(whole), width=columns)
        texts.append(text + every_view(whole, columns))
    assert "…" not in texts[0]
    words = [set(re.findall(r"[^\s─█▌│;()]+", text)) for text in texts]
    assert words[0] == words[1]
    assert {LONG, "1,234,567.25", "gcc-" + "1" * 90} <= words[0]


def test_the_model_has_a_table_of_its_own() -> None:
    """It has the modelled records; nothing is printed if there are none."""
    whole = two(PLAIN)
    texts = []
    for record in (None, whole["results"][1]):
        if record:
            every = {one.name: float(at) for at, one in enumerate(fields(Misses))}
            record["model"] = {"warm": every, "cold": every | {"l1d": 12.5}}
        texts.append(" ".join(printed(misses.show, parse(whole)).split()))
    assert texts[0] == ""
    assert texts[1].startswith("new: misses and mispredictions per I/O of a model, not of this CPU")
    assert "old:" not in texts[1]
    assert "dio.pread read 4 KiB warm 0.00 1.00 2.00 3.00 4.00 5.00 6.00 7.00" in texts[1]
    assert texts[1].endswith("cold 0.00 12.50 2.00 3.00 4.00 5.00 6.00 7.00")


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([*PLAIN, row("four", 60.0, "VFS")],
         "dio.pread read +60.00 (+4.3 %); mostly VFS, +60."),
        ([row("one", 400.0, locked=2.0), *PLAIN[1:]],
         "dio.pread read -100.00 (-7.1 %); mostly block core, -100."),
        (PLAIN, "dio.pread read takes the same."),
        ([row("one", 600.0, locked=2.0), row("two", 500.0, reads=30.0), PLAIN[2]],
         "dio.pread read takes the same in sum."),
    ],
)  # fmt: skip
def test_the_verdict_comes_first(rows: list[Row], text: str) -> None:
    assert digest(two(rows), 200)[0] == f"old to new: {text}"


def switching(before: float, after: float) -> dict[str, Any]:
    """A path that switches to a worker, which takes 700 instructions, *before* or *after*."""
    worker = [row("worker_thread", 100.0, "scheduling"), row("__schedule", 600.0, "scheduling")]
    sides = [[*PLAIN, *worker] if turns else PLAIN for turns in (before, after)]
    whole = two(sides[1], [*sides[0], row("gone", 50.0)])
    for record, turns in zip(whole["results"], (before, after), strict=True):
        record["counts"]["switches"] = [turns] * BOOTS
    return whole


@pytest.mark.parametrize(
    ("before", "after", "cause", "by"),
    [
        (2.0, 0.0, "no longer switches to a worker", "-700"),
        (0.0, 2.0, "switches to a worker", "+700"),
    ],
)
def test_a_switch_of_tasks_is_the_cause(before: float, after: float, cause: str, by: str) -> None:
    """It is in the first line, in the table, and before all functions; the scheduler's are one
    line."""
    lines = digest(switching(before, after), 200)
    assert lines[0].endswith(f"; {cause} (scheduling {by}).")
    at = next(at for at, line in enumerate(lines) if line.startswith("dio.pread read  "))
    assert lines[at].endswith(f"  {cause}")
    at = next(at for at, line in enumerate(lines) if "instructions per I/O" in line)
    assert lines[at + 1].split(maxsplit=2) == [f"{by}.00", "scheduling", cause]
    assert lines[at + 2].endswith("gone, gone")
    assert not any("worker_thread" in line for line in lines)


def test_the_largest_change_is_named() -> None:
    """The best one is named beside the worst one, and both are in the table, however many others
    come before them."""
    whole = a_ladder("a", "b")
    for record in whole["results"]:
        if (record["rung"], record["op"]) == ("gen.batch", "read"):
            more = {"a": 1e6, "b": 1e6 - 5000}[record["kernel"]["name"]]
            record["instructions_per_io"] += more
            record["boots"] = [figure + more for figure in record["boots"]]
    text = " ".join(digest(whole, 1000)[0].split())
    assert re.search(
        r"Worst: mq.uring read .*\. Best: mq.pread read .*\. Largest: gen.batch read -4,997", text
    )
    table = [line.split("  ")[0] for line in digest(whole, 200)]
    assert {"mq.uring read", "mq.pread read", "gen.batch read"} <= {*table}


def test_one_image_under_two_names_is_said() -> None:
    whole = two(PLAIN)
    assert "same image" not in shown(whole)[0]
    for kernel in whole["kernels"]:
        kernel["digests"]["vmlinuz"] = DIGEST
    assert shown(whole)[0] == "old to new: dio.pread read takes the same. Both are the same image."


def test_what_does_no_io_is_never_the_worst() -> None:
    """It comes after the I/Os, however much it changed. If it was measured alone, it is the only
    row."""
    whole = two([*PLAIN, row("four", 60.0, "VFS")])
    alone = copy.deepcopy(whole)
    for record in alone["results"]:
        record |= {"rung": "syscall", "op": "none", "block_size": 0}
    both = {**whole, "results": [*copy.deepcopy(alone["results"]), *whole["results"]]}
    both["results"][1]["instructions_per_io"] *= 2
    both["results"][1]["boots"] = [2 * figure for figure in both["results"][1]["boots"]]
    for found, worst, titles in (
        (
            both,
            "2 rungs: 2 take more. Worst and largest: dio.pread read +60",
            ["dio.pread read", "syscall"],
        ),
        (alone, "syscall +60", ["syscall"]),
    ):
        lines = digest(found, 200)
        assert lines[0].startswith(f"old to new: {worst}")
        at = next(number for number, line in enumerate(lines) if line.startswith("rung"))
        shown = [line.split("  ")[0] for line in lines[at + 2 :]]
        assert shown[: len(titles)] == titles
    same = copy.deepcopy(both)
    same["results"][3] = copy.deepcopy(same["results"][2])
    same["results"][3]["kernel"] = whole["results"][1]["kernel"]
    assert digest(same, 200)[0] == "old to new: 2 rungs: 1 takes more, 1 the same."


def test_source_lines_of_a_profile() -> None:
    """Inlined functions below the function they are in, and the lines that execute most."""
    whole = two(PLAIN)
    whole["results"][1]["profile"]["source"] = [
        {"function": "one", "inlined": inlined, "line": f"bio.c:{line}", "instructions": count}
        for inlined, line, count in (("", 10, 100.0), ("helper", 20, 390.0), ("helper", 21, 10.0))
    ]
    lines = words(printed(terminal.show_profile, parse(whole), 15, width=100))
    at = lines.index("one 500.00")
    assert lines[at + 1 : at + 3] == ["helper 400.00", "(its own) 100.00"]
    assert lines.index("bio.c:20 helper 390.00") < lines.index("bio.c:10 one 100.00")


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = []
    for name, rows in (("old", PLAIN), ("new", LOCKED)):
        whole = two(rows)
        whole["kernels"] = whole["kernels"][:1]
        whole["kernels"][0] |= {"name": name, "compiler": f"gcc {'of some distribution ' * 9}"}
        whole["results"] = [profiled(name, rows)]
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(whole))
    return paths


def test_a_pipe_gets_whole_lines_without_padding(listed: Command, files: list[Path]) -> None:
    del listed.env["COLUMNS"]
    lines = listed.run("compare", *files, "--anyway", "--all").stdout.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    assert max(map(len, lines)) > 160
    assert sum("gcc of some" in line for line in lines) == 2


def test_columns_are_heeded(listed: Command, files: list[Path]) -> None:
    listed.env["COLUMNS"] = "90"
    lines = listed.run("compare", *files, "--anyway", "--all").stdout.splitlines()
    texts = [line for line in lines if "gcc" in line or "some distribution" in line]
    assert len(texts) > 3
    assert max(map(len, texts)) <= 90


# The digest of a comparison.


def a_ladder(*kernels: str, same: int = 3) -> dict[str, Any]:
    """A result with every rung of the ladder. On the later kernels the first *same* rungs are the
    same; of the others one half is longer and the other half shorter, by more and more."""
    records = []
    for at, kernel in enumerate(kernels):
        for number, rung in enumerate(builtin.select([])):
            change = 0 if number < same else at * (number if number % 2 else -number)
            rows = [row(LONG, 500.0 + change, "iov_iter and copying"), *PLAIN]
            for op in rung.ops(OPS):
                record = profiled(kernel, rows)
                size = 4096 if rung.target else 0
                records.append({**record, "rung": rung.name, "op": op, "block_size": size})
    return a_result(records)


def digest(whole: dict[str, Any], width: int, top: int | None = None) -> list[str]:
    text = printed(terminal.show_comparison, compared(whole), top, width=width)
    return [line.rstrip() for line in text.splitlines()]


def test_the_digest_of_a_ladder_fits_one_screen() -> None:
    whole = a_ladder("debian:6.1", "debian:7.2")
    lines = digest(whole, 80)
    assert len(lines) <= 23  # and the prompt
    assert max(map(len, lines)) <= 80
    at = next(number for number, line in enumerate(lines) if line.startswith("rung"))
    assert [line.split("  ")[0] for line in lines[at + 2 : at + 7]] == [
        "mq.uring read", "mq.uring write", "splice read", "dio.uring.fixed read", "mq.pread read",
    ]  # fmt: skip
    assert lines[at + 7] == "28 more rungs differ, 4 rungs are the same (--all)"
    assert lines[at + 9].startswith("mq.uring read: debian:6.1 to debian:7.2, +19.00 instructions")
    assert lines[at + 10] == f"+19.00  iov_iter and copying  {LONG}"


def test_the_digest_of_five_kernels_is_legible() -> None:
    names = ["debian:5.10", "debian:6.1", "debian:6.12", "debian:7.2", "debian:7.3"]
    whole = a_ladder(*names)
    for width in (80, 100):
        lines = digest(whole, width)
        assert len(lines) <= 24
        assert max(map(len, lines)) <= width
        assert all(f" {name}" in "\n".join(lines) for name in names)
        at = next(number for number, line in enumerate(lines) if line.startswith("rung"))
        heads = lines[at].split()[1:]
        if width == 80:
            heads = [a + b for a, b in zip(lines[at - 1].split(), heads, strict=True)]
        assert heads == names


@pytest.mark.parametrize("width", cases([80, 100, 200], quick=[80]))
def test_long_tables_fit_the_terminal(width: int) -> None:
    """They are split into several, and each kernel's name is whole."""
    names = ["debian:5.10", "debian:6.1", "debian:6.12", "debian:7.2", "debian:7.3"]
    whole = a_ladder(*names)
    lines = every_view(whole, width).splitlines()
    assert max(map(len, map(str.rstrip, lines))) <= width
    heads = [line.split() for line in lines if line.startswith("rung")]
    assert {name for head in heads for name in head} >= {*names}


def test_top_says_how_many_functions() -> None:
    whole = a_ladder("old", "new")
    last = next(record for record in whole["results"][::-1] if record["op"] == "read")
    last["profile"]["functions"][1]["instructions"] += 9
    lines = digest(whole, 80, 1)
    assert lines[-2:] == [
        f"+19.00  iov_iter and copying  {LONG}",
        " +9.00                        the other function",
    ]


def test_a_digest_where_nothing_differs() -> None:
    assert digest(two(PLAIN), 80) == [
        "old to new: dio.pread read takes the same.", "1 rung is the same (--all)",
    ]  # fmt: skip


def test_a_digest_of_what_is_undecided_says_so() -> None:
    whole = two(LOCKED)
    for record in whole["results"]:
        record["boots"] = record["boots"][:1]
    lines = digest(whole, 80)
    assert lines[0] == "old to new: dio.pread read is undecided."
    assert any("+1.00 (+0.1 %)?" in line for line in lines)
    assert lines[-1] == texts.UNKNOWN


def test_a_digest_has_what_comes_seldom() -> None:
    """This holds although the median is the same."""
    whole = two(PLAIN)
    long_run(whole, "old", 0, 0, {})
    long_run(whole, "new", 0, 1150.0, {"later": 1150.0})
    assert any(line.endswith("with deferred work +1,150") for line in digest(whole, 100))


@pytest.mark.parametrize("width", [60, 200])
def test_deferred_work_is_said_in_words(width: int) -> None:
    """In a column of its own if there is room, or else below the row, as the page says it."""
    whole = two(LOCKED)
    long_run(whole, "old", 0, 0, {})
    long_run(whole, "new", 0, 1150.0, {"later": 1150.0})
    for show in (terminal.show_comparison, terminal.show_all):
        said = printed(show, compared(whole), width=width)
        assert ", all +" not in said
        assert "+1,151.00" in said
        assert "deferred work" in said
    assert "in the usual path, +1,151.00 with deferred work" in page.render(
        parse(whole), compared(whole)
    ).replace("\u00a0", " ")


def test_who_executed_it_is_named() -> None:
    """This is shown if all differs otherwise than the path, in the terminal and in Markdown; the
    parts have the names of both kernels."""
    whole = two(PLAIN)
    parts = {"old": {"thread kjournald2": 9.0}, "new": {"kworker wb_workfn": 900.25}}
    for kernel, more in (("old", 9.0), ("new", 1150.0)):
        long_run(whole, kernel, 0, more, {})
        (record,) = (one for one in whole["results"] if one["kernel"]["name"] == kernel)
        record["all_parts"] = {"task": 1400.07, **parts[kernel], "softirq rcu_core_si": 249.75}
        if kernel == "old":
            del record["all_parts"]["softirq rcu_core_si"]
        record["all_parts"]["rest"] = 0.0
    said = (
        "with deferred work +1,141.00: kworker wb_workfn +900.25, softirq rcu_core_si +249.75,"
        " thread kjournald2 -9.00"
    )
    shown = " ".join(" ".join(digest(whole, 200)).split())
    assert f"dio.pread read, new: {said}" in shown
    result = parse(whole)
    text = markdown(result, compared(whole))
    assert f"W{said[1:]}." in " ".join(text.split())
    assert sum(compared(whole).rungs[0].differences["new"].total.parts.values()) == 1141.0
    shown = printed(terminal.show, result)
    assert "new dio.pread read: with deferred work 2,550.07: task 1,400.07," in shown


@pytest.mark.parametrize(
    ("total", "parts", "said"),
    [
        (1400.0, {"task": 1300.0, "kworker a": 99.5, "idle": -1.0, "rest": 1.5},
         "1,400.00: task 1,300.00, kworker a 99.50"),
        (1306.0, {"task": 1300.0, "switches": 4.0, "idle": 1.5, "rest": 0.5}, ""),
        (1294.0, {"task": 1300.0, "switches": -5.5, "rest": -0.5}, ""),
        (1320.0, {"task": 1320.0, "rest": 0.0}, "1,320.00: task 1,320.00"),
    ],
)  # fmt: skip
def test_noise_is_no_deferred_work(total: float, parts: dict[str, float], said: str) -> None:
    """Parts below the noise are not named, and no part is as if work was saved."""
    whole = a_result([a_record("old", "dio.pread", "read", 4096)])
    whole["results"][0] |= {
        "instructions_per_io": 1300.0, "with_deferred": total, "all_parts": parts,
    }  # fmt: skip
    shown = printed(terminal.show, parse(whole))
    assert ("total" in shown) == bool(said)
    assert [line for line in shown.splitlines() if "deferred" in line] == (
        [f"old dio.pread read: with deferred work {said}"] if said else []
    )


def test_requests_are_listed_where_an_io_is_not_one_of_them() -> None:
    """With what the kernel does not count of them."""
    usual = {"bios": [1.0], "requests": [1.0], "completions": [1.0], "wake-ups": [0.03]}
    for more, said in (
        ({}, []),
        ({"requests": [0.03], "plug merges": [0.95, 0.99], "splits": [0.001]},
         ["old mq.uring read 4 KiB: bios 1.00, requests 0.03, plug merges 0.97, completions 1.00,"
          " wake-ups 0.03 per I/O"]),
        ({"bios": [8.0]}, ["old mq.uring read 4 KiB: bios 8.00, requests 1.00, completions 1.00,"
                           " wake-ups 0.03 per I/O"]),
    ):  # fmt: skip
        whole = a_result([a_record("old", "mq.uring", "read", 4096)])
        whole["results"][0]["counts"] |= usual | more
        shown = printed(terminal.show, parse(whole)).splitlines()
        lines = [line for line in shown if "per I/O" in line]
        assert [line for line in lines if "bios" in line] == said
        missing = [line for line in shown if "not counted" in line]
        assert bool(missing) == bool(said)
        assert all("old: not counted, as functions are inlined: " in line for line in missing)
        assert all("queue runs" in line and "requests" not in line for line in missing)


def test_small_parts_are_one() -> None:
    parts = {"task": 100.0, **{f"kworker {name}": 1.0 + name for name in range(8)}, "rest": -0.25}
    assert texts.parts(parts, texts.count) == (
        "135.75: task 100.00, kworker 7 8.00, kworker 6 7.00, kworker 5 6.00, kworker 4 5.00,"
        " kworker 3 4.00, rest 5.75"
    )
    assert texts.parts({"task": -3.0, "idle": 0.25, "rest": 0.0}, texts.signed) == (
        "-2.75: task -3.00, rest +0.25"
    )


def test_a_digest_has_what_makes_a_comparison_doubtful() -> None:
    comparison = compared(two(LOCKED))
    comparison.brief = ["coherent (old.json, new.json)", "GCC 10 to 12"]
    assert printed(terminal.show_comparison, comparison, width=80).splitlines()[-1] == (
        "the kernels also differ in: coherent (old.json, new.json); GCC 10 to 12 (--all)"
    )


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_digest_keeps_both_figures(width: int) -> None:
    """This holds however narrow the terminal is; the bar is dropped first."""
    whole = a_ladder("debian:6.1", "debian:7.2")
    lines = digest(whole, width)
    at = next(number for number, line in enumerate(lines) if line.startswith("mq.uring read  "))
    assert lines[at].split()[2:4] == ["1,900.07", "1,919.07"]
    assert "+1.0 %" in lines[at]
    assert ("█" in "".join(lines)) == (width == 120)


def test_one_rung_has_no_bar() -> None:
    """It would be full whatever the change is."""
    assert "█" not in "".join(digest(two(LOCKED), 200))


def profile_lines(whole: dict[str, Any], top: int | None = 15, *, every: bool = False) -> list[str]:
    text = printed(terminal.show_profile, parse(whole), top, every=every)
    return [line.rstrip() for line in text.splitlines()]


def test_a_profile_shows_what_is_not_zero() -> None:
    """The largest layer first, and the counts that a function in the table has; --all shows every
    function and count."""
    whole = two([row("two", 600.0, calls=1.0), row("one", 500.0, "VFS", locked=2.0)])
    whole["results"] = whole["results"][1:]
    lines = profile_lines(whole, 1)
    layers = [line.split()[0] for line in lines if line.endswith("%")]
    assert layers == ["block", "VFS", "user"]
    head = next(line.split() for line in lines if line.startswith("function"))
    assert head == ["function", "layer", "instructions", "calls"]
    assert any(line.startswith("the other one (--all)") for line in lines)
    lines = profile_lines(whole, None, every=True)
    head = next(line.split() for line in lines if line.startswith("function"))
    assert {"locked", "reads", "branches"} <= set(head)
    assert any(line.startswith("one ") for line in lines)


def test_a_profile_has_one_total() -> None:
    """It is the clock's, as in all other tables. A line has the difference to the plugin's
    count."""
    whole = two(PLAIN)
    whole["results"] = whole["results"][1:]
    whole["results"][0]["instructions_per_io"] = 1400.07
    lines = profile_lines(whole)
    assert "1,400.07 instructions per I/O" in lines[0]
    assert [line.split()[-1] for line in lines if line.startswith("clock against")] == ["+0.07"]
    assert [line.split()[1] for line in lines if line.startswith("all ")] == ["1,400.07"]


def test_bars() -> None:
    def changes(*shares: float | None) -> list[Change]:
        return [Change(difference=1.0, percent=p, noise=0.0, verdict="longer") for p in shares]

    assert texts.bars(changes(10.0, -10.0, 5.0, -3.75, 0.001, 0.0, None), 4) == [
        "    │████", "████│    ", "    │██  ", "  ▐█│    ", "    │▌   ", "    │    ", "    │    ",
    ]  # fmt: skip
    assert texts.bars(changes(10.0, 5.0), 4) == ["│████", "│██  "]
    assert texts.bars(changes(10.0, -5.0), 4, ascii_only=True) == ["    |####", "  ##|    "]


def test_bars_without_unicode(listed: Command, tmp_path: Path) -> None:
    path = tmp_path / "ladder.json"
    path.write_text(json.dumps(a_ladder("old", "new")))
    listed.env["PYTHONIOENCODING"] = "ascii"
    done = listed.run("compare", path)
    assert done.returncode == 0
    assert "|#########" in done.stdout
    assert "old to new: 37 rungs: " in done.stdout
    assert done.stdout.isascii()


def test_markdown_begins_with_the_verdict() -> None:
    """The same one as on the terminal; then the rungs, the worst first; the facts come last."""
    whole = a_ladder("debian:6.1", "debian:7.2")
    lines = markdown(parse(whole), compared(whole)).splitlines()
    shown = digest(whole, 100)
    verdict = " ".join(shown[: shown.index("")])
    assert verdict.startswith("debian:6.1 to debian:7.2: 37 rungs: 17 take more, 16 fewer")
    assert " ".join(lines[2 : lines.index("", 2)]).split() == verdict.split()
    at = next(number for number, line in enumerate(lines) if line.startswith("| rung"))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[at + 2 : at + 35]]
    assert rows[0] == [
        "mq.uring read", "+19.00 (+1.0 %)", "`      │██████`", "iov_iter and copying +19",
    ]  # fmt: skip
    shares = [float(re.search(r"([-+][\d.]+) %", row[1])[1]) for row in rows]
    assert shares[:17] == sorted(shares[:17], reverse=True)
    assert shares[17:] == sorted(shares[17:])
    assert lines[at + 36] == "4 rungs are the same."
    assert max(map(len, lines)) <= 100
    assert lines.index("### What was measured") > lines.index("### Figures")


def test_a_long_wait_without_a_terminal_shows_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is at least one line in each period of SILENCE."""
    monkeypatch.setattr(progress, "SILENCE", 0.05)
    console = Console(file=io.StringIO(), width=80, highlight=False)
    reporter = progress.Reporter(console)
    before = threading.active_count()
    with reporter.running(3):
        reporter.finished()
        with reporter.task("git:a@b") as step:
            step("compiling, 0 objects", 0.0)
            step("compiling, 7 objects", 0.0)
            wait_for(lambda: "7 objects" in console.file.getvalue(), "a line after a silence")
    lines = console.file.getvalue().splitlines()
    assert "git:a@b: compiling, 0 objects" in lines
    assert re.fullmatch(r"git:a@b: compiling, 7 objects, \d+ s; 1 of 3 guests done", lines[-1])
    assert threading.active_count() <= before


def test_a_line_of_progress_names_few() -> None:
    """It names those that take longest."""
    console = Console(file=io.StringIO(), width=80, highlight=False)
    reporter = progress.Reporter(console)
    with contextlib.ExitStack() as stack, reporter.running(5):
        for name in "abcde":
            stack.enter_context(reporter.guest(name))
        found = reporter.doing()
        assert [text.split(",")[0] for text in found] == [f"{name}: counting" for name in "abcde"]
        state = reporter._state()
    assert state.endswith("2 more at work; 0 of 5 guests done")


# Names are text.


def test_brackets_and_dollars_in_names_are_text(tmp_path: Path) -> None:
    names = ("tree:/[bold]a[/b]", "tree:/$x_1$ and $y^")
    whole = a_result([profiled(names[0], PLAIN), profiled(names[1], LOCKED)])
    whole["results"][1]["profile"]["functions"][0]["layer"] = "[red]"
    text = every_view(whole, 400)
    assert all(text.count(name) >= 4 for name in names)
    assert "[red]" in text
    for draw, path in ((charts.ladder, "ladder.svg"), (charts.history, "history.svg")):
        charts.save(draw(parse(whole)), tmp_path / path)
        drawn = (tmp_path / path).read_text()
        assert all(f">{name}<" in drawn for name in names), path
