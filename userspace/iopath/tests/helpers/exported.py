# SPDX-License-Identifier: GPL-2.0
"""Repositories of kernels with the modules as patches: kernel/intree."""

import os
import shutil
import subprocess
from pathlib import Path

from helpers.linux_source import LinuxSource, left_out
from iopath.base.sources import source_root
from iopath.measure.session import Session

BRANCH = "blknull-biogen"

# Documentation and selftests are unpacked, too. Those of BPF are large.
_EXCLUDED = (
    *(name for name in left_out() if not name.startswith(("*/Documentation/", "*/tools/testing/"))),
    "*/selftests/bpf/*",
)


def git(path: Path, *words: str) -> str:
    return subprocess.check_output(["git", "-C", path, *words], text=True)


def make_repository(folder: Path) -> Path:
    """An empty repository."""
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    # Packing a kernel's source takes minutes.
    config = {"user.name": "Ada Tester", "user.email": "ada@example.org", "gc.auto": "0"}
    for name, value in config.items():
        git(folder, "config", name, value)
    return folder


def export(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What make intree runs."""
    return subprocess.run(
        [source_root() / "kernel/intree/export.py", path, *words],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


def exported(session: Session, series: str, clone: Path) -> None:
    """Make *clone* a repository with the source of a series and the patches for it. Nothing is
    checked out."""
    source = LinuxSource(session, series)

    def make(folder: Path) -> None:
        at = make_repository(folder / "linux")
        source.unpack(at, *(f"--exclude={name}" for name in _EXCLUDED))
        git(at, "add", "--all", "--force")
        git(at, "commit", "--quiet", "-m", f"Linux {series}")
        for path in at.iterdir():
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    inputs = {"package": source.wanted, "left_out": _EXCLUDED}
    repository = session.cache.entry("linux", inputs, make) / "linux"
    make_repository(clone)
    objects = clone / ".git/objects/info/alternates"
    objects.write_text(f"{repository}/.git/objects\n")
    head = git(repository, "rev-parse", "HEAD").strip()
    git(clone, "update-ref", "refs/heads/base", head)
    git(clone, "symbolic-ref", "HEAD", "refs/heads/base")
    done = export(clone)
    assert done.returncode == 0, done.stderr
