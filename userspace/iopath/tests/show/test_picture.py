# SPDX-License-Identifier: GPL-2.0
"""The small picture has each figure, and names the largest steps with their functions."""

import re
from pathlib import Path

from helpers.examples import STACKS, Stack, a_record, a_result
from iopath.results.result import ExactResult, parse
from iopath.show import charts, picture


def grown(name: str, by: float) -> tuple[Stack, ...]:
    """The stacks of a kernel in which a function of page pinning is new."""
    return (*STACKS, (("loop [user]", "do_syscall_64", name), "page pinning", by))


def replaced() -> tuple[Stack, ...]:
    """Those of a kernel in which a function took the place of another one of its layer."""
    return (*STACKS[:3], (*STACKS[3][:1], "page pinning", 1.0), *STACKS[4:],
            (("loop [user]", "do_syscall_64", "instead"), "page pinning", 410.0))  # fmt: skip


def three() -> ExactResult:
    """dio.pread grows most, by many functions; raw.pread grows by one function; in buf.pread one
    function replaces another."""
    many = (*grown("one", 40.0), *(((f"more {at}",), "VFS", 30.0) for at in range(4)))
    stacks = {
        "dio.pread": (STACKS, many, many),
        "raw.pread": (STACKS, STACKS, grown("helping", 90.0)),
        "buf.pread": (STACKS, replaced(), replaced()),
        "syscall": (STACKS[:2], grown("unseen", 900.0), grown("unseen", 900.0)),
    }
    return parse(a_result(
        a_record(kernel, rung, "read", 4096, found[at])
        for at, kernel in enumerate("abc")
        for rung, found in stacks.items()
    ))  # fmt: skip


def test_the_largest_steps_are_named() -> None:
    first, second = picture.named(three())
    assert (first.rung, first.before, first.after) == ("dio.pread", "a", "b")
    assert first.text == "+160 (+40 one)"
    assert (second.rung, second.before, second.after) == ("raw.pread", "b", "c")
    assert second.text == "+90 (+90 helping)"
    assert picture.draw(three()).get_label() == (
        "Instructions per read of 4 KiB on a, b, c. The largest steps: dio.pread +160 (+40 one)"
        " from a to b; raw.pread +90 (+90 helping) from b to c."
    )


def test_each_bar_has_its_figure(tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    charts.save(picture.draw(three()), path)
    text = path.read_text()
    shown = re.findall(r">([\d,]+)<", text)
    assert shown == ["602", "602", "692", "602", "762", "762", "602", "613", "613"]
    assert ">+160 (+40 one)<" in text
    assert f"<title>{picture.draw(three()).get_label()}</title>" in text
    assert "prefers-color-scheme: dark" in text
    high = float(re.search(r'height="([\d.]+)pt"', text)[1]) / 0.75
    assert high < 350


def test_without_growth_nothing_is_named() -> None:
    same = parse(a_result(a_record(name, "dio.pread", "read", 4096) for name in "ab"))
    assert picture.named(same) == []
    assert picture.draw(same).get_label() == "Instructions per read of 4 KiB on a, b."
