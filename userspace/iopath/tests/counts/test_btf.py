# SPDX-License-Identifier: GPL-2.0
"""Fields of structures, from BTF."""

import struct

import pytest

from iopath.base.errors import IopathError
from iopath.counts.btf import Btf


def a_btf(*items: str) -> bytes:
    """BTF of int, of struct inner { int a, b; }, of struct outer { int x; struct inner in; int
    z[2]; }, of struct pglist_data { int vm_stat[2]; } and of enum node_stat_item with *items*."""
    names = ("int", "inner", "a", "b", "outer", "x", "in", "z", "pglist_data", "vm_stat")
    strings = "\0".join(["", *names, "node_stat_item", *items, ""]).encode()

    def name(text: str) -> int:
        return strings.index(f"\0{text}\0".encode()) + 1 if text else 0

    def type_(text: str, kind: int, members: int, size: int) -> bytes:
        return struct.pack("<III", name(text), kind << 24 | members, size)

    def member(text: str, number: int, offset: int) -> bytes:
        return struct.pack("<III", name(text), number, offset * 8)

    types = b"".join(
        [
            type_("int", 1, 0, 4) + struct.pack("<I", 32),
            type_("inner", 4, 2, 8) + member("a", 1, 0) + member("b", 1, 4),
            type_("", 3, 0, 0) + struct.pack("<III", 1, 1, 2),
            type_("outer", 4, 3, 20) + member("x", 1, 0) + member("in", 2, 4) + member("z", 3, 12),
            type_("pglist_data", 4, 1, 8) + member("vm_stat", 3, 0),
            type_("node_stat_item", 6, len(items), 4),
            *(struct.pack("<Ii", name(item), value) for value, item in enumerate(items)),
        ]
    )
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(strings))
    return header + types + strings


def test_fields() -> None:
    btf = Btf(a_btf())
    outer = btf.find("outer")
    assert outer
    found = [btf.field(outer, offset) for offset in (0, 3, 4, 8, 12, 16, 20)]
    assert found == ["x", "x", "in.a", "in.b", "z[0]", "z[1]", ""]
    assert btf.find("none") is None
    with pytest.raises(IopathError):
        Btf(bytes(64))


@pytest.mark.parametrize(
    ("items", "fields"),
    [
        (("NR_DIRTIED", "NR_PINNED"), ["vm_stat[NR_DIRTIED]", "vm_stat[NR_PINNED]"]),
        (("NR_PINNED", "NR_DIRTIED"), ["vm_stat[NR_PINNED]", "vm_stat[NR_DIRTIED]"]),
        (("NR_PINNED",), ["vm_stat[NR_PINNED]", "vm_stat[1]"]),
        ((), ["vm_stat[0]", "vm_stat[1]"]),
    ],
)
def test_counters(items: tuple[str, ...], fields: list[str]) -> None:
    """Counters whose place differs from kernel to kernel are named by their index."""
    btf = Btf(a_btf(*items))
    node = btf.find("pglist_data")
    assert node
    assert [btf.field(node, offset) for offset in (0, 4)] == fields
