# SPDX-License-Identifier: GPL-2.0
"""What ./iopath-container asks podman or docker for. test_container.py runs it in a container."""

import os
import pty
import subprocess
import tempfile
from pathlib import Path

import pytest

from iopath.base.sources import source_root

COMMAND = source_root() / "iopath-container"

# An engine that has the image, unless its name ends in "empty", and prints what it is to run.
ENGINE = """#!/bin/sh
case $1 in
--version) echo "$(basename "$0") 1.0" ;;
info) echo "[name=seccomp]" ;;
image) case $0 in *empty) test -e "$0.built" ;; esac ;;
build) touch "$0.built"; printf '%s\\n' "$@" ;;
run) printf '%s\\n' "$@" ;;
esac
"""


class Asked:
    """A machine with an engine of a name, a home and a folder in which the command runs."""

    def __init__(self, root: Path, engine: str) -> None:
        self.home, self.here = root / "home", root / "here"
        self.other = root / "other folder"
        for folder in (root / "bin", self.home, self.here, self.other):
            folder.mkdir(parents=True, exist_ok=True)
        path = root / "bin" / engine
        path.write_text(ENGINE)
        path.chmod(0o755)
        self.env = {"PATH": f"{root}/bin:{os.environ['PATH']}", "HOME": str(self.home)}

    def run(self, *words: str, engine: str, **more: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [COMMAND, *words], cwd=self.here, env={**self.env, "IOPATH_ENGINE": engine, **more},
            capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip


def mounted(lines: list[str]) -> set[str]:
    return {lines[at + 1].split(":")[0] for at, word in enumerate(lines) if word == "-v"}


def test_folders_and_words(tmp_path: Path) -> None:
    """Folders have their names inside. Those that are in another one, and those that the container
    has itself, are not mounted."""
    asked = Asked(tmp_path, "podman")
    words = ("compare", f"git:{asked.other}@v6.12", "image:/boot/vmlinuz", "--json", "out.json",
             f"--html={asked.other}/page.html", "--", "/usr/bin/dd", "a b")  # fmt: skip
    done = asked.run(*words, engine="podman")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr, lines[0]) == (0, "", "run")
    folders = {str(asked.home), str(asked.here), str(asked.other), str(source_root())}
    assert mounted(lines) - {"/boot"} == folders
    assert tuple(lines[-len(words) :]) == words
    assert lines[lines.index("-w") + 1] == str(asked.here)
    assert f"IOPATH_CACHE={asked.home}/.cache/iopath" in lines
    assert (asked.home / ".cache/iopath").is_dir()
    assert {"-t", "--user"} & {*lines} == set()
    cache = tmp_path / "cache"
    found = asked.run("kernels", engine="podman", IOPATH_CACHE=str(cache)).stdout.splitlines()
    assert str(cache) in mounted(found)


def test_the_image_is_built_once(tmp_path: Path) -> None:
    asked = Asked(tmp_path, "empty")
    first, second = (asked.run("kernels", engine="empty") for _ in range(2))
    assert "building the image, once" in first.stderr
    assert "--target\nhost\n" in first.stderr
    assert first.stdout == second.stdout
    assert second.stderr == ""


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user")
def test_files_belong_to_the_user() -> None:
    """docker runs as root: a user names himself. podman's root is that user."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        _of_a_user(Path(name))


def _of_a_user(tmp_path: Path) -> None:
    for engine, is_named in (("docker", True), ("podman", False)):
        asked = Asked(tmp_path / engine, engine)
        for folder in (asked.home, asked.here):
            os.chown(folder, 1234, 1234)
        done = subprocess.run(
            [COMMAND, "kernels"], cwd=asked.here, env={**asked.env, "IOPATH_ENGINE": engine},
            capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True, user=1234,
            group=1234, extra_groups=[],
        )  # fmt: skip
        assert ("--user\n1234:1234\n" in done.stdout) == is_named


def test_no_engine(tmp_path: Path) -> None:
    done = Asked(tmp_path, "podman").run("kernels", engine="frobnicate")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "iopath-container: frobnicate is not installed: install podman or docker\n"
    )


def test_a_terminal_is_passed_on(tmp_path: Path) -> None:
    asked = Asked(tmp_path, "podman")
    ours, theirs = pty.openpty()
    try:
        subprocess.run(
            [COMMAND, "kernels"], cwd=asked.here, env={**asked.env, "IOPATH_ENGINE": "podman"},
            stdin=theirs, stdout=theirs, check=True,
        )  # fmt: skip
        assert "-t" in os.read(ours, 1 << 16).decode().split()
    finally:
        os.close(ours)
        os.close(theirs)
