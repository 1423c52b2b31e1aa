# SPDX-License-Identifier: GPL-2.0
"""Series in mails: which mails are patches, their order, and their commits."""

import gzip
import http.server
import os
import threading
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from helpers.mailed import answer, encoded, mails, mbox
from helpers.planted import git
from iopath.base.cache import Cache
from iopath.base.errors import IopathError, UsageError
from iopath.kernels import mail
from iopath.kernels.gitrepo import Repository

LINES = [f"line {number}\n" for number in range(60)]
SUBJECTS = ["block: größer", "block: second", "block: third", "block: new file"]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with four commits on its first one; they change a file, and make another."""
    path = tmp_path / "linux"
    path.mkdir()
    git(path, "init", "--quiet")
    for name in ("one.c", "two.c"):
        (path / name).write_text("".join(LINES))
    git(path, "add", ".")
    git(path, "commit", "--quiet", "--message", "base")
    for number, subject in enumerate(SUBJECTS):
        lines = (path / "one.c").read_text().splitlines(keepends=True)
        lines[15 * number] = f"changed, größer {number}\n"
        (path / "one.c").write_text("".join(lines))
        if number == 3:
            (path / "new.c").write_text("new\n")
        git(path, "add", ".")
        git(path, "commit", "--quiet", "--message", f"{subject}\n\nFrom here on it differs.")
    return Repository(path, str(path))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def trees(repository: Repository, commits: Sequence[str]) -> list[str]:
    return [repository.git("rev-parse", f"{commit}^{{tree}}") for commit in commits]


@pytest.mark.parametrize("how", ["", "base64", "quoted-printable"])
def test_a_thread(repository: Repository, cache: Cache, tmp_path: Path, how: str) -> None:
    """The patches of the newest version, in the order of their numbers, without the answers and
    what a list delivered twice. They make the trees that their author had."""
    words = ("--cover-letter", "--cover-from-description=none")
    old = mails(repository.path, "HEAD~4..HEAD~1", "-v2", *words)
    new = mails(repository.path, "HEAD~4..", "-v3", *words)
    if how:
        new = [encoded(one, how) for one in new]
    shuffled = [new[4], answer(new[2], "Does it?"), old[1], new[0], new[2], *old[2:], new[1]]
    found = mail.read(str(mbox(tmp_path / "mbox", [*shuffled, new[3], new[3], old[0]])))
    assert found.first.subject == "[PATCH v3 0/4] *** SUBJECT HERE ***"
    assert [one.label for one in found.patches] == ["1/4", "2/4", "3/4", "4/4"]
    assert [one.title for one in found.patches] == SUBJECTS
    assert found.patches[0].subject == "[PATCH v3 1/4] block: größer"
    assert all(one.references[0] == found.first.message_id for one in found.patches)
    base = repository.git("rev-parse", "HEAD~4")
    made, applied = mail.apply(cache, repository, base, found.patches)
    assert [one.error for one in applied] == [""] * 4
    wanted = [f"HEAD~{number}" for number in (3, 2, 1, 0)]
    assert trees(made, [one.commit for one in applied]) == trees(repository, wanted)
    assert made.subject(applied[0].commit) == SUBJECTS[0]
    # The same commits each time.
    assert mail.apply(cache, repository, base, found.patches)[1] == applied


def test_patches_without_numbers(repository: Repository, tmp_path: Path) -> None:
    """They come in the order of their dates. One mail may be a file of its own."""
    found = mails(repository.path, "HEAD~2..", "--no-numbered", "--no-thread")
    dated = [
        one.replace(b"\nDate: ", f"\nDate: Mon, 2 Mar 2026 10:0{at}:00 +0000\nX-Was: ".encode())
        for at, one in enumerate(found)
    ]
    series = mail.read(str(mbox(tmp_path / "mbox", dated[::-1])))
    assert [one.title for one in series.patches] == SUBJECTS[2:]
    assert [one.label for one in series.patches] == ["1/2", "2/2"]
    (tmp_path / "one.eml").write_bytes(found[0].partition(b"\n")[2])
    assert [one.label for one in mail.read(str(tmp_path / "one.eml")).patches] == ["1/1"]


def test_a_patch_that_does_not_apply(repository: Repository, cache: Cache, tmp_path: Path) -> None:
    """git's first error; the patches after it are applied without it."""
    found = mails(repository.path, "HEAD~4..")
    found[1] = found[1].replace(b"\n-line 15\n", b"\n-line 16\n")
    series = mail.read(str(mbox(tmp_path / "mbox", found)))
    base = repository.git("rev-parse", "HEAD~4")
    made, applied = mail.apply(cache, repository, base, series.patches)
    failed = "does not apply: patch failed: one.c:13"
    assert [one.error for one in applied] == ["", failed, "", ""]
    text = made.git("show", f"{applied[3].commit}:one.c")
    assert "changed, größer 1" not in text
    assert "changed, größer 3" in text
    # The repository with the base has nothing of it.
    assert repository.git("status", "--porcelain") == ""
    with pytest.raises(IopathError):
        repository.git("cat-file", "-e", applied[0].commit)


@pytest.mark.parametrize(
    ("left", "message"),
    [
        ([0, 1, 3], "patch 3/4 is missing"),
        ([0, 1, 2, 3, "again"], "patch 1/4 is in it twice: give one series"),
        ([], "no patch is in it: its subject must have [PATCH]"),
    ],
)
def test_incomplete_series(
    repository: Repository, tmp_path: Path, left: list[int | str], message: str
) -> None:
    made = mails(repository.path, "HEAD~4..")
    other = made[0].replace(b"\nMessage-Id: <", b"\nMessage-Id: <other")
    other = other.replace(b"\nMessage-ID: <", b"\nMessage-ID: <other")
    found = [other if one == "again" else made[one] for one in left]
    with pytest.raises(UsageError, match=f": {message}".replace("[", r"\[")):
        mail.read(str(mbox(tmp_path / "mbox", [*found, answer(made[0], "No.")])))


def test_neither_a_file_nor_an_id() -> None:
    with pytest.raises(UsageError, match="x/y: neither a file with mails nor a message id"):
        mail.read("x/y")


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bytes]]:
    """An archive of mails for b4, which has the threads that a test adds to it."""
    threads: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = threads.get(self.path)
            self.send_response(200 if data else 404)
            self.end_headers()
            self.wfile.write(data or b"")

        do_HEAD = do_GET

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "b4.midmask")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"http://127.0.0.1:{server.server_port}/all/%s")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield threads
    server.shutdown()
    server.server_close()


def test_a_message_id(
    repository: Repository, archive: dict[str, bytes], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """b4 fetches the thread of the mail."""
    found = mails(repository.path, "HEAD~4..", "--cover-letter")
    file = mbox(tmp_path / "mbox", found)
    (name,) = {mail.read(str(file)).first.message_id.strip("<>")}
    archive[f"/all/{urllib.parse.quote_plus(name)}/t.mbox.gz"] = gzip.compress(file.read_bytes())
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert [one.label for one in mail.read(name).patches] == ["1/4", "2/4", "3/4", "4/4"]
    assert mail.read(f"<{name}>").first.message_id == f"<{name}>"
    with pytest.raises(IopathError, match="b4 does not find it: That message-id is not known"):
        mail.read("other@example.org")
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(IopathError, match="b4"):
        mail.read(name)
