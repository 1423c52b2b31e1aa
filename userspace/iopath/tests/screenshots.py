# SPDX-License-Identifier: GPL-2.0
"""Pictures of what people see, to be looked at: the page, the site of track and the README, on
narrow and wide windows, light, dark and printed. Those of the last time are kept in "before". What
axe finds wrong with a page, and what is too wide, is printed, and the exit status is 1.

    python screenshots.py [--output FOLDER] [NAME=FILE.html or FILE.md[#ADDRESS]]...
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from browser import Browser
from markdown_it import MarkdownIt

from iopath.base.sources import source_root

_ROOT = source_root()
_WHAT = (
    f"page={_ROOT}/build/results/five-kernels.html",
    f"flame={_ROOT}/build/results/five-kernels.html#view=flame",
    f"site={_ROOT}/build/results/track/index.html",
    f"readme={_ROOT}/README.md",
)
_WIDTHS = (390, 1400)
_LOOKS = {"light": ("", "light"), "dark": ("", "dark"), "print": ("print", "dark")}
_HIGHEST = 4000  # pixels of a picture

# As GitHub shows a text.
_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0 auto; padding: 24px 16px; max-width: 920px; background: #fff; color: #1f2328;
    font: 16px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1, h2 { border-bottom: 1px solid #d1d9e0; padding-bottom: .3em; }
img { max-width: 100%; }
pre { background: #f6f8fa; padding: 16px; overflow: auto; font-size: 85%; }
:not(pre) > code { background: #818b981f; padding: .2em .4em; font-size: 85%; }
table { border-collapse: collapse; display: block; overflow: auto; max-width: max-content; }
th, td { border: 1px solid #d1d9e0; padding: 6px 13px; }
@media (prefers-color-scheme: dark) {
    body { background: #0d1117; color: #f0f6fc; }
    pre { background: #151b23; }
    a { color: #4493f8; }
    h1, h2, th, td { border-color: #3d444d; }
}
"""


def as_page(path: Path, folder: Path) -> Path:
    """A file that a browser can show: a text is written to a *folder* as a page."""
    if path.suffix != ".md":
        return path
    body = MarkdownIt("commonmark").enable("table").render(path.read_text())
    shown = folder / f"{path.stem}.html"
    base = f'<base href="{path.parent.absolute().as_uri()}/">'
    width = '<meta name="viewport" content="width=device-width">'
    shown.write_text(
        f'<!DOCTYPE html><meta charset="utf-8">{width}{base}<style>{_STYLE}</style>{body}'
    )
    return shown


def main() -> int:
    about = __doc__.partition("\n\n")[0]
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--output", type=Path, default=_ROOT / "build/screenshots")
    parser.add_argument("what", nargs="*", default=_WHAT, metavar="NAME=FILE[#ADDRESS]")
    args = parser.parse_args()
    before = args.output / "before"
    args.output.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder)) as browser:
        for word in args.what:
            name, _, place = word.partition("=")
            file, _, address = place.partition("#")
            path = Path(file)
            if not path.is_file():
                print(f"{file}: no such file: make results writes it", file=sys.stderr)
                wrong += 1
                continue
            shown = as_page(path, Path(folder))
            for width in _WIDTHS:
                for look, (kind, scheme) in _LOOKS.items():
                    to = args.output / f"{name}-{width}-{look}.png"
                    if to.exists():
                        before.mkdir(exist_ok=True)
                        shutil.move(to, before / to.name)
                    browser.window(width)
                    browser.media(kind, scheme)
                    browser.visit(shown, address)
                    browser.run("scrollTo(0, 0)")
                    high = browser.run("document.documentElement.scrollHeight")
                    browser.window(width, min(high, _HIGHEST))
                    browser.settle()
                    browser.screenshot(to)
                    print(to)
                    if shown == path and not kind:
                        for found in browser.too_wide() + browser.inaccessible():
                            print(f"{to}: {found}", file=sys.stderr)
                            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
