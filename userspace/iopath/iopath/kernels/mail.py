# SPDX-License-Identifier: GPL-2.0
"""Series of patches in mails: a file, or the message id of a mail whose thread b4 fetches.

git mailsplit divides the file, and git am applies each patch in a repository of the cache, which
shares the objects of the one with the base. git am needs no work tree: it checks out the files that
a patch changes.
"""

import email
import email.policy
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path

from iopath.base import process, temporary
from iopath.base.cache import Cache
from iopath.base.errors import IopathError, UsageError
from iopath.kernels import gitrepo
from iopath.kernels.gitrepo import Repository

STDIN = "-"
_TAGS = re.compile(r"\s*((?:\[[^\]]*\]\s*)+)")  # "[PATCH v2 3/8]" and others before a subject
_NUMBER = re.compile(r"\b(\d+)/(\d+)\b")
_VERSION = re.compile(r"(?:\b|PATCH)v(\d+)\b", re.IGNORECASE)
_DIFF = re.compile(r"^(?:diff --git a/|--- a/|--- /dev/null)", re.MULTILINE)
_ID = re.compile(r"<[^<>\s]+>")
_MESSAGE_ID = re.compile(r"<?([^<>\s/]+@[^<>\s/]+)>?")

# Commits depend on the mails and on the base, and not on the settings of who applies them.
_SETTINGS = (
    "user.name=iopath", "user.email=iopath@localhost", "commit.gpgSign=false", "am.threeWay=false",
    "am.keepcr=false", "core.autocrlf=false", "core.hooksPath=/dev/null", "gc.auto=0",
)  # fmt: skip


@dataclass(frozen=True)
class Mail:
    """A mail of a series: patch *number* of *last*, or as number 0 the cover letter."""

    data: bytes
    subject: str
    message_id: str
    references: tuple[str, ...]
    date: datetime
    version: int
    number: int
    last: int
    has_diff: bool

    @property
    def label(self) -> str:
        """ "3/8"."""
        return f"{self.number}/{self.last}"

    @property
    def title(self) -> str:
        """The subject of its commit."""
        return _TAGS.sub("", self.subject, count=1).strip()


@dataclass(frozen=True)
class Series:
    """The patches of a series in their order, and the mail that a reply answers: the cover letter,
    or the first patch."""

    first: Mail
    patches: Sequence[Mail]


@dataclass(frozen=True)
class Applied:
    """A patch, and its *commit*, or the *error* for which it does not apply."""

    mail: Mail
    commit: str = ""
    error: str = ""


def read(name: str) -> Series:
    """The series in the file *name*, in the standard input, or in the thread of a message id. If
    there are several versions, it is the newest."""
    with temporary.folder() as folder:
        mails = folder / "mails"
        mails.mkdir()
        gitrepo.git(folder, "mailsplit", "-b", f"-o{mails}", str(_file(name, folder)))
        found = [_mail(path.read_bytes()) for path in sorted(mails.iterdir())]
    return _series(name, [one for one in found if one])


def _file(name: str, folder: Path) -> Path:
    """The file with the mails."""
    if name == STDIN:
        (folder / "mbox").write_bytes(sys.stdin.buffer.read())
        return folder / "mbox"
    path = Path(name)
    if path.is_file():
        return path.absolute()
    if path.exists() or not (found := _MESSAGE_ID.fullmatch(name)):
        raise UsageError(f"--from-mail {name}: neither a file with mails nor a message id")
    words: list[str | Path] = ["mbox", "--no-cache", "-o", folder, "-n", "mbox", found[1]]
    log = folder / "log"
    (folder / "mbox").unlink(missing_ok=True)
    fetched = process.run([process.need("b4", "b4"), *words], output=log) == 0
    for made in (folder / "mbox", folder / "mbox.mbx"):  # older versions of b4 add a suffix
        if fetched and made.is_file():
            return made
    raise IopathError(f"--from-mail {name}: b4 does not find it: {process.last_line(log)}")


def _mail(data: bytes) -> Mail | None:
    """A mail; None if it is neither a patch nor a cover letter."""
    found = email.message_from_bytes(data, policy=email.policy.default)
    subject = " ".join(str(found["Subject"] or "").split())
    tags = _TAGS.match(subject)
    if not tags or "PATCH" not in tags[1].upper() + " PATCH" * ("RFC" in tags[1].upper()):
        return None
    number, version = _NUMBER.search(tags[1]), _VERSION.search(tags[1])
    date = found["Date"].datetime if found["Date"] else None
    return Mail(
        data, subject,
        "".join(_ID.findall(str(found["Message-ID"] or ""))[:1]),
        tuple(_ID.findall(f"{found['References'] or ''} {found['In-Reply-To'] or ''}")),
        (date or datetime.fromtimestamp(0, UTC)).astimezone(UTC),
        int(version[1]) if version else 1,
        int(number[1]) if number else -1, int(number[2]) if number else 0,
        any(_DIFF.search(text) for text in _texts(found)),
    )  # fmt: skip


def _texts(found: EmailMessage) -> list[str]:
    """The parts of a mail that are texts."""
    texts = []
    for part in found.walk():
        if part.get_content_maintype() == "text":
            data = part.get_payload(decode=True)
            texts.append(data.decode(errors="replace").replace("\r\n", "\n"))
    return texts


def _series(name: str, mails: Sequence[Mail]) -> Series:
    """The newest series of these mails, each of which lists may have delivered several times."""
    version = max((one.version for one in mails if one.has_diff), default=0)
    known = {one.message_id or one.data: one for one in mails if one.version == version}
    covers = [one for one in known.values() if one.number == 0]
    patches = [one for one in known.values() if one.has_diff and one.number]
    if not patches:
        raise UsageError(f"--from-mail {name}: no patch is in it: its subject must have [PATCH]")
    if any(one.number < 0 for one in patches):
        if any(one.number > 0 for one in patches):
            raise UsageError(f"--from-mail {name}: some patches have no number: all must have one")
        # Without numbers, they were sent in this order.
        patches.sort(key=lambda one: one.date)
        patches = [replace(one, number=at, last=len(patches)) for at, one in enumerate(patches, 1)]
    patches.sort(key=lambda one: one.number)
    last = max(one.last for one in patches)
    numbers = [one.number for one in patches]
    for number in range(1, last + 1):
        if numbers.count(number) != 1:
            what = "is in it twice: give one series" if number in numbers else "is missing"
            raise UsageError(f"--from-mail {name}: patch {number}/{last} {what}")
    return Series((covers or patches)[0], patches)


def apply(
    cache: Cache, base: Repository, onto: str, patches: Sequence[Mail]
) -> tuple[Repository, list[Applied]]:
    """Apply *patches* to the commit *onto* of the repository *base*, each to those before it that
    apply: the repository with the commits, and each patch."""
    with cache.workspace("mailed", {"repository": gitrepo.key(base)}) as folder:
        repository = Repository(folder / "git", str(folder / "git"))
        gitrepo.share_objects(base, repository.path)
        tree = folder / "tree"
        head, found = onto, []
        for patch in patches:
            shutil.rmtree(tree, ignore_errors=True)
            shutil.rmtree(repository.path / "rebase-apply", ignore_errors=True)
            tree.mkdir()
            (folder / "mail").write_bytes(patch.data)
            gitrepo.git(repository.path, "update-ref", "--no-deref", "HEAD", head)
            gitrepo.git(repository.path, "read-tree", head)
            one = _apply(repository.path, tree, folder / "mail", patch)
            head = one.commit or head
            found.append(one)
    return repository, found


def _apply(path: Path, tree: Path, file: Path, patch: Mail) -> Applied:
    """Apply a patch to HEAD, whose files the index has."""
    done = gitrepo.run(
        path, f"--git-dir={path}", f"--work-tree={tree}",
        *(word for setting in _SETTINGS for word in ("-c", setting)),
        "am", "--quiet", "--quoted-cr=strip", "--committer-date-is-author-date", str(file),
    )  # fmt: skip
    if not done.returncode:
        return Applied(patch, gitrepo.git(path, "rev-parse", "HEAD"))
    lines = [*done.stderr.splitlines(), *done.stdout.splitlines(), "git am failed"]
    said = next((line for line in lines if line.startswith(("error: ", "fatal: "))), lines[0])
    return Applied(patch, error=f"does not apply: {re.sub('^(error|fatal): ', '', said)}")
