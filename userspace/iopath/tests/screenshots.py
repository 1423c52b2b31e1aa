# SPDX-License-Identifier: GPL-2.0
"""One sheet of what people see, to be looked at: each page and chart and the README in four widths,
light and dark, each picture the first screens of its page.

    python screenshots.py [--output FILE.html] [NAME=FILE.html, FILE.md or FILE.svg[#ADDRESS]]...

Without names, the pages have the figures of the tests. The sheet is a page, and a picture beside
it. What cannot be read (legible.py) is printed, and the exit status is 1.
"""

import argparse
import base64
import html
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from helpers import github, seen
from helpers.browser import Browser
from helpers.legible import Look, faults, show
from iopath.base.sources import source_root

_ROOT = source_root()
_WIDTHS = (390, 800, 1400, 1920)
_CHART, _HIGH = 1600, 4000  # pixels of a window with all of a chart
_HIGHEST = 1600  # pixels of a page that are shown
_SCALE = 0.32  # of a page on the sheet
_SHEET = 3000  # pixels


def usual(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every page and chart."""
    for name, text in seen.pages(folder).items():
        path = folder / f"{name.replace(' ', '-')}.html"
        path.write_text(text)
        yield name, path
        if name == "five kernels":
            yield "flame graph", Path(f"{path}#view=flame")
    yield from seen.drawn(folder).items()
    yield "README", _ROOT / "README.md"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--output", type=Path, default=_ROOT / "build/screenshots/sheet.html")
    parser.add_argument("what", nargs="*", metavar="NAME=FILE[#ADDRESS]")
    args = parser.parse_args()
    args.output.parent.mkdir(parents=True, exist_ok=True)
    wrong = []
    rows = []
    with tempfile.TemporaryDirectory() as place, Browser(Path(place)) as browser:
        folder = Path(place)
        given = [word.partition("=")[::2] for word in args.what]
        charts = []
        for name, where in given or usual(folder):
            file, _, address = str(where).partition("#")
            if not Path(file).is_file():
                sys.exit(f"{file}: no such file")
            path = github.as_page(Path(file), folder)
            cells = []
            is_chart = path.suffix == ".svg"
            for width in (_CHART,) if is_chart else _WIDTHS:
                for scheme in ("light", "dark"):
                    look = Look(width, scheme, height=_HIGH if is_chart else Look.height)
                    browser.window(width)
                    browser.visit(path, address)
                    wrong += [f"{name}: {one}" for one in faults(browser, [look])]
                    show(browser, look)
                    cells.append(_picture(browser, width))
            if is_chart:
                charts += cells
            else:
                rows.append(f"<h2>{html.escape(name)}</h2><div>{''.join(cells)}</div>")
            print(f"{name}: {path.name}", file=sys.stderr)
        if charts:
            rows.append(f"<h2>charts</h2><div>{''.join(charts)}</div>")
        args.output.write_text(_sheet(rows))
        browser.media()
        browser.window(_SHEET)
        browser.visit(args.output)
        browser.screenshot(args.output.with_suffix(".png"))
    print(f"look at {args.output} or {args.output.with_suffix('.png')}")
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


def _picture(browser: Browser, width: int) -> str:
    """The first screens of the page that is open."""
    high = min(browser.run("document.documentElement.scrollHeight"), _HIGHEST)
    browser.window(width, high)
    browser.settle()
    taken = browser.call("Page.captureScreenshot", format="jpeg", quality=80)["data"]
    assert base64.b64decode(taken)
    return f'<img src="data:image/jpeg;base64,{taken}" width="{round(width * _SCALE)}">'


def _sheet(rows: list[str]) -> str:
    style = (
        "body { font: 20px sans-serif; margin: 12px; background: #999 }"
        " h2 { margin: 12px 0 4px; font-size: 1em }"
        " div { display: flex; align-items: flex-start; gap: 8px }"
    )
    return f"<!DOCTYPE html><meta charset=utf-8><style>{style}</style>{''.join(rows)}"


if __name__ == "__main__":
    sys.exit(main())
