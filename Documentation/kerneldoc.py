# SPDX-License-Identifier: GPL-2.0
"""Two directives for Sphinx that read the sources.

``kernel-doc:: HEADER`` describes a header's structures, as their kernel-doc comments do, and its
constants. ``compat-register::`` lists what kernel/compat bridges, and when each part can go.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
_COMMENT = re.compile(r"/\*\*\n(.*?)\*/", re.DOTALL)
_STRUCT = re.compile(r"struct (\w+) - (.*)")
_MEMBER = re.compile(r"@(\w+): (.*)")
_ENUM = re.compile(r"/\* ([^*]*) \*/\nenum (\w+) \{\n(.*?)\};", re.DOTALL)
_VALUE = re.compile(r"^\t(\w+)\s*= (\w+),\s*/\* (.*?) \*/", re.MULTILINE)
_SHIM = re.compile(r"/\*\n((?: \*[^\n]*\n)+?) \*/\n(?:#if|static)")
_GOES = re.compile(r"\s*Goes with support for (\d+\.\d+)\.?")


def _plain(text: str) -> str:
    """What rst must not take for markup."""
    texts_and_names = re.split(r"(?<!\w)@(\w+)", text)
    return "".join(
        f"``{part}``\\ " if number % 2 else re.sub(r"([*_`|\\])", r"\\\1", part)
        for number, part in enumerate(texts_and_names)
    )


def header(text: str) -> Iterator[str]:
    """The reStructuredText for a header."""
    for about, name, values in _ENUM.findall(text):
        yield from (f"``enum {name}``", f"    {_plain(about)}", "")
        for value, number, meaning in _VALUE.findall(values):
            yield from (f"    ``{value}`` ({number})", f"        {_plain(meaning)}", "")
    for comment in _COMMENT.findall(text):
        lines = [line.removeprefix(" *").strip() for line in comment.splitlines()]
        match = _STRUCT.fullmatch(lines[0])
        if not match:
            continue
        yield from (f"``struct {match.group(1)}``", f"    {_plain(match.group(2))}", "")
        for line in lines[1:]:
            member = _MEMBER.fullmatch(line)
            if member:
                yield from (f"    ``{member.group(1)}``", f"        {_plain(member.group(2))}")
            elif line:
                yield f"        {_plain(line)}"
            else:
                yield from ("", "    ..", "")


def shims() -> Iterator[tuple[str, str, str]]:
    """Of each shim the file, what it bridges, and the last release that wants it."""
    for path in sorted((ROOT / "kernel/compat").glob("*.h")):
        for comment in _SHIM.findall(path.read_text()):
            text = " ".join(line.removeprefix(" *").strip() for line in comment.splitlines())
            if match := _GOES.search(text):
                yield path.name, _GOES.sub("", text).strip(), match.group(1)


class _Generated(Directive):
    """What a generator says in reStructuredText."""

    def lines(self) -> Iterator[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        node = nodes.container()
        self.state.nested_parse(StringList(list(self.lines()), "generated"), 0, node)
        return node.children


class KernelDoc(_Generated):
    required_arguments = 1

    def lines(self) -> Iterator[str]:
        return header((ROOT / self.arguments[0]).read_text())


class CompatRegister(_Generated):
    def lines(self) -> Iterator[str]:
        yield from (".. list-table::", "    :header-rows: 1", "    :widths: 15 70 15", "")
        yield from ("    * - file", "      - what changed", "      - until")
        for name, text, release in shims():
            yield from (f"    * - ``{name}``", f"      - {_plain(text)}", f"      - {release}")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("kernel-doc", KernelDoc)
    app.add_directive("compat-register", CompatRegister)
    return {"parallel_read_safe": True}
