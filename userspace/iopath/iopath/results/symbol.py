# SPDX-License-Identifier: GPL-2.0
"""A function, and its name."""

import re
from typing import NamedTuple

_SUFFIX = re.compile(r"\.(isra|part|constprop|cold|llvm|lto_priv)(\.\d+)*")


def plain(name: str) -> str:
    """The name of a function without the suffixes that compilers add."""
    return _SUFFIX.sub("", name)


class Symbol(NamedTuple):
    """A function: its name, and the module it is in ("" for the kernel, "user" for the program)."""

    name: str
    module: str = ""

    @property
    def text(self) -> str:
        return f"{self.name} [{self.module}]" if self.module else self.name
