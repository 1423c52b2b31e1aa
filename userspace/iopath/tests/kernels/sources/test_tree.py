# SPDX-License-Identifier: GPL-2.0
"""Trees that were built are known by what is in them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from iopath.base.cache import Cache, digest_file
from iopath.base.errors import IopathError
from iopath.kernels.apt import Apt
from iopath.kernels.modules import find
from iopath.kernels.sources.tree import Tree, _image_inputs, _modules_inputs


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """The files of a built tree that a measurement depends on."""
    for name in (
        "arch/x86/boot/bzImage", ".config", "Module.symvers", "include/linux/bio.h",
        "include/generated/compile.h", "arch/x86/include/asm/page.h", "scripts/mod/modpost",
        "scripts/Makefile.modfinal", "arch/x86/Makefile", "tools/objtool/objtool",
        "drivers/block/null_blk/null_blk.ko", "fs/configfs/configfs.ko", "drivers/net/other.ko",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return Tree(tmp_path)


IMAGE, MODULES = {"image"}, {"modules"}


def changed(tree: Tree, name: str) -> set[str]:
    """Which cache entries of a tree have other inputs after a file was changed."""

    def inputs() -> dict[str, object]:
        return {"image": _image_inputs(tree), "modules": _modules_inputs(tree)}

    before = inputs()
    (tree.path / name).write_text("changed")
    return {part for part, after in inputs().items() if after != before[part]}


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("arch/x86/boot/bzImage", IMAGE),
        (".config", IMAGE | MODULES),
        ("Module.symvers", MODULES),
        ("include/linux/bio.h", MODULES),
        ("include/linux/new.h", MODULES),
        ("arch/x86/include/asm/page.h", MODULES),
        ("tools/objtool/objtool", MODULES),
        ("scripts/mod/modpost", MODULES),
        ("scripts/Makefile.modfinal", MODULES),
        ("arch/x86/Makefile", MODULES),
        ("Makefile", MODULES),
        ("drivers/block/null_blk/null_blk.ko", IMAGE),
        ("fs/configfs/configfs.ko", IMAGE),
        ("include/generated/compile.h", set()),
        ("drivers/net/other.ko", set()),
    ],
)
def test_what_a_tree_is_known_by(tree: Tree, name: str, parts: set[str]) -> None:
    assert changed(tree, name) == parts


def test_types_of_modules_refer_to_the_kernel(tree: Tree) -> None:
    """With BTF, a module that was built for another kernel is not loaded."""
    (tree.path / ".config").write_text("CONFIG_DEBUG_INFO_BTF_MODULES=y\n")
    assert changed(tree, "arch/x86/boot/bzImage") == IMAGE | MODULES


def test_a_tree_is_known_by_its_compiler(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _modules_inputs(tree)
    other = tmp_path / "bin/gcc"
    other.parent.mkdir()
    shutil.copy(shutil.which("gcc-12") or shutil.which("gcc") or "", other)
    with other.open("ab") as file:
        file.write(b"another one")
    monkeypatch.setenv("PATH", str(other.parent), prepend=os.pathsep)
    assert _modules_inputs(tree)["compiler"] != before["compiler"]


def test_the_folder_of_a_tool_does_not_matter(tree: Tree, tmp_path: Path) -> None:
    """objtool has debug information, which names the folder where it was built."""
    digests = []
    for folder, status in (("one", 0), ("two", 0), ("two", 1)):
        (tmp_path / folder).mkdir(exist_ok=True)
        source = tmp_path / folder / "tool.c"
        source.write_text(f"int main(void) {{ return {status}; }}\n")
        tool = tree.path / "tools/objtool/objtool"
        subprocess.run(["gcc", "-g", "-o", tool, source], check=True)
        digests.append(_modules_inputs(tree)["tools"])
    assert digests[0] == digests[1] != digests[2]


def test_a_tree_that_is_rebuilt_meanwhile_is_noticed(
    tree: Tree, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The image changes while our modules are built: no entry mixes the two. If only the image has
    changed, the modules are not built again."""
    (tree.path / "include/config").mkdir()
    (tree.path / "include/config/kernel.release").write_text("6.12.0\n")
    (tree.path / "Makefile").write_text(
        "modules:\n\techo new > arch/x86/boot/bzImage\n\techo >> runs\n"
    )
    cache = Cache(tmp_path_factory.mktemp("cache"))
    apt = Apt(cache, print)
    with pytest.raises(IopathError, match=r"has changed meanwhile: wait until it is built"):
        tree.prepare(cache, apt, lambda what, part: None)
    assert list((cache.root / "modules").iterdir()) == []
    # The rebuild is done by now. A copy is measured.
    built = tree.prepare(cache, apt, lambda what, part: None)
    (tree.path / "arch/x86/boot/bzImage").write_text("newer")
    assert built.vmlinuz.read_text() == "new\n"
    assert built.digests["vmlinuz"] == digest_file(built.vmlinuz)
    assert built.own_modules
    assert [path.name for path in sorted(built.own_modules.rglob("*.ko"))] == [
        "null_blk.ko", "configfs.ko",
    ]  # fmt: skip
    assert find("null_blk", built) == built.own_modules / "drivers/block/null_blk/null_blk.ko"
    with pytest.raises(IopathError, match=r"has changed meanwhile: measure it again"):
        tree.debug_info(built, cache, apt, lambda what, part: None)
    assert tree.prepare(cache, apt, lambda what, part: None).vmlinuz.read_text() == "newer"
    assert len((tree.path / "runs").read_text()) == 2
