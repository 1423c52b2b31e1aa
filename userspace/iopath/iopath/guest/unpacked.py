# SPDX-License-Identifier: GPL-2.0
"""The kernel in a bzImage, unpacked, so that the guest does not do it.

A bzImage begins with a program that unpacks the kernel. In the emulator this may take longer than
all else of a boot. The kernel in it is an ELF file, which QEMU starts if it has an entry for
hypervisors: CONFIG_PVH.
"""

import functools
import lzma
import struct
import subprocess
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

from iopath.base import process

# Offsets in a bzImage (Documentation/arch/x86/boot.rst of the kernel).
_SETUP_SECTORS, _MAGIC, _PAYLOAD = 0x1F1, 0x202, 0x248
_SECTOR = 512
_SIZE = 4  # bytes at the end: how long the kernel is when unpacked

# Of a 64-bit ELF file: where its segments are listed, and how large and how many they are; a
# segment; and the head of a note.
_LIST = struct.Struct("<32xQ14xHH")
_SEGMENT = struct.Struct("<I4xQ16xQ")
_NOTE = struct.Struct("<III")
_NOTES = 4  # the kind of a segment with notes
_XEN, _PVH_ENTRY = b"Xen\0", 18  # who has the note, and its kind


def _zstd(data: bytes) -> bytes:
    program = process.need("zstd", "zstd")
    return subprocess.run([program, "-dcq"], input=data, capture_output=True, check=True).stdout


_UNPACKERS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": lambda data: zlib.decompressobj(wbits=31).decompress(data),
    b"\xfd7zXZ": lambda data: lzma.LZMADecompressor().decompress(data),
    b"\x28\xb5\x2f\xfd": _zstd,
}


_one_at_a_time = threading.Lock()


def kernel(image: Path) -> bytes | None:
    """The kernel in a bzImage; None if it is not one, is packed in another way, or has no entry.
    The last one is kept: the boots of a kernel follow each other."""
    with _one_at_a_time:
        return _kernel(image)


@functools.lru_cache(maxsize=1)
def _kernel(image: Path) -> bytes | None:
    data = image.read_bytes()
    if data[_MAGIC : _MAGIC + 4] != b"HdrS":
        return None
    offset, length = struct.unpack_from("<II", data, _PAYLOAD)
    begin = ((data[_SETUP_SECTORS] or 4) + 1) * _SECTOR + offset
    packed = data[begin : begin + length - _SIZE]
    for magic, unpack in _UNPACKERS.items():
        if packed.startswith(magic):
            try:
                found = unpack(packed)
            except (zlib.error, lzma.LZMAError, subprocess.CalledProcessError):
                return None
            return found if has_entry(found) else None
    return None


def has_entry(elf: bytes) -> bool:
    """Whether a note in an ELF file says where a hypervisor starts it."""
    if elf[:5] != b"\x7fELF\x02":
        return False
    place, size, count = _LIST.unpack_from(elf)
    for at in range(count):
        kind, begin, length = _SEGMENT.unpack_from(elf, place + at * size)
        if kind == _NOTES and any(one == (_XEN, _PVH_ENTRY) for one in _notes(elf, begin, length)):
            return True
    return False


def _notes(elf: bytes, at: int, length: int) -> list[tuple[bytes, int]]:
    """Who has each of the notes, and its kind."""
    found = []
    end = at + length
    while at + _NOTE.size <= end:
        name, content, kind = _NOTE.unpack_from(elf, at)
        at += _NOTE.size
        found.append((elf[at : at + name], kind))
        at += -(-name // 4) * 4 + -(-content // 4) * 4
    return found
