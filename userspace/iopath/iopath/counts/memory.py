# SPDX-License-Identifier: GPL-2.0
"""The memory of a guest, and what lies where in it."""

import bisect
import mmap
from dataclasses import dataclass
from pathlib import Path

from iopath.base.arch import Arch
from iopath.counts.btf import Btf
from iopath.counts.paging import STRUCT_PAGE, paging

_LINE = 64
_COMPOUND_HEAD = 8  # offset in a page's structure; odd if the page is not the first of several
_MASKS = 0xFFFFFFFF00000000
_KERNEL = 1 << 63

# The structures in slab caches that have another name.
_OBJECTS = {
    "filp": "file",
    "bdev_cache": "bdev_inode",
    "cred_jar": "cred",
    "files_cache": "files_struct",
    "fs_cache": "fs_struct",
    "inode_cache": "inode",
    "shmem_inode_cache": "shmem_inode_info",
    "proc_inode_cache": "proc_inode",
    "kernfs_node_cache": "kernfs_node",
    "signal_cache": "signal_struct",
    "sighand_cache": "sighand_struct",
    "radix_tree_node": "xa_node",
    "blkdev_ioc": "io_context",
    "mnt_cache": "mount",
    "vmap_area": "vmap_area",
}
_QUEUES = ("request_queue", "blkdev_queue")

# Arrays of counters that BTF lacks, and the enumerations that index them.
_COUNTERS = {"vm_node_stat": "node_stat_item", "vm_zone_stat": "zone_stat_item"}
_COUNTER = 8  # bytes


@dataclass(frozen=True)
class Place:
    """What an address is: its *kind* (static, per-CPU, slab, page, vmalloc or user), the object,
    the offset in it and, where types are known, the field."""

    kind: str
    object: str
    offset: int
    field: str = ""

    @property
    def text(self) -> str:
        if self.field:
            return f"{self.object}{'' if self.field[0] == '[' else '.'}{self.field}"
        return f"{self.object}+{self.offset:#x}" if self.offset else self.object


class Memory:
    """The memory of a guest that has ended, in a file."""

    def __init__(self, path: Path, kallsyms: str, arch: Arch) -> None:
        with path.open("rb") as file:
            ram = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self._symbols: dict[str, int] = {}
        data: list[tuple[int, str, str]] = []
        for line in kallsyms.splitlines():
            fields = line.split()
            address = int(fields[0], 16)
            self._symbols.setdefault(fields[2], address)
            module = fields[3].strip("[]") if len(fields) > 3 else ""
            data.append((address, fields[2], module))
        # If an address has several names, the one with the fewest leading underscores comes last.
        data.sort(key=lambda symbol: (symbol[0], len(symbol[1].lstrip("_")) - len(symbol[1])))
        self._data = data
        self._addresses = [address for address, _, _ in data]
        self._at = paging(arch, ram, self._symbols)
        self._cpus = [self.word(self._symbols["__per_cpu_offset"] + 8 * cpu) for cpu in range(8)]
        # The bytes of each CPU in the first chunk of per-CPU memory: variables, then allocations.
        unit = self._symbols.get("pcpu_unit_size")
        self._unit = int.from_bytes(self.read(unit, 4), "little") if unit else 0
        self.btf = self._find_btf()
        self._caches = self._find_caches() if self.btf else {}
        self._types: dict[int, int] = {}
        self._node: int | None = None
        if self.btf:
            self._find_types(self.btf)
            if "node_data" in self._symbols:
                self._node = self._at.direct(self.word(self._symbols["node_data"]))

    # Reading.

    def read(self, address: int, size: int) -> bytes:
        """What is at a kernel address; empty if that is not mapped."""
        return self._at.read(address, size)

    def word(self, address: int) -> int:
        """The word at a kernel address; 0 if that is not mapped."""
        return self._at.word(address)

    def _string(self, address: int) -> str:
        return self.read(address, 64).split(b"\0")[0].decode(errors="replace")

    # Types and slab caches.

    def _find_btf(self) -> Btf | None:
        start, stop = (self._symbols.get(f"__{name}_BTF") for name in ("start", "stop"))
        return Btf(self.read(start, stop - start)) if start and stop else None

    def _find_caches(self) -> dict[int, tuple[str, int]]:
        """The slab caches by address: their names, and the distance of their objects."""
        btf = self.btf
        if btf is None:
            return {}
        link, name, size = (btf.offset("kmem_cache", part) for part in ("list", "name", "size"))
        head = self._symbols["slab_caches"]
        found = {}
        at = self.word(head)
        while at not in (0, head):
            cache = at - link
            distance = int.from_bytes(self.read(cache + size, 4), "little")
            found[cache] = (self._string(self.word(cache + name)), distance)
            at = self.word(at)
        return found

    @staticmethod
    def _slab_type(btf: Btf) -> str:
        """The structure that describes a slab. Before 5.17 it is that of a page."""
        return "slab" if btf.find("slab") else "page"

    def _slab(self, frame: int) -> tuple[int, int] | None:
        """The slab cache that a page belongs to, and the first page of its slab."""
        if self.btf is None:
            return None
        page = self._at.pages + STRUCT_PAGE * frame
        head = self.word(page + _COMPOUND_HEAD)
        if head & 1:
            # Since 7.1 it may be a mask of the address instead of that of the first page.
            mask = head - 1
            page = page & mask if mask >= _MASKS else mask
        cache = self.word(page + self.btf.offset(self._slab_type(self.btf), "slab_cache"))
        return (cache, (page - self._at.pages) // STRUCT_PAGE) if cache in self._caches else None

    def _object(self, physical: int) -> tuple[int, int, int] | None:
        """The slab object at a physical address: its cache, its own address, the offset."""
        slab = self._slab(physical // self._at.page)
        if slab is None:
            return None
        cache, first = slab
        offset = (physical - first * self._at.page) % self._caches[cache][1]
        return cache, physical - offset, offset

    def _structure(self, cache: int) -> int | None:
        """The structure of a cache's objects."""
        if self.btf is None:
            return None
        name = self._caches[cache][0]
        if name in _QUEUES:
            name = "request_queue"
        return self.btf.find(_OBJECTS.get(name, name))

    def _find_types(self, btf: Btf) -> None:
        """Find the structures of objects in general caches. They are those that pointers in block
        devices point to, and pointers in these."""
        cache = next((at for at, (name, _) in self._caches.items() if name == "bdev_cache"), None)
        structure = self._structure(cache) if cache else None
        if not cache or not structure:
            return
        found = [(at, structure) for at in self._objects_of(btf, cache)]
        for _ in range(3):
            found = [part for at, number in found for part in self._pointed_to(btf, at, number)]

    def _objects_of(self, btf: Btf, cache: int) -> list[int]:
        """The physical addresses of a cache's objects."""
        oo = self.word(cache + btf.offset("kmem_cache", "oo")) & 0xFFFF  # objects in a slab
        offset = btf.offset(self._slab_type(btf), "slab_cache")
        frames = self._at.frames()
        pages = self.read(self._at.pages + STRUCT_PAGE * frames[0], STRUCT_PAGE * len(frames))
        distance = self._caches[cache][1]
        objects = []
        at = pages.find(cache.to_bytes(8, "little"))
        while at >= 0:
            frame, where = divmod(at, STRUCT_PAGE)
            if where == offset:
                begin = frames[frame] * self._at.page
                objects += [begin + number * distance for number in range(oo)]
            at = pages.find(cache.to_bytes(8, "little"), at + 8)
        return objects

    def _pointed_to(self, btf: Btf, at: int, number: int) -> list[tuple[int, int]]:
        """The objects that the members of one point to, and their structures."""
        found = []
        for offset, to in self._pointers(btf, number):
            physical = self._at.direct(self._at.physical_word(at + offset))
            if physical is None or physical in self._types:
                continue
            place = self._object(physical)
            if place and place[2] == 0 and self._structure(place[0]) is None:
                self._types[physical] = to
                found.append((physical, to))
        return found

    def _pointers(self, btf: Btf, number: int, base: int = 0) -> list[tuple[int, int]]:
        """The pointers to structures in a structure: their offsets, and what they point to."""
        found = []
        for member in btf.members(number, base):
            to = btf.pointer(member.type)
            if to:
                found.append((member.offset, to))
            elif btf.is_structure(member.type):
                found += self._pointers(btf, member.type, member.offset)
        return found

    # Naming.

    def place(self, address: int, physical: int) -> Place:
        """What is at an address, which the guest used for this physical one."""
        if address < _KERNEL:
            return Place("user", "user memory", 0)
        if self._at.is_static(address):
            return self._static(address)
        for cpu, begin in enumerate(self._cpus):
            found = self._per_cpu(cpu, address - begin & (1 << 64) - 1)
            if found:
                return found
        frame, offset = divmod(address - self._at.pages, STRUCT_PAGE)
        if self.btf and frame in self._at.frames():
            page = self.btf.find("page")
            return Place("page", "struct page", offset, self.btf.field(page or 0, offset))
        thing = self._object(physical)
        if thing:
            return self._slab_place(*thing)
        node = self.btf.find("pglist_data") if self.btf else None
        if self.btf and node and self._node is not None:
            offset = physical - self._node
            if 0 <= offset < self.btf.size(node):
                return Place("static", "struct pglist_data", offset, self.btf.field(node, offset))
        if self._at.direct(address) == physical:
            return self._request(physical) or Place("page", "page", 0)
        return Place("vmalloc", "stack or vmalloc", 0)

    def _request(self, physical: int) -> Place | None:
        """A request of blk-mq: it lies in a page, begins a cache line, and points to its queue."""
        if self.btf is None:
            return None
        structure = self.btf.find("request") or 0
        at = physical - physical % _LINE
        for begin in range(at, at - self.btf.size(structure), -_LINE):
            queue = self._at.direct(self._at.physical_word(begin + self.btf.offset("request", "q")))
            place = self._object(queue) if queue is not None else None
            if place and place[2] == 0 and self._caches[place[0]][0] in _QUEUES:
                offset = physical - begin
                return Place("page", "struct request", offset, self.btf.field(structure, offset))
        return None

    def _static(self, address: int) -> Place:
        at = bisect.bisect_right(self._addresses, address) - 1
        begin, name, module = self._data[at]
        offset = address - begin
        if self.btf and name in _COUNTERS and not module:
            index = self.btf.enumerator(_COUNTERS[name], offset // _COUNTER)
            return Place("static", name, offset, f"[{index}]")
        return Place("static", f"{name} [{module}]" if module else name, offset)

    def _per_cpu(self, cpu: int, address: int) -> Place | None:
        start, end = (self._symbols[f"__per_cpu_{what}"] for what in ("start", "end"))
        if end <= address < start + self._unit:
            return Place("per-CPU", f"allocated memory of CPU {cpu}", 0)
        if not start <= address < end:
            return None
        at = bisect.bisect_right(self._addresses, address) - 1
        begin, name, _ = self._data[at]
        offset = address - begin
        type_ = self.btf.variable(name) if self.btf else None
        inside = self.btf.field(type_, offset) if self.btf and type_ else ""
        return Place("per-CPU", f"{name} of CPU {cpu}", offset, inside)

    def _slab_place(self, cache: int, at: int, offset: int) -> Place:
        name = self._caches[cache][0]
        structure = self._types.get(at) or self._structure(cache)
        if self.btf and structure:
            inside = self.btf.field(structure, offset)
            return Place("slab", f"{name}: struct {self.btf.name(structure)}", offset, inside)
        return Place("slab", name, offset)
