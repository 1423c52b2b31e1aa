# SPDX-License-Identifier: GPL-2.0
"""Where packages come from, and that only packages signed by Debian are used."""

import hashlib
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from iopath.base.cache import Cache
from iopath.base.errors import IopathError, Unreachable
from iopath.kernels.apt import Apt, download_error, find_mirrors, read_index
from iopath.measure.session import Session

SUITE = "bookworm-security"
INDEX = b"""Package: x
Version: 1
Architecture: amd64
Filename: x.deb
Size: 1
SHA256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
"""


def repository(folder: Path, suite: str, origin: str, label: str) -> str:
    """A repository with one package, and the line that apt knows it by."""
    top = folder / f"{origin}-{label}".replace(" ", "")
    index = top / "dists" / suite / "main/binary-amd64/Packages"
    index.parent.mkdir(parents=True)
    index.write_bytes(INDEX)
    (top / "dists" / suite / "Release").write_text(
        f"Origin: {origin}\nLabel: {label}\nSuite: stable\nCodename: {suite}\n"
        "Architectures: amd64\nComponents: main\nDate: Sat, 01 Nov 2025 00:00:00 UTC\n"
        f"SHA256:\n {hashlib.sha256(INDEX).hexdigest()} {len(INDEX)}"
        " main/binary-amd64/Packages\n"
    )
    return f"deb [trusted=yes arch=amd64] copy:{top}/ {suite} main\n"


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], None]:
    """Make these lines this machine's apt configuration, and fetch their lists."""

    def make(lines: list[str]) -> None:
        state = tmp_path / "apt"
        for name in ("lists/partial", "archives/partial", "parts"):
            (state / name).mkdir(parents=True, exist_ok=True)
        (state / "status").touch()
        (state / "sources.list").write_text("".join(lines))
        (tmp_path / "apt.conf").write_text(
            f'Dir::State "{state}"; Dir::State::lists "{state}/lists";'
            f' Dir::State::status "{state}/status"; Dir::Cache "{state}";'
            f' Dir::Etc::sourcelist "{state}/sources.list"; Dir::Etc::sourceparts "{state}/parts";'
            ' APT::Architecture "amd64"; APT::Sandbox::User "";\n'
        )
        monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
        monkeypatch.delenv("IOPATH_MIRROR", raising=False)
        monkeypatch.delenv("IOPATH_SECURITY_MIRROR", raising=False)
        done = subprocess.run(["apt-get", "update"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    return make


def test_the_mirror_is_debians(configure: Callable[[list[str]], None], tmp_path: Path) -> None:
    """Another distribution with a suite "stable" is not used."""
    configure(
        [
            repository(tmp_path, "stable", "Somebody", "Debian"),
            repository(tmp_path, "bookworm-security", "Other", "Debian-Security"),
            repository(tmp_path, "bookworm-backports", "Debian", "Debian Backports"),
            repository(tmp_path, "bookworm-security", "Debian", "Debian-Security"),
            repository(tmp_path, "bookworm", "Debian", "Debian"),
        ]
    )
    assert find_mirrors() == (
        f"copy:{tmp_path}/Debian-Debian/", f"copy:{tmp_path}/Debian-Debian-Security/",
    )  # fmt: skip


def test_no_mirror_of_debians(configure: Callable[[list[str]], None], tmp_path: Path) -> None:
    """Lists of another distribution do not become Debian's by being fetched."""
    configure([repository(tmp_path, "stable", "Somebody", "Debian")])
    with pytest.raises(IopathError, match="package lists: set IOPATH_MIRROR to the address of one"):
        find_mirrors()
    configure([])
    with pytest.raises(IopathError, match="run apt-get update, or set IOPATH_MIRROR"):
        find_mirrors()


@pytest.mark.long
def test_another_distribution(
    configure: Callable[[list[str]], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With lists that are not Debian's, the mirror that is named serves Debian's kernels, verified
    by Debian's keyring."""
    main, security = find_mirrors()
    configure([repository(tmp_path, "noble", "Ubuntu", "Ubuntu")])
    monkeypatch.setenv("IOPATH_MIRROR", main)
    monkeypatch.setenv("IOPATH_SECURITY_MIRROR", security)
    found = Apt(Cache(tmp_path / "cache"), print).packages()
    assert {"bookworm", "trixie"} <= {one.suite for one in found}
    assert any(one.name.startswith("linux-image-6.1") for one in found)
    assert "Ubuntu" not in (tmp_path / "cache/apt/all.list").read_text()


def test_digests(tmp_path: Path) -> None:
    """The lists say what a package's digest is."""
    lines = INDEX.decode().replace("Package: x", "Package: linux-image-x").splitlines(keepends=True)
    (tmp_path / "apt").mkdir()
    index = json.dumps([asdict(package) for package in read_index(lines, SUITE)])
    (tmp_path / "apt/index.json").write_text(index)
    found = Apt(Cache(tmp_path), print).digests(["linux-image-x=1", "linux-image-x=2"])
    assert found == {"linux-image-x=1": hashlib.sha256(b"").hexdigest()}


# Tampered files.


@pytest.fixture
def mirror(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A mirror of one suite of Debian's, as it was fetched, without packages yet."""
    session.apt.packages()
    top = tmp_path / "mirror"
    for path in (session.cache.root / "apt/lists").glob(f"*_dists_{SUITE}_*"):
        name = path.name.partition("_dists_")[2].replace("_", "/")
        target = top / "dists" / name.replace("binary/amd64", "binary-amd64")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=top)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/"
        monkeypatch.setenv("IOPATH_MIRROR", address)
        monkeypatch.setenv("IOPATH_SECURITY_MIRROR", address)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setattr("iopath.kernels.apt.SUITES", {SUITE: (SUITE,)})
        yield top
        server.shutdown()
        thread.join()


@pytest.fixture
def apt(tmp_path: Path) -> Apt:
    return Apt(Cache(tmp_path / "cache"), print)


def test_a_mirror_that_is_as_it_should_be(mirror: Path, apt: Apt) -> None:
    """The files that the tests below tamper with are accepted without that."""
    found = {package.name for package in apt.packages()}
    assert any(name.startswith("linux-image-6.1.0-") for name in found)


def test_the_lists_are_fetched_before_a_package_is_looked_up(mirror: Path, apt: Apt) -> None:
    """A kernel from git asks for its compiler before anything has asked for the kernels."""
    with pytest.raises(IopathError, match=r"Unable to locate package no-such-package$"):
        apt.closure(["no-such-package"], SUITE)
    assert (apt.deb("x").parents[1] / "index.json").exists()


def test_a_tampered_release_is_refused(mirror: Path, apt: Apt, tmp_path: Path) -> None:
    release = mirror / "dists" / SUITE / "InRelease"
    text = release.read_text()
    assert text.count("Label: Debian-Security\n") == 1
    release.write_text(text.replace("Label: Debian-Security\n", "Label: Debian-Securitz\n"))
    with pytest.raises(IopathError, match=r"cannot fetch the lists .*: GPG error: .* BADSIG "):
        apt.packages()
    assert not (tmp_path / "cache/apt/index.json").exists()


def test_older_lists_serve_with_a_word(mirror: Path, tmp_path: Path) -> None:
    said: list[str] = []
    apt = Apt(Cache(tmp_path / "cache"), said.append)
    before = apt.packages()
    assert said == []
    release = mirror / "dists" / SUITE / "InRelease"
    release.write_text(release.read_text().replace("Origin: Debian", "Origin: debian"))
    os.utime(release, (time.time() + 60,) * 2)  # or the server says that it is the same
    assert apt.packages(update=True) == before
    assert [text.startswith("package lists refused: GPG error: ") for text in said] == [True]


def test_a_tampered_list_is_refused(mirror: Path, apt: Apt) -> None:
    index = mirror / "dists" / SUITE / "main/binary-amd64/Packages"
    data = bytearray(index.read_bytes())
    data[-2] ^= 1
    index.write_bytes(data)
    with pytest.raises(IopathError, match=r"cannot fetch the lists .* Hash Sum mismatch"):
        apt.packages()


def test_a_package_that_is_listed_but_gone(mirror: Path, apt: Apt) -> None:
    """This is a permanent error, unlike a mirror that does not answer."""
    listed = next(p for p in apt.packages() if p.name.startswith("linux-headers-6.1.0-"))
    wanted = [f"{listed.name}={listed.version}"]
    with pytest.raises(IopathError, match=r"cannot download .* 404 ") as found:
        apt.download(wanted, SUITE, closure=False, progress=lambda part: None)
    assert not isinstance(found.value, Unreachable)
    output = "E: Failed to fetch http://127.0.0.1:9/x.deb  Could not connect (111: refused)"
    assert isinstance(download_error("x", output), Unreachable)


def test_a_tampered_package_is_refused(mirror: Path, apt: Apt, tmp_path: Path) -> None:
    """It has the right name and size; apt refuses its digest."""
    index = mirror / "dists" / SUITE / "main/binary-amd64/Packages"
    with index.open() as lines:
        package = min(
            (p for p in read_index(lines, SUITE) if p.name.startswith("linux-headers-6.1.0-")),
            key=lambda p: p.size,
        )
    stanza = next(
        part for part in index.read_text().split("\n\n")
        if part.startswith(f"Package: {package.name}\n")
        and f"\nVersion: {package.version}\n" in part
    )  # fmt: skip
    name = next(line.split()[1] for line in stanza.splitlines() if line.startswith("Filename: "))
    (mirror / name).parent.mkdir(parents=True)
    (mirror / name).write_bytes(os.urandom(package.size))
    apt.packages()
    with pytest.raises(IopathError, match="Hash Sum mismatch"):
        apt.download(
            [f"{package.name}={package.version}"], SUITE, closure=False, progress=lambda part: None
        )
    assert [path.name for path in (tmp_path / "cache/apt/archives").rglob("*.deb")] == []
