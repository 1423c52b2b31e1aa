# SPDX-License-Identifier: GPL-2.0
"""The command cache."""

import re

from iopath.base.sources import source_root
from iopath.commands.cache import KINDS


def test_kinds_of_the_cache_are_explained() -> None:
    """Each kind of entry that the package makes."""
    package = source_root() / "userspace/iopath/iopath"
    text = "".join(path.read_text() for path in package.rglob("*.py"))
    calls = r'\.(?:entry|workspace)\(\s*"(\w+)"|return \(?"(\w+)", (?:\{|inputs\))|/ "(logs)"'
    kinds = {next(filter(None, found)) for found in re.findall(calls, text)}
    assert {"image", "kernel", "logs", "modules", "result", "workspace"} <= kinds
    assert kinds - KINDS.keys() == set()
