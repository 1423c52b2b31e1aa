# SPDX-License-Identifier: GPL-2.0
"""A result, and its comparison, as one web page.

The page needs no network and no server. Its script draws tables of functions and flame graphs when
they are looked at, from numbers that the page carries.
"""

import io
import re
from functools import singledispatch
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from iopath import charts, facts, labels, pagedata, texts
from iopath.comparison import Comparison
from iopath.kernelinfo import matters
from iopath.layers import Layers
from iopath.result import ExactResult, Kernel, Result

_TEMPLATES = Path(__file__).parent / "templates"


def render(result: Result, comparison: Comparison | None, layers: Layers | None = None) -> str:
    """One self-contained page. *layers* is the table that the functions of the result are sorted
    by: without it, iopath's own."""
    layers = layers or Layers()
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters["count"] = texts.count
    return environment.get_template("page.html").render(
        heading=result.heading,
        profiled_by=result.profiled_by,
        names=result.names,
        facts=facts.facts(result),
        kernels=facts.of_kernels(result.kernels) + _builds(result.kernels),
        options=_options(result.kernels),
        labels=comparison.labels if comparison else [],
        unknown=comparison.has_unknown if comparison else False,
        base=comparison.base if comparison else result.names[0],
        **_figures(result, comparison, layers),
        data=pagedata.data(result, comparison, layers) if result.profiled else None,
        css=_source("page.css"),
        script=_source("page.js"),
    )


@singledispatch
def _figures(result: Result, comparison: Comparison | None, layers: Layers) -> dict[str, Any]:
    """The summary and its charts. Times have none."""
    return {"rows": [], "ladder": "", "history": ""}


@_figures.register
def _(result: ExactResult, comparison: Comparison | None, layers: Layers) -> dict[str, Any]:
    base = comparison.base if comparison else result.names[0]
    return {
        "rows": [
            (row, [texts.cell(row, name, base, comparison) for name in result.names])
            for row in result.rows()
        ],
        "ladder": _inline(charts.ladder(result, layers), "ladder"),
        "history": _inline(charts.history(result), "history") if len(result.names) > 2 else "",
    }


def _builds(kernels: list[Kernel]) -> list[tuple[str, list[str]]]:
    """The digests of kernels and modules, and the shims. Kernels of a machine have none."""
    if kernels[0].digests is None:
        return []
    shims = [
        "; ".join(
            f"{name}: {facts.get('iopath_shims') or 'none'}"
            for name, facts in kernel.modules.items()
        )
        for kernel in kernels
    ]
    return [
        ("compatibility shims", shims),
        *(
            (f"SHA-256 of {name}", [(k.digests or {}).get(name, "")[:12] for k in kernels])
            for name in kernels[0].digests
        ),
    ]


def _options(kernels: list[Kernel]) -> list[tuple[str, list[str]]]:
    """The options that matter or differ, with their value in each kernel."""
    names = {name for kernel in kernels for name in kernel.config if matters(name)}
    names |= labels.options(kernels).keys()
    return [(name, [kernel.config.get(name, "") for kernel in kernels]) for name in sorted(names)]


def _source(name: str) -> Markup:
    """A style sheet or a script, to be included unchanged."""
    return Markup((_TEMPLATES / name).read_text())


def _inline(figure: Figure, name: str) -> Markup:
    """A chart as an element of the page, in the page's own colours; *name* keeps the ids of several
    charts apart."""
    buffer = io.StringIO()
    charts.write_svg(figure, buffer)
    text = buffer.getvalue()
    text = text[text.index("<svg ") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'\bxlink:href="#', f'href="#{name}-', text)
    text = text.replace("url(#", f"url(#{name}-").replace(charts.INK, "currentColor")
    return Markup(text)
