# SPDX-License-Identifier: GPL-2.0
"""fio as Debian packages it, for a guest: the program with all of its libraries, and t/io_uring,
which the package lacks, from the package's source. Everything is cached."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from helpers.guest_files import package
from helpers.selftests import TROUBLE
from iopath.base import process
from iopath.base.errors import IopathError
from iopath.guest.channel import Record
from iopath.measure.packages import SUITE
from iopath.measure.session import Session


def program(session: Session) -> tuple[str, dict[str, bytes]]:
    """fio's version, and its files for a guest, by their paths there."""
    return package(session, "fio", "fio")


# fio writes, and reads back what it has written.
_TERSE = "--output-format=terse --terse-version=3"
VERIFY = (
    f"--direct=1 --size=16m --io_size=4m --verify=crc32c --verify_fatal=1 --verify_dump=0 {_TERSE}"
)


def verifying(jobs: Mapping[str, str], target: str) -> list[str]:
    """The steps of a guest that runs *jobs*, options by name, on *target*."""
    return [
        f"run {job} /bin/fio --name={job} --filename={target} {options} {VERIFY}"
        for job, options in jobs.items()
    ]


def _kilobytes(jobs: Iterable[str], records: Iterable[Record]) -> dict[str, int]:
    """How many KiB each of *jobs* read. None of them failed."""
    said = {record.name: record.data.decode(errors="replace") for record in records}
    found = {}
    for job in jobs:
        words = next(line for line in said[job].splitlines() if line.startswith("3;")).split(";")
        assert (words[2], words[4]) == (job, "0"), said[job]
        found[job] = int(words[5])
    return found


def check_verified(jobs: Iterable[str], records: Iterable[Record], console: str) -> None:
    """Check that *jobs* found what they had written, and that the guest did not complain."""
    assert min(_kilobytes(jobs, records).values()) >= 4 << 10
    assert not [line for line in console.splitlines() if "I/O error" in line]
    assert not TROUBLE.search(console)


# fio writes blocks that hold their offset and how often all were written, or reads them.
CROSSING = f"--direct=1 --bs=4k --size=4m --verify=pattern --do_verify=0 {_TERSE}"


def crossing(one: str, other: str) -> list[str]:
    """The steps of a guest in which each of two paths to a disk reads what the other wrote."""
    return [
        f"run {rw}.{turn} /bin/fio --name={rw}.{turn} --filename={path} --rw={rw} {CROSSING}"
        f" --verify_pattern=0x{turn:02x}%o"
        for turn, (writer, reader) in enumerate([(one, other), (other, one)], 1)
        for rw, path in (("write", writer), ("read", reader))
    ]


def check_crossed(records: Iterable[Record], console: str) -> None:
    """Check that the steps of crossing() read all blocks, and that the guest did not complain."""
    said = _kilobytes(["write.1", "read.1", "write.2", "read.2"], records)
    assert said == {"write.1": 0, "read.1": 4 << 10, "write.2": 0, "read.2": 4 << 10}
    assert not TROUBLE.search(console)


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
