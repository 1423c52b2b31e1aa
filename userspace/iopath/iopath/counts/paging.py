# SPDX-License-Identifier: GPL-2.0
"""The memory of a guest by physical address and, through the kernel's page tables, by its
addresses. Each format of page tables has a class."""

import itertools
import mmap
from collections.abc import Iterable, Mapping
from typing import ClassVar

from iopath.base.arch import Arch
from iopath.base.errors import IopathError, UsageError

STRUCT_PAGE = 64  # bytes of the structure that describes a page

_ENTRY = 8  # bytes of an entry of a page table
_IMAGE_STEP = 2 << 20  # a kernel's image begins at a multiple of it


class Paging:
    """What all architectures have in common.

    *direct_map* and *pages* are the addresses that physical address 0, and the structure of its
    page, have or would have."""

    page = 4096
    direct_map: int
    pages: int

    def __init__(self, ram: mmap.mmap, symbols: Mapping[str, int]) -> None:
        self._ram = ram
        self._symbols = symbols

    def _file_offset(self, physical: int) -> int:
        """Where in the file a physical address is."""
        raise NotImplementedError

    def _translate(self, address: int) -> int | None:
        """The physical address of a kernel address."""
        raise NotImplementedError

    def is_static(self, address: int) -> bool:
        """Whether a kernel address lies in the kernel's image or in a module."""
        raise NotImplementedError

    def direct(self, address: int) -> int | None:
        """The physical address of an address in the direct mapping."""
        raise NotImplementedError

    def frames(self) -> range:
        """The numbers of the pages of the memory."""
        raise NotImplementedError

    def physical(self, address: int, size: int) -> bytes:
        """What is at a physical address."""
        at = self._file_offset(address)
        return self._ram[at : at + size] if at >= 0 else b""

    def physical_word(self, address: int) -> int:
        """The word at a physical address; 0 if there is no memory."""
        data = self.physical(address, 8)
        return int.from_bytes(data, "little") if len(data) == 8 else 0

    def read(self, address: int, size: int) -> bytes:
        """What is at a kernel address; empty if that is not mapped."""
        found = []
        while size:
            part = min(size, self.page - address % self.page)
            at = self._translate(address)
            if at is None:
                return b""
            found.append(self.physical(at, part))
            address += part
            size -= part
        return b"".join(found)

    def word(self, address: int) -> int:
        """The word at a kernel address; 0 if that is not mapped."""
        return int.from_bytes(self.read(address, 8), "little")


class _X86(Paging):
    _MAP = 0xFFFFFFFF80000000  # where the kernel's image is mapped
    _LOW, _LOW_IF, _HIGH = 2 << 30, 0xB0000000, 4 << 30  # of a large memory: below 4 GiB; from
    _ADDRESS = 0x000FFFFFFFFFF000
    _LARGE = 1 << 7
    # Where a kernel without these symbols has its direct mapping and its struct pages, by the
    # levels of its page tables.
    _FIXED: ClassVar = {
        "page_offset_base": {4: 0xFFFF888000000000, 5: 0xFF11000000000000},
        "vmemmap_base": {4: 0xFFFFEA0000000000, 5: 0xFFD4000000000000},
    }

    def __init__(self, ram: mmap.mmap, symbols: Mapping[str, int]) -> None:
        super().__init__(ram, symbols)
        self._base = self._physical_base()
        self._levels = self._find_levels()
        self.direct_map = self._begin("page_offset_base")
        self.pages = self._begin("vmemmap_base")

    def _file_offset(self, physical: int) -> int:
        if physical >= self._HIGH and len(self._ram) >= self._LOW_IF:
            return physical - self._HIGH + self._LOW
        return physical

    def _physical_base(self) -> int:
        """By how much the kernel's image was moved in physical memory."""
        at = self._symbols["phys_base"] - self._MAP
        for base in range(0, len(self._ram), _IMAGE_STEP):
            if self.physical_word(at + base) == base:
                return base
        raise IopathError("the kernel was not found in the guest's memory")

    def _find_levels(self) -> int:
        """How many levels the page tables have."""
        known = self._symbols["phys_base"]
        for levels in (4, 5):
            self._levels = levels
            if self._translate(known) == known - self._MAP + self._base:
                return levels
        raise IopathError("the guest's page tables cannot be read")

    def _translate(self, address: int) -> int | None:
        table = self._symbols["init_top_pgt"] - self._MAP + self._base
        for level in range(self._levels, 0, -1):
            shift = 12 + 9 * (level - 1)
            entry = self.physical_word(table + _ENTRY * (address >> shift & 511))
            if not entry & 1:
                return None
            if level == 1 or (level <= 3 and entry & self._LARGE):
                mask = (1 << shift) - 1
                return entry & self._ADDRESS & ~mask | address & mask
            table = entry & self._ADDRESS
        return None

    def _begin(self, name: str) -> int:
        """Where an area of addresses begins."""
        if name in self._symbols:
            return self.word(self._symbols[name])
        return self._FIXED[name][self._levels]

    def is_static(self, address: int) -> bool:
        return address >= self._MAP

    def direct(self, address: int) -> int | None:
        physical = address - self.direct_map
        return physical if 0 <= physical < max(len(self._ram), self._HIGH) else None

    def frames(self) -> range:
        return range(len(self._ram) // self.page)


class _Arm64(Paging):
    _RAM = 1 << 30  # where the memory of QEMU's machine begins
    _SHIFTS = (12, 14, 16)  # of the sizes of a page
    _BITS = (48, 47, 42, 39, 52)  # of kernel addresses
    _ADDRESS = 0x0000FFFFFFFFF000
    _PRESENT, _TABLE = 1, 2  # bits of an entry
    _SECTION_FLAGS = 63

    def __init__(self, ram: mmap.mmap, symbols: Mapping[str, int]) -> None:
        super().__init__(ram, symbols)
        self._image = self._find_image()
        self._shift, self._bits = self._find_sizes()
        self.page = 1 << self._shift
        # The sections of the memory: a list of tables. The first word of a section is the address
        # that the structure of page 0 would have, and flags. The list is in the direct mapping.
        sections = self.word(symbols["mem_section"])
        physical = self._translate(sections)
        words = (self._words(table) for table in self._words(sections) if table)
        section = next(filter(None, itertools.chain.from_iterable(words)), None)
        if physical is None or section is None:
            raise IopathError("the guest's kernel has no usable mem_section")
        self.direct_map = sections - physical
        self.pages = section & ~self._SECTION_FLAGS

    def _words(self, address: int) -> list[int]:
        """The words from an address to the end of its page."""
        data = self.read(address, self.page - address % self.page)
        return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]

    def _file_offset(self, physical: int) -> int:
        return physical - self._RAM

    def _find_image(self) -> int:
        """The address of the kernel's image less its physical address."""
        at = self._symbols["kimage_voffset"]
        end = self._RAM + len(self._ram)
        for physical in range(self._RAM + at % _IMAGE_STEP, end, _IMAGE_STEP):
            if self.physical_word(physical) == at - physical:
                return at - physical
        raise IopathError("the kernel was not found in the guest's memory")

    def _find_sizes(self) -> tuple[int, int]:
        """How many bits of an address are those within a page, and how many are looked up."""
        known = self._symbols["kimage_voffset"]
        for shift, bits in itertools.product(self._SHIFTS, self._BITS):
            self._shift, self._bits = shift, bits
            if self._translate(known) == known - self._image:
                return shift, bits
        raise IopathError("the guest's page tables cannot be read")

    def _translate(self, address: int) -> int | None:
        table = self._symbols["swapper_pg_dir"] - self._image
        each = self._shift - 3
        top = self._bits
        levels = range(self._shift, self._bits, each)
        for shift in reversed(levels):
            entry = self.physical_word(table + _ENTRY * (address >> shift & (1 << top - shift) - 1))
            mask = (1 << shift) - 1
            if not entry & self._PRESENT:
                return None
            if shift == self._shift or not entry & self._TABLE:
                return entry & self._ADDRESS & ~mask | address & mask
            table = entry & self._ADDRESS & -(1 << self._shift)
            top = shift
        return None

    def is_static(self, address: int) -> bool:
        # Modules and the image come behind the direct mapping, and before what is mapped later.
        return -(1 << min(self._bits, 48) - 1) & (1 << 64) - 1 <= address < self._symbols["_end"]

    def direct(self, address: int) -> int | None:
        physical = address - self.direct_map
        return physical if 0 <= physical - self._RAM < len(self._ram) else None

    def frames(self) -> range:
        first = self._RAM // self.page
        return range(first, first + len(self._ram) // self.page)


_FORMATS = {"x86": _X86, "arm64": _Arm64}  # Arch.paging


def check(arches: Iterable[Arch]) -> None:
    """Raise UsageError if the memory of guests of one of these architectures cannot be read. Guests
    with several CPUs need that."""
    for arch in arches:
        if not arch.paging:
            name = arch.name
            raise UsageError(f"--cpus: kernels of {name} are measured on one CPU only")


def paging(arch: Arch, ram: mmap.mmap, symbols: Mapping[str, int]) -> Paging:
    """The memory of a guest of an architecture; *symbols* are the addresses of its kernel's."""
    return _FORMATS[arch.paging](ram, symbols)
