# SPDX-License-Identifier: GPL-2.0
"""fio as Debian packages it, for a guest: the program with all of its libraries, and t/io_uring,
which the package leaves out, from the package's source. All of it cached."""

import re
import shutil
import subprocess
from pathlib import Path

from iopath import process
from iopath.build import _unpack
from iopath.errors import IopathError
from iopath.measure import Session

SUITE = "bookworm"
_LIBRARIES = "lib/x86_64-linux-gnu"
_LOADER = "lib64/ld-linux-x86-64.so.2"


def program(session: Session) -> tuple[str, dict[str, bytes]]:
    """fio's version, and its files for a guest, by their paths there."""
    apt = session.apt
    debs = apt.closure(["fio"], SUITE)
    version = next(deb.split("_")[1] for deb in debs if deb.startswith("fio_"))

    def make(folder: Path) -> None:
        apt.download(["fio"], SUITE, closure=True, progress=lambda part: None)
        root = folder / "root"
        for name in ("bin", "lib", "lib64", "sbin"):
            (root / "usr" / name).mkdir(parents=True)
            (root / name).symlink_to(f"usr/{name}")
        for deb in debs:
            _unpack(apt.deb(deb), root)
        (folder / "files" / _LIBRARIES).mkdir(parents=True)
        (folder / "files/lib64").mkdir()
        (folder / "files/bin").mkdir()
        shutil.copyfile(root / "usr/bin/fio", folder / "files/bin/fio")
        shutil.copyfile(root / _LIBRARIES / "ld-linux-x86-64.so.2", folder / "files" / _LOADER)
        for library in _needed(root, root / "usr/bin/fio"):
            shutil.copyfile(library, folder / "files" / _LIBRARIES / library.name)
        shutil.rmtree(root)

    entry = session.cache.entry("fio", {"debs": debs}, make) / "files"
    files = {
        str(path.relative_to(entry)): path.read_bytes()
        for path in entry.rglob("*")
        if path.is_file()
    }
    return version, files


def _needed(root: Path, program: Path) -> list[Path]:
    """All libraries that *program* is linked with, those that they are included."""
    known: dict[str, Path] = {}
    left = [program]
    while left:
        text = subprocess.run(
            [process.need("readelf", "binutils"), "-d", left.pop()],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", text):
            if name in known:
                continue
            places = [root / _LIBRARIES / name, *(root / _LIBRARIES).glob(f"*/{name}")]
            found = next((place for place in places if place.exists()), None)
            if found is None:
                raise IopathError(f"no package of fio's has {name}")
            known[name] = found
            left.append(found)
    return list(known.values())


def t_io_uring(session: Session, version: str) -> bytes:
    """The program t/io_uring from the source of fio *version*."""

    def make(folder: Path) -> None:
        log = folder / "log"
        _download_source(session, version, folder, log)
        (source,) = folder.glob("fio_*.orig.tar.?z")
        command = (
            'mkdir fio && tar -xf "$1" -C fio --strip-components=1 && cd fio &&'
            " ./configure --build-static --disable-native && make t/io_uring &&"
            " mv t/io_uring .. && cd .. && rm -rf fio fio_*"
        )
        if process.run(["sh", "-ec", command, "sh", source], output=log, cwd=folder):
            raise IopathError(f"no t/io_uring: {log.read_text(errors='replace')[-2000:]}")

    entry = session.cache.entry("t_io_uring", {"version": version, "recipe": 1}, make)
    return (entry / "io_uring").read_bytes()


def _download_source(session: Session, version: str, folder: Path, log: Path) -> None:
    """Fetch and verify the source as apt does it for a line deb-src."""
    apt = session.apt
    apt.closure(["fio"], SUITE)  # apt is configured from here on
    with session.cache.lock("apt"):
        sources = folder / "sources.list"
        binary = (session.cache.root / f"apt/{SUITE}.list").read_text()
        sources.write_text(binary + binary.replace("deb [", "deb-src ["))
        options = ["-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Cache::pkgcache="]
        for command in (["update"], ["source", "--download-only", f"fio={version}"]):
            if process.run(["apt-get", *options, *command], output=log, cwd=folder, env=apt._env()):
                raise IopathError(f"no source of fio: {log.read_text(errors='replace')[-2000:]}")
