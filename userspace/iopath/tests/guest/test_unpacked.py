# SPDX-License-Identifier: GPL-2.0
"""The kernel in a bzImage."""

import gzip
import lzma
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from iopath.guest import unpacked

SETUP = 3  # sectors behind the first one
OFFSET = 64  # of the packed kernel, behind these


def note(name: bytes, kind: int, content: bytes = b"12345") -> bytes:
    padded = [part + bytes(-len(part) % 4) for part in (name, content)]
    return struct.pack("<III", len(name), len(content), kind) + b"".join(padded)


def elf(*notes: bytes) -> bytes:
    """A file with a segment of code, and one of notes."""
    text = b"".join(notes)
    head = struct.pack("<4sB27xQ14xHH6x", b"\x7fELF", 2, 64, 56, 2)
    code = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 64, 64, 0)
    of_notes = struct.pack("<IIQQQQQQ", 4, 4, 64 + 2 * 56, 0, 0, len(text), len(text), 4)
    return head + code + of_notes + text


def bzimage(packed: bytes) -> bytes:
    """An image with what is packed, followed by its length when it is unpacked."""
    image = bytearray((SETUP + 1) * 512 + OFFSET)
    image[0x1F1] = SETUP
    image[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", image, 0x248, OFFSET, len(packed) + 4)
    return bytes(image) + packed + b"size" + b"more"


def by_zstd(data: bytes) -> bytes:
    return subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True).stdout


PVH = elf(note(b"GNU\0", 3), note(b"Xen\0", 6), note(b"Xen\0", 18))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, by_zstd])
def test_unpacked(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    image = tmp_path / "vmlinuz"
    image.write_bytes(bzimage(pack(PVH)))
    assert unpacked.kernel(image) == PVH


@pytest.mark.parametrize(
    "image",
    [
        b"",
        b"Image",
        bzimage(b"another way"),
        bzimage(gzip.compress(PVH)[:-20] + bytes(20)),
        bzimage(lzma.compress(PVH)[:24] + bytes(80)),
        bzimage(gzip.compress(elf(note(b"GNU\0", 18), note(b"Xen\0", 6)))),
        bzimage(gzip.compress(b"no program")),
    ],
    ids=["empty", "arm64", "packed", "gzip", "xz", "entry", "elf"],
)
def test_what_boots_as_it_is(image: bytes, tmp_path: Path) -> None:
    """No kernel is found in an empty file, in an image of another architecture, in one with an
    unknown compression, in a damaged one, and in one whose kernel is no ELF file or has no PVH
    entry."""
    path = tmp_path / "vmlinuz"
    path.write_bytes(image)
    assert unpacked.kernel(path) is None
