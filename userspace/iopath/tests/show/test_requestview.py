# SPDX-License-Identifier: GPL-2.0
"""The view of requests, and their picture on the page."""

from typing import Any

import pytest

from helpers.examples import BOOTS, a_record, a_result
from helpers.parsed import Parsed
from iopath.compare.exact import compare
from iopath.results.layers import Layers
from iopath.results.metrics import REQUESTS
from iopath.results.result import parse
from iopath.show import page, requestview, stream

MERGED = {"system calls": 1 / 32, "bios": 1.0, "plug merges": 31 / 32, "requests": 1 / 32}
MERGED |= {"sectors": 256.0}
SINGLE = MERGED | {"plug merges": 0.0, "requests": 1.0, "sectors": 8.0}


def two() -> dict[str, Any]:
    """A kernel that merges 32 neighbours, and one that does not, and turns two round."""
    before, after = (a_record(name, "seq.uring", "read", 4096) for name in ("old", "new"))
    for record, means in ((before, MERGED), (after, SINGLE)):
        record["counts"] |= {name: [value] * BOOTS for name, value in means.items()}
    sizes = [0] * 16
    before["requests"] = {
        "who": {"requests": {"task": 1 / 32}},
        "sizes": [*sizes[:8], 40, *sizes[9:]],
        "seen": [f"R {at * 256} 256" for at in range(4)],
    }
    after["requests"] = {
        "who": {"requests": {"task": 0.5, "later": 0.5}, "bios": {"task": 1.0}},
        "sizes": [*sizes[:3], 1280, *sizes[4:]],
        "seen": ["W 0 8", "R 24 8", "R 8 8", "F 0 0"],
    }
    return a_result([before, after])


def shown(whole: dict[str, Any]) -> str:
    result = parse(whole)
    return requestview.render((result, compare(result, Layers())))


def test_a_screen_of_80_columns() -> None:
    text = shown(two())
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) <= 24
    lines = text.splitlines()
    assert lines[0] == "seq.uring read 4 KiB, per I/O"
    assert lines[1] == "old: 0.03 system calls -> 1.00 bios -> 0.03 requests of 128 KiB"
    story = "new: 0.03 system calls -> 1.00 bios -> 1.00 requests of 4 KiB (task 0.50, later 0.50)"
    assert story in " ".join(text.split())
    assert "new: requests 0.03 to 1.00 per I/O, plug merges 0.97 to 0.00, sectors" in text
    rows = [" ".join(line.split()) for line in lines]
    assert "plug merges 0.97 0.00" in rows
    assert "requests, later 0.00 0.50" in rows
    assert "up to 4 KiB 0.0 % ██████████ 100.0 %" in rows
    assert "up to 128 KiB ██████████ 100.0 % 0.0 %" in rows
    assert not any(row.startswith(("bios by", "splits")) for row in rows)


def test_one_kernel_has_no_changes() -> None:
    whole = two()
    whole |= {"results": whole["results"][:1], "kernels": whole["kernels"][:1]}
    text = requestview.render((parse(whole), None))
    assert " to 1.00" not in text
    assert "plug merges" in text


def test_what_was_not_counted_is_said() -> None:
    text = requestview.render((parse(a_result([a_record("a", "dio.pread", "read", 4096)])), None))
    assert text.startswith("No requests were counted")


def test_each_metric_has_a_place() -> None:
    assert sorted(requestview.SHOWN) == sorted(metric.name for metric in REQUESTS)


def test_the_picture_has_a_mark_for_each_request() -> None:
    """At its sector, the first at the bottom; both kernels have one scale."""
    (found,) = stream.streams(parse(two()))
    assert (found.title, found.height, found.number) == ("seq.uring read 4 KiB", "512 KiB", 4)
    before, after = found.pictures
    assert [(mark.x, mark.y, mark.height) for mark in before.marks] == [
        (0, 75, 25), (25, 50, 25), (50, 25, 25), (75, 0, 25)
    ]  # fmt: skip
    assert [mark.kind for mark in after.marks] == ["write", "read", "read", "flush"]
    assert (after.marks[3].y, after.marks[3].height) == (0, 100)
    assert before.text == "4 reads of 128 KiB each, 0 out of order"
    assert after.text == "2 reads, 1 write, 1 flush of 4 KiB each, 1 out of order"


@pytest.mark.parametrize("counts", [True, False])
def test_the_page_has_the_picture_if_the_device_counts(counts: bool) -> None:
    whole = two()
    for record in whole["results"] if not counts else ():
        record["requests"]["seen"] = []
    result = parse(whole)
    text = page.render(result, compare(result, Layers()))
    assert text.count("<rect") == (8 if counts else 0)
    assert ("512 KiB from bottom to top" in Parsed(text).text) == counts
