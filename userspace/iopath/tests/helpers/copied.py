# SPDX-License-Identifier: GPL-2.0
"""A copy of the package, to which a test adds something."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import iopath

PACKAGE = Path(iopath.__file__).parent


class Copied:
    """The package in a folder of a test's own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.package = folder / "iopath"
        ignored = shutil.ignore_patterns("__pycache__", "source")
        shutil.copytree(PACKAGE, self.package, ignore=ignored)

    def replace(self, file: str, old: str, new: str) -> None:
        """Change the one place of a file that has the text *old*."""
        path = self.package / file
        text = path.read_text()
        assert text.count(old) == 1, f"{file}: {text.count(old)} times {old!r}"
        path.write_text(text.replace(old, new))

    def _python(self, *words: str) -> subprocess.CompletedProcess:
        env = {**os.environ, "PYTHONPATH": str(self._folder), "COLUMNS": "100"}
        return subprocess.run(
            [sys.executable, *words],
            env=env, cwd=self._folder, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def run(self, *words: str) -> subprocess.CompletedProcess:
        """The command iopath."""
        return self._python("-m", "iopath", *words)

    def lines(self, code: str) -> list[str]:
        """What *code* prints."""
        done = self._python("-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()
