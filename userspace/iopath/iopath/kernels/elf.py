# SPDX-License-Identifier: GPL-2.0
"""What the file of a module, a program or an object of eBPF contains: .modinfo and functions."""

import functools
import struct
from dataclasses import dataclass

from iopath.base.errors import IopathError

# Of the little-endian 64-bit format: the header, those of a segment and of a section, and a symbol.
HEADER = struct.Struct("<4sBB10xHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")

_SECTIONS = 40  # where the header has the place of those of the sections
_INTERPRETER = 3  # the segment that names a program's loader
_NOTHING, _SYMTAB, _NOBITS = 0, 2, 8  # kinds of sections
_ALLOC, _EXEC = 2, 4
_NAMED_KINDS = (0, 2)  # symbols without a type, and functions; not sections and files
_CHOSEN = 10  # a function that is chosen among several when the program starts (IFUNC)
_WEAK = 2
_FUNCTION, _GLOBAL = 2, 1
_BPF = 247  # the machine of eBPF


@dataclass(frozen=True)
class ModuleFunction:
    """A function of a module file: its section, the offset there, and its name."""

    section: str
    offset: int
    name: str


class _File:
    """The sections of a file."""

    def __init__(self, data: bytes) -> None:
        if len(data) < HEADER.size or data[:6] != b"\x7fELF\x02\x01":
            raise IopathError("a module or program is not a little-endian 64-bit ELF file")
        self._data = data
        head = HEADER.unpack_from(data)
        place, size, count, names = head[8], head[13], head[14], head[15]
        self.headers = [_SECTION.unpack_from(data, place + at * size) for at in range(count)]
        self._names = self.content(names)

    def content(self, number: int) -> bytes:
        _, _, _, _, place, size, *_ = self.headers[number]
        return self._data[place : place + size]

    def name(self, number: int) -> str:
        return _text(self._names, self.headers[number][0])

    def find(self, name: str) -> bytes:
        """The content of a section; nothing if there is none."""
        numbers = (at for at in range(len(self.headers)) if self.name(at) == name)
        number = next(numbers, None)
        return b"" if number is None else self.content(number)


def loader(data: bytes) -> str:
    """The path of the loader that a program asks for; empty if it is static."""
    place, size, count = (HEADER.unpack_from(data)[at] for at in (7, 11, 12))
    for at in range(count):
        kind, _, begin, _, _, length, *_ = _SEGMENT.unpack_from(data, place + at * size)
        if kind == _INTERPRETER:
            return data[begin : begin + length].rstrip(b"\0").decode()
    return ""


def _text(strings: bytes, at: int) -> str:
    return strings[at : strings.index(b"\0", at)].decode()


def modinfo(module: bytes) -> dict[str, str]:
    """The fields that modinfo prints of a module; of repeated fields, the last."""
    fields = _File(module).find(".modinfo").split(b"\0")
    return dict(field.decode().split("=", 1) for field in fields if b"=" in field)


@functools.lru_cache(maxsize=16)
def functions(module: bytes) -> tuple[ModuleFunction, ...]:
    """The functions of a module that stay in memory after it has been loaded, by name."""
    file = _File(module)
    found = []
    for number, header in enumerate(file.headers):
        if header[1] != _SYMTAB:
            continue
        strings = file.content(header[6])
        # For each section: whether it has code that stays, and its name.
        kept = {
            at: file.name(at)
            for at, section in enumerate(file.headers)
            if section[2] & (_ALLOC | _EXEC) == _ALLOC | _EXEC
            and not file.name(at).startswith(".init")
        }
        for at, info, _, section, value, _ in _SYMBOL.iter_unpack(file.content(number)):
            if section not in kept or info & 15 not in _NAMED_KINDS or not at:
                continue
            name = _text(strings, at)
            # Some architectures mark where code begins by symbols like $x.
            if not name.startswith("$"):
                found.append(ModuleFunction(kept[section], value, name))
    return tuple(sorted(found, key=lambda one: (one.name, one.offset)))


def without_debug(module: bytes, *, types: bool = False) -> bytes:
    """A module file without its debug information, which the kernel copies and does not use, and
    without its signature. Its BTF, which takes long to check, is kept if *types* are needed, as by
    eBPF. Sections keep their numbers: those that are left out are empty."""
    unused = (".debug", ".rela.debug") if types else (".debug", ".rela.debug", ".BTF")
    file = _File(module)
    data = bytearray(module[: HEADER.size])
    headers = []
    for number, section in enumerate(file.headers):
        name, kind, flags, address, place, size, link, info, align, each = section
        if file.name(number).startswith(unused):
            place = size = 0
        elif kind not in (_NOTHING, _NOBITS):
            data += bytes(-len(data) % (align or 1))
            place = len(data)
            data += file.content(number)
        headers.append((name, kind, flags, address, place, size, link, info, align, each))
    data += bytes(-len(data) % 8)
    struct.pack_into("<Q", data, _SECTIONS, len(data))
    return bytes(data) + b"".join(_SECTION.pack(*section) for section in headers)


def program_functions(program: bytes) -> str:
    """The functions of a program, in lines like those of /proc/kallsyms."""
    file = _File(program)
    code = {at for at, section in enumerate(file.headers) if section[2] & _EXEC}
    lines = []
    for number, header in enumerate(file.headers):
        if header[1] != _SYMTAB:
            continue
        strings = file.content(header[6])
        for at, info, _, section, value, _ in _SYMBOL.iter_unpack(file.content(number)):
            if section not in code or info & 15 not in (*_NAMED_KINDS, _CHOSEN) or not at:
                continue
            kind = "i" if info & 15 == _CHOSEN else "tTW"[min(info >> 4, _WEAK)]
            lines.append(f"{value:016x} {kind} {_text(strings, at)}\n")
    return "".join(lines)


def bpf_programs(data: bytes) -> dict[str, str]:
    """The programs of an object of eBPF, by name, each with its section, which says what it is
    attached to. Raises IopathError if it has none."""
    found = {}
    if data[:4] == b"\x7fELF" and data[18:20] == _BPF.to_bytes(2, "little"):
        file = _File(data)
        code = {at for at, section in enumerate(file.headers) if section[2] & _EXEC}
        for number, header in enumerate(file.headers):
            if header[1] != _SYMTAB:
                continue
            strings = file.content(header[6])
            for at, info, _, section, *_ in _SYMBOL.iter_unpack(file.content(number)):
                is_program = info == _GLOBAL << 4 | _FUNCTION and section in code
                if is_program and (hook := file.name(section)) != ".text":
                    found[_text(strings, at)] = hook
    if not found:
        raise IopathError("no object of eBPF with a program: build it with clang --target=bpf -c")
    return found
