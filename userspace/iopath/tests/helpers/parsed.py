# SPDX-License-Identifier: GPL-2.0
"""A page, as a program reads it."""

import json
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest

from helpers.browser import Browser


class Parsed(HTMLParser):
    """The parts of a page that the tests look at."""

    VOID = ("meta", "input", "link", "img", "br", "hr", "wbr")

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
        data = data.replace("\u00a0", " ")
        if self._is_data:
            self.data = json.loads(data)
            self._is_data = False
        elif self.open[-1:] not in (["script"], ["style"]):
            self.text += data
            if self.open and {"td", "th"} & set(self.open) and self.rows:
                self.rows[-1][-1] += data


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


# The page in a browser.


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """A window of usual size. No page may report an error."""
    chromium.window(1400)
    chromium.media()
    chromium.errors.clear()
    yield chromium
    assert chromium.errors == []


def rows(browser: Browser, table: str) -> list[list[str]]:
    """The visible cells of a table."""
    return browser.run(
        f"""[...document.querySelectorAll({json.dumps(table + " tr")})]
        .filter((row) => row.checkVisibility())
        .map((row) => [...row.cells].filter((cell) => cell.checkVisibility())
            .map((cell) => cell.innerText.trim().replace(/\\s+/g, " ")))"""
    )


def labels(browser: Browser) -> list[str]:
    return browser.run("[...document.querySelectorAll('.frame')].map((frame) => frame.ariaLabel)")


# Elements that show text, and lie over another one of which they are no part.
OVERLAPS = """(() => {
    const seen = [...document.querySelectorAll("body *")].filter((part) =>
        part.checkVisibility() && !part.closest("svg, select, #flame, legend")
        && [...part.childNodes].some((child) => child.nodeType === 3 && child.data.trim()));
    const boxes = seen.map((part) => {
        const range = document.createRange();
        range.selectNodeContents(part);
        const box = range.getBoundingClientRect();
        const within = part.closest("#attribution")?.getBoundingClientRect();  // it may scroll
        return [part, within
            ? { ...box.toJSON(), bottom: Math.min(box.bottom, within.bottom) } : box];
    });
    const found = [];
    boxes.forEach(([one, a], at) => {
        for (const [two, b] of boxes.slice(at + 1)) {
            if (one.contains(two) || two.contains(one))
                continue;
            const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (wide > 2 && high > 4)
                found.push(`${one.outerHTML.slice(0, 100)} / ${two.outerHTML.slice(0, 100)}`);
        }
    });
    return found.slice(0, 5);
})()"""
