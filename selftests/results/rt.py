# SPDX-License-Identifier: GPL-2.0
"""Make a git repository of Linux 6.1 with the patches of PREEMPT_RT as its commits, from the source
package of Debian 12: the tag base is Linux without them, the branch rt has them all.

    build/venv/bin/python selftests/results/rt.py FOLDER

Nothing in a commit depends on where and when it is made.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from iopath.base.cache import Cache, cache_root
from iopath.base.errors import IopathError
from iopath.base.progress import Reporter
from iopath.measure.session import Session

SUITE = "bookworm"
DATE = "2026-01-01T00:00:00Z"
NAME, MAIL = "Debian", "debian@localhost"
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", NAME), ("EMAIL", MAIL), ("DATE", DATE))
}


def git(repository: Path, *words: str | Path, **variables: str) -> None:
    env = {**os.environ, **_IDENTITY, **variables}
    subprocess.run(["git", "-C", repository, *words], env=env, check=True)


def commit(repository: Path, patch: Path) -> None:
    """Commit a patch under the name of its author."""
    text = patch.read_text(errors="replace")
    author = re.search(r"^From: (.+) <(.+)>$", text, re.MULTILINE)
    subject = re.search(r"^Subject: (?:\[.*?\] *)?(.+(?:\n .+)*)", text, re.MULTILINE)
    if not author or not subject:
        raise IopathError(f"{patch.name}: no author, or no subject")
    git(repository, "apply", "--index", "--whitespace=nowarn", patch)
    git(
        repository, "commit", "-q", "-m", " ".join(subject[1].split()),
        GIT_AUTHOR_NAME=author[1].strip('"'), GIT_AUTHOR_EMAIL=author[2],
    )  # fmt: skip


def make(repository: Path, package: Path) -> None:
    """Make the repository from the source package in a folder."""
    (original,) = package.glob("linux_*.orig.tar.xz")
    (changes,) = package.glob("linux_*.debian.tar.xz")
    repository.mkdir(parents=True)
    subprocess.run(["tar", "-xf", original, "-C", repository, "--strip-components=1"], check=True)
    subprocess.run(["tar", "-xf", changes, "-C", package, "debian/patches-rt"], check=True)
    git(repository, "init", "-q", "-b", "rt")
    git(repository, "config", "gc.auto", "0")
    git(repository, "add", "-A", "-f", ".")
    git(repository, "commit", "-q", "-m", f"Linux {original.name.split('_')[1].split('.orig')[0]}")
    git(repository, "tag", "base")
    patches = package / "debian/patches-rt"
    for line in (patches / "series").read_text().splitlines():
        if line and not line.startswith("#"):
            commit(repository, patches / line)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("folder", type=Path, help="of the repository; it must not exist")
    args = parser.parse_args()
    try:
        if args.folder.exists():
            raise IopathError(f"{args.folder}: it exists")
        reporter = Reporter(Console(stderr=True))
        session = Session(Cache(cache_root(), reporter.warn), reporter)
        with tempfile.TemporaryDirectory(prefix="iopath-rt-") as folder:
            session.apt.download_source("linux", SUITE, Path(folder))
            make(args.folder, Path(folder))
    except (IopathError, subprocess.CalledProcessError) as error:
        print(f"rt.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
