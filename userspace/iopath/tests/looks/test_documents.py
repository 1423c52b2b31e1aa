# SPDX-License-Identifier: GPL-2.0
"""A person can read the README as GitHub shows it, with its pictures, and the first pages of the
documentation."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from helpers import github
from helpers.browser import Browser
from helpers.legible import EVERY, SOME, Look, faults, show
from iopath.base.sources import source_root

_ROOT = source_root()
_README = _ROOT / "README.md"
_HIGH = 8000  # pixels of a window with all of a page: what is below a picture's texts is in view
_FIRST = ("index", "quickstart", "questions")


@pytest.fixture(scope="module")
def documentation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation as a site in a folder of its own: other tests build build/html."""
    folder = tmp_path_factory.mktemp("html")
    made = subprocess.run(
        ["make", "-s", "htmldocs", f"HTML={folder}"],
        cwd=_ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


def shown(browser: Browser, page: Path) -> None:
    """Show a page, with its pictures in it: a picture that is a file of its own has no texts that
    can be checked."""
    browser.visit(page)
    for picture in browser.run("[...document.images].map((one) => one.getAttribute('src'))"):
        text = re.sub(r"^.*?(?=<svg)", "", (page.parent / picture).read_text(), flags=re.DOTALL)
        browser.run(f"document.images[0].outerHTML = {text!r}")


def high(looks: list[Look]) -> list[Look]:
    return [replace(look, height=_HIGH) for look in looks]


def test_readme(browser: Browser, tmp_path: Path) -> None:
    browser.visit(github.as_page(_README, tmp_path))
    assert browser.run("document.querySelectorAll('svg').length") == 1
    assert faults(browser, SOME) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_of_the_readme(scheme: str, browser: Browser, tmp_path: Path) -> None:
    browser.visit(github.as_page(_README, tmp_path))
    show(browser, Look(1000, scheme))
    assert poor(browser) == []


@pytest.mark.long
def test_readme_in_every_look(browser: Browser, tmp_path: Path) -> None:
    browser.visit(github.as_page(_README, tmp_path))
    assert faults(browser, EVERY) == []


@pytest.mark.parametrize("name", _FIRST)
def test_documentation(name: str, browser: Browser, documentation: Path) -> None:
    shown(browser, documentation / f"{name}.html")
    assert faults(browser, high(SOME)) == []
    show(browser, Look(1400))
    assert poor(browser) == []


@pytest.mark.long
@pytest.mark.parametrize("name", _FIRST)
def test_documentation_in_every_look(name: str, browser: Browser, documentation: Path) -> None:
    shown(browser, documentation / f"{name}.html")
    assert faults(browser, high(EVERY)) == []


def poor(browser: Browser) -> list[str]:
    """Texts without contrast. The rest of these pages is made by others."""
    return [fault for fault in browser.inaccessible() if fault.startswith("color-contrast")]
