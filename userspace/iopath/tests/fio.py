# SPDX-License-Identifier: GPL-2.0
"""fio as Debian packages it, for a guest: the program with all of its libraries, and t/io_uring,
which the package leaves out, from the package's source. All of it cached."""

from pathlib import Path

from guest_files import package

from iopath import process
from iopath.errors import IopathError
from iopath.measure import Session
from iopath.packages import SUITE


def program(session: Session) -> tuple[str, dict[str, bytes]]:
    """fio's version, and its files for a guest, by their paths there."""
    return package(session, "fio", "fio")


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
            if process.run(["apt-get", *options, *command], output=log, cwd=folder, env=apt.env()):
                raise IopathError(f"no source of fio: {log.read_text(errors='replace')[-2000:]}")
