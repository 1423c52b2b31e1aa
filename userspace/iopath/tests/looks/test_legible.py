# SPDX-License-Identifier: GPL-2.0
"""A person can read each page and chart, in windows of all widths and with other fonts, and sees
the answer first."""

from pathlib import Path

import pytest

from helpers import seen
from helpers.browser import Browser
from helpers.legible import EVERY, FONTS, SOME, Look, below_the_fold, faults, show


def opened(browser: Browser, name: str, folder: Path) -> str:
    """Show a page. The value is what its answer is in."""
    make, answer = seen.PAGES[name]
    browser.open(make(folder))
    browser.settle()
    return answer


@pytest.mark.parametrize("name", seen.PAGES)
def test_page(name: str, browser: Browser, tmp_path: Path) -> None:
    answer = opened(browser, name, tmp_path)
    assert below_the_fold(browser, answer) == []
    browser.open_details()
    assert faults(browser, SOME) == []


@pytest.mark.long
@pytest.mark.parametrize("name", seen.PAGES)
def test_page_in_every_look(name: str, browser: Browser, tmp_path: Path) -> None:
    opened(browser, name, tmp_path)
    browser.open_details()
    assert faults(browser, EVERY) == []


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
@pytest.mark.parametrize("name", seen.PAGES)
def test_contrast(name: str, scheme: str, browser: Browser, tmp_path: Path) -> None:
    """axe finds nothing wrong, contrast included."""
    opened(browser, name, tmp_path)
    browser.open_details()
    show(browser, Look(1400, scheme))
    assert browser.inaccessible() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts(scheme: str, browser: Browser, tmp_path: Path) -> None:
    """At their own size, with both fonts, and so are those of the published results."""
    looks = [Look(2560, scheme, font, height=4000) for font in FONTS]
    found = []
    published = {path.name: path for path in seen.RESULTS.glob("*.svg")}
    assert published
    for name, path in (seen.drawn(tmp_path) | published).items():
        browser.visit(path)
        found += [f"{name}: {fault}" for fault in faults(browser, looks)]
    assert found == []
