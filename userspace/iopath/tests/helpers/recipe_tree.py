# SPDX-License-Identifier: GPL-2.0
"""A copy of the project, in which a test follows a recipe of contributing.rst."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from iopath.base.arch import X86_64
from iopath.base.programs import built_folder
from iopath.base.sources import source_root

PARTS = ("Kbuild", "kernel", "userspace", "Documentation")
PACKAGE = "userspace/iopath/iopath"


class Tree:
    """A copy of the project."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self.root.mkdir()
        ignored = shutil.ignore_patterns("__pycache__", "build", "*.o", "*.ko", ".*")
        for name in PARTS:
            path = source_root() / name
            if path.is_dir():
                shutil.copytree(path, self.root / name, ignore=ignored)
            else:
                shutil.copyfile(path, self.root / name)
        self.programs = self.root / "build/guest" / X86_64.name
        shutil.copytree(built_folder(X86_64), self.programs)

    def append(self, file: str, text: str) -> None:
        with (self.root / file).open("a") as out:
            out.write(text)

    def replace(self, file: str, old: str, new: str) -> None:
        """Change the one place of a file that has the text *old*."""
        path = self.root / file
        text = path.read_text()
        assert text.count(old) == 1, f"{file}: {text.count(old)} times {old!r}"
        path.write_text(text.replace(old, new))

    def changed(self) -> list[str]:
        """The files that are not as in the project."""
        return [
            str(path.relative_to(self.root))
            for name in PARTS
            for path in sorted((self.root / name).rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
            and not same(path, source_root() / path.relative_to(self.root))
        ]  # fmt: skip

    def run(self, *words: str | Path, status: int = 0) -> str:
        """What Python says with the copy's package: its output, and its errors."""
        env = {
            **os.environ, "PYTHONPATH": str(self.root / "userspace/iopath"), "COLUMNS": "100",
            "IOPATH_SOURCE": str(self.root), "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, *words],
            env=env, cwd=self.root, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr


def same(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()


def recipe(title: str) -> str:
    """A section of contributing.rst."""
    text = (source_root() / "Documentation/contributing.rst").read_text()
    _, _, rest = text.partition(f"\n{title}\n{'=' * len(title)}\n")
    assert rest, title
    return re.split(r"\n[^\n]+\n====+\n", rest)[0]


def not_named(title: str, tree: Tree) -> list[str]:
    """The changed files that a recipe does not name, nor their folder."""
    names = set(re.findall(r"``(userspace/[^`]*|Documentation/[^`]*)``", recipe(title)))
    changed = tree.changed()
    assert changed
    return [name for name in changed if not {name, str(Path(name).parent)} & names]
