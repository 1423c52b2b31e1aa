# SPDX-License-Identifier: GPL-2.0
"""Where the project's sources are, and which of them the modules are built from."""

import functools
import hashlib
import os
import shutil
from pathlib import Path

from iopath.base.errors import IopathError


def source_root() -> Path:
    """The project's sources: IOPATH_SOURCE, the checkout that this package lies in, or the copy
    that an installed package has of what guests need."""
    given = os.environ.get("IOPATH_SOURCE")
    package = Path(__file__).resolve().parents[1]
    places = [Path(given)] if given else [package.parents[2], package / "source"]
    for root in places:
        if (root / "kernel" / "blknull").is_dir():
            return root
    raise IopathError(
        f"{places[0]} is not iopath's source tree: set IOPATH_SOURCE to a checkout of the project"
    )


def source_digest() -> str:
    """One digest of everything that the modules are built from. It is made once."""
    return _digest(source_root())


@functools.cache
def _digest(root: Path) -> str:
    state = hashlib.sha256()
    for path in module_sources():
        state.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
        state.update(path.read_bytes())
    return state.hexdigest()


def module_sources() -> list[Path]:
    """The modules' sources: no build products that lie beside them."""
    root = source_root()
    wanted = [
        path
        for path in (root / "kernel").rglob("*")
        if path.is_file()
        and not path.name.startswith(".")
        and (path.suffix in (".c", ".h") or path.name == "Kbuild")
        and not path.name.endswith(".mod.c")
    ]
    return sorted([root / "Kbuild", *wanted])


def copy_sources(folder: Path) -> None:
    """Copy what the modules are built from to *folder*, where it may be built."""
    for path in module_sources():
        target = folder / path.relative_to(source_root())
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
