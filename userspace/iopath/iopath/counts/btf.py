# SPDX-License-Identifier: GPL-2.0
"""The types of a kernel, from its BTF: the fields of structures by offset."""

import struct
from dataclasses import dataclass, field

from iopath.base.errors import IopathError

_MAGIC = 0xEB9F
_HEADER = struct.Struct("<HBBIIIII")
_TYPE = struct.Struct("<III")
_MEMBER = struct.Struct("<III")

(_INT, _PTR, _ARRAY, _STRUCT, _UNION, _ENUM, _FWD, _TYPEDEF, _VOLATILE, _CONST, _RESTRICT) = range(
    1, 12
)
_VAR = 14
_ENUM64 = 19
_MODIFIERS = (_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, 18)
# The bytes that follow a type, by its kind: a fixed number, and a number for each of its members.
_BEHIND = {
    _INT: (4, 0), _ARRAY: (12, 0), _STRUCT: (0, 12), _UNION: (0, 12), _ENUM: (0, 8),
    13: (0, 8), _VAR: (4, 0), 15: (0, 12), 17: (4, 0), _ENUM64: (0, 12),
}  # fmt: skip

# The enumerations that index arrays of counters, by structure and member. Their numbers differ from
# kernel to kernel.
_INDEXES = {
    ("pglist_data", "vm_stat"): "node_stat_item",
    ("per_cpu_nodestat", "vm_node_stat_diff"): "node_stat_item",
    ("zone", "vm_stat"): "zone_stat_item",
    ("per_cpu_zonestat", "vm_stat_diff"): "zone_stat_item",
    ("vm_event_state", "event"): "vm_event_item",
}


@dataclass(frozen=True)
class Member:
    """A member of a structure: its name, its type, and where it begins, in bytes."""

    name: str
    type: int
    offset: int


@dataclass
class _Type:
    name: str
    kind: int
    size: int  # or the type that it refers to
    members: list[Member] = field(default_factory=list)
    count: int = 0  # of an array


class Btf:
    """The types in a section .BTF."""

    def __init__(self, data: bytes) -> None:
        magic, _, _, header, types, length, strings, strings_length = _HEADER.unpack_from(data)
        if magic != _MAGIC:
            raise IopathError("the kernel's BTF cannot be read")
        self._strings = data[header + strings : header + strings + strings_length]
        self._data = data[header + types : header + types + length]
        self._offsets = [0]
        self._structs: dict[str, int] = {}
        self._enums: dict[str, int] = {}
        self._types: dict[int, _Type] = {}  # read so far
        self._members: dict[str, dict[str, int]] = {}  # where the members of a structure begin
        self._variables: dict[str, int] = {}
        at = 0
        while at < length:
            name, info, of = _TYPE.unpack_from(self._data, at)
            kind = info >> 24 & 0x1F
            if kind == _VAR:
                self._variables[self._text(name)] = of
            if kind == _STRUCT and name:
                self._structs.setdefault(self._text(name), len(self._offsets))
            if kind in (_ENUM, _ENUM64) and name:
                self._enums.setdefault(self._text(name), at)
            self._offsets.append(at)
            fixed, each = _BEHIND.get(kind, (0, 0))
            at += _TYPE.size + fixed + each * (info & 0xFFFF)

    def _text(self, at: int) -> str:
        return self._strings[at : self._strings.index(b"\0", at)].decode()

    def _type(self, number: int) -> _Type:
        """A type, without typedefs and qualifiers."""
        if number not in self._types:
            self._types[number] = self._read_type(number)
        return self._types[number]

    def _read_type(self, number: int) -> _Type:
        while True:
            at = self._offsets[number]
            name, info, size = _TYPE.unpack_from(self._data, at)
            kind = info >> 24 & 0x1F
            if kind not in _MODIFIERS:
                break
            number = size
        found = _Type(self._text(name), kind, size)
        at += _TYPE.size
        if kind in (_STRUCT, _UNION):
            for place in range(at, at + 12 * (info & 0xFFFF), 12):
                name, type_, offset = _MEMBER.unpack_from(self._data, place)
                bits = offset & 0xFFFFFF if info >> 31 else offset
                found.members.append(Member(self._text(name), type_, bits // 8))
        elif kind == _ARRAY:
            found.size, _, found.count = struct.unpack_from("<III", self._data, at)
        return found

    def find(self, name: str) -> int | None:
        """The structure of that name."""
        return self._structs.get(name)

    def variable(self, name: str) -> int | None:
        """The type of the variable of that name. Only per-CPU variables are known."""
        return self._variables.get(name)

    def name(self, number: int) -> str:
        return self._type(number).name

    def size(self, number: int) -> int:
        """How many bytes a type takes."""
        if not number:
            return 0
        found = self._type(number)
        if found.kind == _ARRAY:
            return found.count * self.size(found.size)
        if found.kind == _PTR:
            return 8
        return found.size if found.kind in (_INT, _STRUCT, _UNION, _ENUM, 16, _ENUM64) else 0

    def members(self, number: int, base: int = 0) -> list[Member]:
        """The members of a structure, with those of anonymous ones in it."""
        found = []
        for member in self._type(number).members:
            if member.name:
                found.append(Member(member.name, member.type, base + member.offset))
            else:
                found += self.members(member.type, base + member.offset)
        return found

    def offset(self, structure: str, member: str) -> int:
        """Where a member of a structure begins."""
        if structure not in self._members:
            number = self.find(structure)
            parts = self.members(number) if number else []
            self._members[structure] = {part.name: part.offset for part in parts}
        if member not in self._members[structure]:
            raise KeyError(f"{structure}.{member}")
        return self._members[structure][member]

    def pointer(self, number: int) -> int | None:
        """The structure that a pointer points to."""
        found = self._type(number) if number else None
        if found and found.kind == _PTR and found.size:
            to = found.size
            if self._type(to).kind == _STRUCT:
                return self._number(to)
        return None

    def is_structure(self, number: int) -> bool:
        """Whether a type is a structure or a union of them."""
        return bool(number) and self._type(number).kind in (_STRUCT, _UNION)

    def _number(self, number: int) -> int:
        while True:
            _, info, size = _TYPE.unpack_from(self._data, self._offsets[number])
            if info >> 24 & 0x1F not in _MODIFIERS:
                return number
            number = size

    def enumerator(self, enum: str, value: int) -> str:
        """The name of a value in an enumeration, or else its number. Of several names the last one
        is the most telling: NR_INACTIVE_ANON, not NR_LRU_BASE."""
        found = str(value)
        if enum not in self._enums:
            return found
        at = self._enums[enum]
        _, info, _ = _TYPE.unpack_from(self._data, at)
        size = _BEHIND[info >> 24 & 0x1F][1]
        for place in range(at + _TYPE.size, at + _TYPE.size + size * (info & 0xFFFF), size):
            name, number = struct.unpack_from("<II", self._data, place)
            if number == value:
                found = self._text(name)
        return found

    def field(self, number: int, offset: int, index: str = "") -> str:
        """The name of the field at *offset* of a structure: "f_path.mnt", "slots[3]"; empty if
        there is none. *index* is the enumeration that an array is indexed by."""
        found = self._type(number)
        if found.kind == _ARRAY:
            size = self.size(found.size)
            if not size or offset >= found.count * size:
                return ""
            inner = self.field(found.size, offset % size)
            return f"[{self.enumerator(index, offset // size)}]" + (f".{inner}" if inner else "")
        for member in found.members:
            inside = offset - member.offset
            if not 0 <= inside < max(self.size(member.type), 1):
                continue
            inner = self.field(member.type, inside, _INDEXES.get((found.name, member.name), ""))
            if not member.name or not inner:
                return member.name or inner
            return f"{member.name}{inner}" if inner[0] == "[" else f"{member.name}.{inner}"
        return ""
