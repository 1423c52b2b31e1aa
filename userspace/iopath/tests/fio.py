# SPDX-License-Identifier: GPL-2.0
"""fio as Debian packages it, for a guest: the program with all of its libraries, and t/io_uring,
which the package leaves out, from the package's source. All of it cached."""

from pathlib import Path

from guest_files import package

from iopath.base import process
from iopath.base.errors import IopathError
from iopath.measure.packages import SUITE
from iopath.measure.session import Session


def program(session: Session) -> tuple[str, dict[str, bytes]]:
    """fio's version, and its files for a guest, by their paths there."""
    return package(session, "fio", "fio")


def t_io_uring(session: Session, version: str) -> bytes:
    """The program t/io_uring from the source of fio *version*."""

    def make(folder: Path) -> None:
        log = folder / "log"
        session.apt.download_source(f"fio={version}", SUITE, folder)
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
