# SPDX-License-Identifier: GPL-2.0
"""Whether a person can read what a page shows, in windows of all widths, fonts and sizes of text,
light, dark and printed (legible.js)."""

import itertools
import json
from dataclasses import dataclass
from pathlib import Path

from helpers.browser import Browser

LEAST = 11  # pixels of the smallest text
FOLD = (800, 600)  # a window that shows a page's answer without scrolling

WIDTHS = (360, 390, 600, 800, 1000, 1200, 1400, 1920, 2560)
_SCHEMES = ("light", "dark", "print")
FONTS = ("DejaVu Sans", "Liberation Sans")
_SIZES = (100, 150)
_PIXELS = 16  # of text, if its size is 100 per cent

_CHECK = (Path(__file__).parent / "legible.js").read_text()


@dataclass(frozen=True)
class Look:
    """How a page is shown: the width of the window in pixels, light, dark or printed, the font, and
    the size of text in per cent."""

    width: int
    scheme: str = "light"
    font: str = FONTS[0]
    size: int = 100
    height: int = 900

    def __str__(self) -> str:
        return f"{self.width} pixels, {self.scheme}, {self.font}, {self.size} %"


EVERY = [Look(*one) for one in itertools.product(WIDTHS, _SCHEMES, FONTS, _SIZES)]
# Each width, and each two of the other values together.
SOME = [
    *map(Look, WIDTHS),
    Look(360, "dark", FONTS[1], 150),
    Look(800, "print", FONTS[1], 100),
    Look(1000, "light", FONTS[1], 150),
    Look(1400, "dark", FONTS[0], 150),
    Look(1920, "print", FONTS[0], 150),
    Look(390, "dark", FONTS[1], 100),
]


def show(browser: Browser, look: Look) -> None:
    """Show the page that is open in another way."""
    browser.window(look.width, look.height)
    pixels = _PIXELS * look.size // 100
    browser.call("Page.setFontSizes", fontSizes={"standard": pixels, "fixed": pixels})
    browser.media("print" if look.scheme == "print" else "", look.scheme.replace("print", "dark"))
    style = (
        f"* {{ font-family: {look.font!r} !important }}"
        " code, pre, kbd, samp, tt { font-family: 'DejaVu Sans Mono' !important }"
    )
    browser.run(
        f"""(() => {{
        let style = document.getElementById("look");
        if (!style) {{
            style = document.createElementNS("http://www.w3.org/1999/xhtml", "style");
            style.id = "look";
            (document.head ?? document.documentElement).append(style);
        }}
        style.textContent = {json.dumps(style)};
        }})()"""
    )
    browser.settle()


def faults(browser: Browser, looks: list[Look], least: float = LEAST) -> list[str]:
    """What cannot be read of the page that is open."""
    found = []
    for look in looks:
        show(browser, look)
        found += [f"{look}: {fault}" for fault in browser.run(f"{_CHECK}({least})")]
    return found


def below_the_fold(browser: Browser, answer: str) -> list[str]:
    """The texts of the elements *answer*, which a small window shows only after scrolling."""
    show(browser, Look(FOLD[0]))
    browser.window(*FOLD)
    browser.settle()
    return browser.run(
        f"""(() => {{
        const parts = [...document.querySelectorAll({json.dumps(answer)})].filter((part) =>
            part.checkVisibility());
        const low = parts.filter((part) => part.getBoundingClientRect().bottom > innerHeight);
        return parts.length ? low.map((part) => part.innerText) : ["nothing"];
        }})()"""
    )
