# SPDX-License-Identifier: GPL-2.0
"""Repositories of git, which are only read and never modified.

A repository elsewhere is copied into the cache. Kernels are checked out into work trees of the
cache, which share the repository's objects (sources/git.py).
"""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from iopath.base import process
from iopath.base.cache import Cache, digest_of
from iopath.base.errors import IopathError, UsageError

_URL = re.compile(r"[a-z][a-z0-9+]*://|[\w.-]+@[\w.-]+:")
_AT = re.compile(r"(.+)@(?!\{)((?:[^@]|@\{)+)$")  # the last @, but not that of HEAD@{1}
SETTINGS = re.compile(r"\[([^\[\]]*)\]$")  # behind a revision: how that kernel is configured
_USER = re.compile(r"[a-z][a-z0-9+]*://[^/]*")  # an address up to an @ that is not a revision's
KERNEL = ("Kbuild", "Kconfig", "Makefile")  # in the top folder of a kernel's source


@dataclass(frozen=True)
class Commit:
    """A commit of a branch."""

    name: str
    date: str
    subject: str
    is_merge: bool


@dataclass(frozen=True)
class Repository:
    """A repository: its *path*, and the *name* that it was given."""

    path: Path
    name: str

    @property
    def place(self) -> str:
        """Its address, or its path from the root folder."""
        return self.name if _URL.match(self.name) else str(self.path)

    def git(self, *words: str) -> str:
        """The output of a command that only reads."""
        return git(self.path, *words)

    def commit(self, name: str) -> str:
        """The commit that *name* stands for, which must be of a kernel."""
        typed = f"git:{self.name}@{name}"
        commit = resolve(self.path, name, f"{typed}: there is no such commit")
        if set(KERNEL) - set(self.git("ls-tree", "--name-only", commit).splitlines()):
            raise UsageError(
                f"{typed}: this is not a kernel: it lacks {', '.join(KERNEL[:-1])} or {KERNEL[-1]}"
            )
        return commit

    def changed(self) -> int:
        """How many files differ from HEAD in the work tree, if there is one."""
        if self.git("rev-parse", "--is-bare-repository") == "true":
            return 0
        return len(self.git("status", "--porcelain", "--untracked-files=no").splitlines())

    def subject(self, commit: str) -> str:
        return self.git("log", "-1", "--format=%s", commit)

    def is_checked_out(self, name: str) -> bool:
        """Whether *name* is HEAD, or the branch that it stands for."""
        if name == "HEAD":
            return True
        return run(self.path, "symbolic-ref", "--quiet", "--short", "HEAD").stdout.strip() == name

    def between(self, first: str, last: str, *, every: int = 1, merges: bool = False) -> list[str]:
        """The commit that *first* and *last* have in common, and the commits of *last* after it,
        oldest first: each *every*th and the last, or with *merges* only the merges into the line of
        *last*."""
        typed = f"git:{self.name}@{first}..{last}"
        ends = self.commit(first), self.commit(last)
        base = run(self.path, "merge-base", *ends).stdout.strip()
        if not base:
            raise UsageError(f"{typed}: {first} and {last} have no commit in common")
        if base == ends[1] != ends[0]:
            raise UsageError(f"{typed}: {last} is behind {first}: exchange them")
        only = ["--merges", "--first-parent"] if merges else ["--topo-order"]
        commits = self.git("rev-list", "--reverse", *only, "..".join(ends)).splitlines()
        if not commits:
            raise UsageError(f"{typed}: no {'merge' if merges else 'commit'} is in this range")
        return [base, *commits[::-1][::every][::-1]]

    def ancestors(self, commit: str, first: str) -> list[str]:
        """The first parents of a commit that are not before *first*, nearest first, and *first*."""
        words = ("rev-list", "--first-parent", "--boundary", f"{first}..{commit}")
        return [name.lstrip("-") for name in self.git(*words).splitlines()[1:]]

    def line(self, first: str, last: str) -> list[Commit]:
        """*first* and the commits after it in the line of *last*: each is the first parent of the
        next one, so that commits are only ever added at its end."""
        start = self.commit(first)
        words = ("log", "--first-parent", "--format=%H %cs %P%x09%s")
        texts = [
            self.git(*words, "-1", start),
            *self.git(*words, "--reverse", f"{start}..{self.commit(last)}").splitlines(),
        ]
        found = []
        for text in texts:
            head, _, subject = text.partition("\t")
            name, date, *parents = head.split()
            found.append(Commit(name, date, subject, len(parents) > 1))
        return found

    @property
    def objects(self) -> Path:
        """The folder of its objects."""
        return self.path / self.git("rev-parse", "--git-path", "objects")


def split(spec: str) -> tuple[str, str]:
    """The repository and the revision or range of "git:*spec*"; without a revision, HEAD."""
    spec = SETTINGS.sub("", spec)
    found = _AT.match(spec)
    if not found or _USER.fullmatch(found[1]) or ":" in found[2]:
        return spec, "HEAD"
    return found[1], found[2]


def name(place: str | Path, commit: str, of: str = "") -> str:
    """How a kernel is asked for: the commit of the repository at a *place*, with the settings that
    are behind the revision of another name, *of*."""
    settings = SETTINGS.search(of)
    return f"git:{place}@{commit[:12]}{settings[0] if settings else ''}"


def open_repository(place: str, cache: Cache) -> Repository:
    """The repository at a path or an address."""
    if _URL.match(place):
        return Repository(_copy(place, cache), place)
    path = Path(place).expanduser().absolute()
    if not path.is_dir():
        raise UsageError(f"git:{place}: there is no such folder")
    try:
        bare = git(path, "rev-parse", "--is-bare-repository") == "true"
        top = path.resolve() if bare else Path(git(path, "rev-parse", "--show-toplevel"))
    except IopathError as error:
        raise UsageError(f"git:{place}: this is not a git repository") from error
    if top != path.resolve():
        raise UsageError(f"git:{place}: this is not the top of a git repository: that is {top}")
    return Repository(path, place)


def _copy(address: str, cache: Cache) -> Path:
    """A copy of the repository at *address*, as new as that is."""
    with cache.workspace("repository", {"address": address}) as folder:
        path = folder / "git"
        log = folder / "log"
        log.write_text("")
        if not (path / "config").exists():
            git(folder, "init", "--quiet", "--bare", str(path))
            git(path, "config", "remote.origin.url", address)
        command = [
            process.need("git", "git"), "-C", path, "fetch", "--quiet", "--prune", "origin",
            "+refs/*:refs/*",
        ]  # fmt: skip
        if process.run(command, output=log, env={"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}):
            said = log.read_text(errors="replace").splitlines()
            fatal = [line for line in said if line.startswith("fatal: ")] or ["it cannot be read"]
            raise IopathError(f"git:{address}: {fatal[0].removeprefix('fatal: ')}")
        head = git(path, "ls-remote", "--symref", "origin", "HEAD").partition("\t")[0]
        if head.startswith("ref: "):
            git(path, "symbolic-ref", "HEAD", head.removeprefix("ref: "))
    return path


def resolve(path: Path, name: str, unknown: str) -> str:
    """The commit that *name* stands for in the repository *path*. Raises UsageError with the
    message *unknown* if there is none."""
    try:
        return git(path, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except IopathError as error:
        raise UsageError(unknown) from error


def git(path: Path, *words: str, check: bool = True) -> str:
    """The output of git in *path*. Raises IopathError with git's first line if it failed."""
    done = run(path, *words)
    if check and done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise IopathError(f"git {words[0]}: {lines[0] if lines else 'it failed'}")
    return done.stdout.strip()


def run(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [process.need("git", "git"), "-C", path, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
    )


def share_objects(repository: Repository, folder: Path) -> None:
    """Make *folder* a repository of its own with the objects of *repository*."""
    if not (folder / "HEAD").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "--quiet", "--bare", ".")
    (folder / "objects/info").mkdir(parents=True, exist_ok=True)
    (folder / "objects/info/alternates").write_text(f"{repository.objects}\n")
    shallow = repository.path / repository.git("rev-parse", "--git-path", "shallow")
    if shallow.exists():
        (folder / "shallow").write_bytes(shallow.read_bytes())


def key(repository: Repository) -> str:
    """The key by which work trees of a repository are kept."""
    return digest_of({"repository": str(repository.path.resolve())})[:16]
