# SPDX-License-Identifier: GPL-2.0
"""Texts as GitHub shows them."""

import re
from pathlib import Path

from markdown_it import MarkdownIt

_PICTURE = re.compile(r'<img src="([^":]+\.svg)"[^>]*>')

_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0 auto; padding: 24px 16px; max-width: 920px; background: #fff; color: #1f2328;
    font: 16px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1, h2 { border-bottom: 1px solid #d1d9e0; padding-bottom: .3em; }
img, svg { max-width: 100%; height: auto; }
pre { background: #f6f8fa; padding: 16px; overflow: auto; font-size: 85%; }
:not(pre) > code { background: #818b981f; padding: .2em .4em; font-size: 85%; }
table { border-collapse: collapse; display: block; overflow: auto; max-width: max-content; }
th, td { border: 1px solid #d1d9e0; padding: 6px 13px; }
@media (max-width: 600px) {
    ::-webkit-scrollbar { width: 0; } /* as on a phone */
}
@media (prefers-color-scheme: dark) {
    body { background: #0d1117; color: #f0f6fc; }
    pre { background: #151b23; }
    a { color: #4493f8; }
    h1, h2, th, td { border-color: #3d444d; }
}
"""


def as_page(path: Path, folder: Path) -> Path:
    """A file that a browser can show: a text is written to a *folder* as a page. Its pictures are
    in the page itself, so that their texts can be checked."""
    if path.suffix != ".md":
        return path
    body = MarkdownIt("commonmark").enable("table").render(path.read_text())
    body = _PICTURE.sub(lambda found: (path.parent / found[1]).read_text(), body)
    shown = folder / f"{path.stem}.html"
    base = f'<base href="{path.parent.absolute().as_uri()}/">'
    width = '<meta name="viewport" content="width=device-width">'
    shown.write_text(
        f'<!DOCTYPE html><meta charset="utf-8">{width}{base}<style>{_STYLE}</style>{body}'
    )
    return shown
