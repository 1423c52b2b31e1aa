# SPDX-License-Identifier: GPL-2.0
"""An architecture is a row of the package's table. In the programs it has files of its own; missing
ones are named."""

from dataclasses import replace
from pathlib import Path

import pytest
from copied import Copied

from iopath.base.arch import AARCH64, ARCHES, Arch
from iopath.base.sources import source_root

NEW = """
LOONGARCH64 = Arch(**{
    **vars(RISCV64), "name": "loongarch64", "qemu": "qemu-system-loongarch64", "cpu": "la464",
    "source": "loongarch", "option": "LOONGARCH", "debian": "loong64",
    "triplet": "loongarch64-linux-gnu", "image": "arch/loongarch/boot/vmlinux.efi",
    "syscall_prefix": "__loong_sys_",
})
"""
TABLE = "ARCHES = (X86_64, AARCH64, RISCV64)\n"


@pytest.fixture
def copied(tmp_path: Path) -> Copied:
    found = Copied(tmp_path)
    found.replace("base/arch.py", TABLE, NEW + TABLE.replace(")", ", LOONGARCH64)"))
    return found


def test_a_new_architecture_is_a_row(copied: Copied, tmp_path: Path) -> None:
    """Kernels, trees, guests and options support it."""
    assert "{amd64,arm64,riscv64,loong64}" in copied.run("kernels", "--help").stdout
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/.config").write_text("CONFIG_64BIT=y\nCONFIG_LOONGARCH=y\n")
    assert copied.lines(f"""
from pathlib import Path
from iopath.base.arch import named
from iopath.guest.machine import Machine
from iopath.kernels.sources.debian import arch_of
from iopath.kernels.sources.tree import Tree

new = named("loongarch64")
machine = Machine().on(new)
tree = Tree(Path("{tmp_path}/tree"))
print(arch_of("7.2-loong64").name, arch_of("7.2.1+deb14-loong64").name, tree.arch.name)
print(machine.model, machine.arch.qemu)
print(tree.image.relative_to(tree.path))
""") == [
        "loongarch64 " * 2 + "loongarch64",
        "la464 qemu-system-loongarch64",
        "arch/loongarch/boot/vmlinux.efi",
    ]


def missing(arch: Arch) -> list[str]:
    """The places that contributing.rst names and that lack an architecture."""
    upper = arch.name.upper()
    wanted = {
        f"userspace/ioloop/arch/{arch.name}.h": ["calibrate("],
        "userspace/ioloop/arch.h": [f'"arch/{arch.name}.h"'],
        "kernel/include/iopath/marker.h": [f"IOPATH_MARK_MAGIC_{upper}"],
        f"userspace/pathcount/arch/{arch.name}.c": [f"arch_{arch.name} ="],
        "userspace/pathcount/arch.c": [f"&arch_{arch.name}"],
        f"userspace/pathcount/tests/decode_{arch.name}.c": ["main("],
        "userspace/setup.sh": [arch.qemu_package],
        "Makefile": [arch.name],
    }
    found = []
    for name, texts in wanted.items():
        path = source_root() / name
        text = path.read_text() if path.is_file() else ""
        found += [name] if any(part not in text for part in texts) else []
    return found


@pytest.mark.parametrize("arch", ARCHES, ids=lambda arch: arch.name)
def test_every_place_has_it(arch: Arch) -> None:
    assert missing(arch) == []


def test_a_place_that_lacks_one_is_named() -> None:
    other = {"qemu_package": "qemu-system-other", "triplet": "sparc64-linux-gnu"}
    planted = missing(replace(AARCH64, name="sparc64", **other))
    assert len(planted) == 8
    documented = (source_root() / "Documentation/contributing.rst").read_text()
    for name in planted:
        assert name in documented or f"{Path(name).parent}/" in documented, name
