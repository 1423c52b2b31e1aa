# SPDX-License-Identifier: GPL-2.0
"""The recipes of contributing.rst: in a copy of the project, a metric, a rung, an architecture and
a source of kernels are added. Only files that the recipe names are changed, and the copy uses what
was added."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from iopath.base.arch import X86_64
from iopath.base.programs import built_folder
from iopath.base.sources import source_root

PARTS = ("Kbuild", "kernel", "userspace", "Documentation")
PACKAGE = "userspace/iopath/iopath"


class Tree:
    """A copy of the project."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self.root.mkdir()
        ignored = shutil.ignore_patterns("__pycache__", "build", "*.o", "*.ko", ".*")
        for name in PARTS:
            path = source_root() / name
            if path.is_dir():
                shutil.copytree(path, self.root / name, ignore=ignored)
            else:
                shutil.copyfile(path, self.root / name)
        self.programs = self.root / "build/guest" / X86_64.name
        shutil.copytree(built_folder(X86_64), self.programs)

    def append(self, file: str, text: str) -> None:
        with (self.root / file).open("a") as out:
            out.write(text)

    def replace(self, file: str, old: str, new: str) -> None:
        """Change the one place of a file that has the text *old*."""
        path = self.root / file
        text = path.read_text()
        assert text.count(old) == 1, f"{file}: {text.count(old)} times {old!r}"
        path.write_text(text.replace(old, new))

    def changed(self) -> list[str]:
        """The files that are not as in the project."""
        return [
            str(path.relative_to(self.root))
            for name in PARTS
            for path in sorted((self.root / name).rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
            and not same(path, source_root() / path.relative_to(self.root))
        ]  # fmt: skip

    def run(self, *words: str | Path, status: int = 0) -> str:
        """What Python says with the copy's package: its output, and its errors."""
        env = {
            **os.environ, "PYTHONPATH": str(self.root / "userspace/iopath"), "COLUMNS": "100",
            "IOPATH_SOURCE": str(self.root), "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, *words],
            env=env, cwd=self.root, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr


def same(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()


def recipe(title: str) -> str:
    """A section of contributing.rst."""
    text = (source_root() / "Documentation/contributing.rst").read_text()
    _, _, rest = text.partition(f"\n{title}\n{'=' * len(title)}\n")
    assert rest, title
    return re.split(r"\n[^\n]+\n====+\n", rest)[0]


def not_named(title: str, tree: Tree) -> list[str]:
    """The changed files that a recipe does not name, nor their folder."""
    names = set(re.findall(r"``(userspace/[^`]*|Documentation/[^`]*)``", recipe(title)))
    changed = tree.changed()
    assert changed
    return [name for name in changed if not {name, str(Path(name).parent)} & names]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


# A metric.

METRIC = """    _counted(
        "accessed bytes", Source(tally="bytes"), "bytes of all accesses to memory", "bytes",
        costly=True,
    ),
"""
BEFORE = """    _counted(
        "string bytes","""
COUNT = "ACCESS_COUNT(bytes, size)\n"
ROW = """   * - accessed bytes
     - bytes
     - bytes of all accesses to memory
     - per-CPU caches that are filled again
     - 0.05
"""


def add_metric(tree: Tree) -> None:
    counts, measuring = "userspace/pathcount/counts.h", "Documentation/measuring.rst"
    tree.replace(f"{PACKAGE}/results/metrics.py", BEFORE, METRIC + BEFORE)
    tree.replace(counts, "ACCESS_COUNT(writes, write)\n", "ACCESS_COUNT(writes, write)\n" + COUNT)
    tree.replace(measuring, "   * - string bytes\n", ROW + "   * - string bytes\n")


@pytest.mark.guest
def test_a_metric(tree: Tree, tmp_path: Path) -> None:
    """It is counted in a guest, for each function, too, and may have a limit. The tests of the
    tables pass."""
    add_metric(tree)
    assert not_named("How to add a metric", tree) == []
    plugin = tree.programs / "pathcount.so"
    plugin.unlink()
    make = ["make", "-s", "-C", tree.root / "userspace/pathcount", f"O={tree.programs}"]
    subprocess.run(make, check=True)
    scenario = ("--rung", "dio.pread", "--op", "read")
    found = tmp_path / "found.json"
    tree.run("-m", "iopath", "profile", "debian:6.1", *scenario, "--json", found)
    (record,) = json.loads(found.read_text())["results"]
    counts = {name: value[0] for name, value in record["counts"].items()}
    accesses = counts["reads"] + counts["writes"]
    assert accesses < counts["accessed bytes"] < 64 * accesses
    profile = record["profile"]
    # The profile is of longer rounds.
    of_path = profile["costly"]["accessed_bytes"]
    assert of_path == pytest.approx(counts["accessed bytes"], rel=0.1)
    of_functions = sum(
        function.get("costly", {}).get("accessed_bytes", 0) for function in profile["functions"]
    )
    assert of_functions == pytest.approx(of_path, abs=0.1)
    whole = json.loads(found.read_text())
    whole["kernels"][0]["name"] = whole["results"][0]["kernel"]["name"] = "other"
    (tmp_path / "other.json").write_text(json.dumps(whole))
    (tmp_path / "limits.toml").write_text('"dio.pread read accessed bytes" = 5\n')
    words = ("compare", found, tmp_path / "other.json", "--limits", tmp_path / "limits.toml")
    said = tree.run("-m", "iopath", *words, status=125)
    assert said.endswith(
        "iopath: cannot judge dio.pread read accessed bytes: 1 boot is too few: 5 needed\n"
    )
    tests = [f"userspace/iopath/tests/{name}" for name in ("results", "counts/test_output.py")]
    tree.run("-m", "pytest", "-q", "-c", "userspace/iopath/pyproject.toml", "--rootdir", ".",
             "-p", "no:cacheprovider", *tests)  # fmt: skip


# A rung.

RUNG = """
[[rung]]
name = "dio.pread.twice"
about = "two at a time"
parts = ["dio", "pread"]
options = ["--hipri"]
ops = ["read"]
"""

PLANNED = """
from iopath.measure import plan
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings, make_runs
settings = Settings(select(["dio.pread*"]))
runs, _ = make_runs(settings)
for guest in plan.guests(runs, settings):
    print(*(run.rung.name for run in guest))
for run in runs:
    print(run.rung.name, run.op, *run.rung.options)
"""


def test_a_rung(tree: Tree) -> None:
    """It is listed, suggested and planned with its options, in the guest of those that load the
    same modules."""
    tree.append(f"{PACKAGE}/rungs/rungs.toml", RUNG)
    assert not_named("How to add a rung", tree) == []
    listed = tree.run("-m", "iopath", "rungs").splitlines()
    (row,) = (line for line in listed if "twice" in line)
    assert row.split() == ["dio.pread.twice", "read", "two", "at", "a", "time"]
    wrong = ("measure", "debian:6.1", "--rung", "dio.pread.twic")
    near = tree.run("-m", "iopath", *wrong, status=2)
    assert near == (
        "iopath: unknown rung 'dio.pread.twic': did you mean 'dio.pread.twice'?"
        " (iopath rungs lists all)\n"
    )
    planned = tree.run("-c", PLANNED).splitlines()
    assert {"dio.pread", "dio.pread.twice"} <= set(planned[0].split())
    assert [line for line in planned[1:] if "twice" in line] == [
        "dio.pread.twice read --ioengine=sync --direct=1 --hipri"
    ]


# An architecture.

ARCH = """
LOONGARCH64 = Arch(**{
    **vars(RISCV64), "name": "loongarch64", "qemu": "qemu-system-loongarch64", "cpu": "la464",
    "source": "loongarch", "option": "LOONGARCH", "debian": "loong64", "elf": 258,
    "triplet": "loongarch64-linux-gnu", "image": "arch/loongarch/boot/vmlinux.efi",
    "magic": (0, b"MZ\\0\\0"), "syscall_prefix": "__loong_sys_",
})
"""
ARCHES = "ARCHES = (X86_64, AARCH64, RISCV64)\n"

OF_ARCH = """
import struct
from pathlib import Path
from iopath.base.arch import named
from iopath.base.errors import UsageError
from iopath.guest.machine import Machine
from iopath.kernels.sources.debian import arch_of
from iopath.kernels.sources.image import find
from iopath.kernels.sources.tree import Tree
from iopath.measure import executable

new = named("loongarch64")
machine = Machine().on(new)
tree = Tree(Path("kernel.tree"))
print(arch_of("7.2-loong64").name, arch_of("7.2.1+deb14-loong64").name, tree.arch.name)
print(machine.model, machine.arch.qemu)
print(tree.image.relative_to(tree.path))
Path("vmlinux.efi").write_bytes(bytes.fromhex("4d5a0000") + bytes(1000))
print(find("vmlinux.efi", None).arch.name)
head = struct.pack("<4sBBBB8xHH", b"\\x7fELF", 2, 1, 1, 0, 2, 258)
Path("program").write_bytes(head + bytes(100))
try:
    executable.of_machine("./program")
except UsageError as error:
    print(error)
"""


def test_an_architecture(tree: Tree) -> None:
    """Kernels, trees, images, programs, guests and options support it."""
    tree.replace(f"{PACKAGE}/base/arch.py", ARCHES, ARCH + ARCHES.replace(")", ", LOONGARCH64)"))
    assert not_named("How to add an architecture", tree) == []
    said = tree.run("-m", "iopath", "kernels", "--help")
    assert "{amd64,arm64,riscv64,loong64}" in said
    (tree.root / "kernel.tree").mkdir()
    (tree.root / "kernel.tree/.config").write_text("CONFIG_64BIT=y\nCONFIG_LOONGARCH=y\n")
    *lines, program = tree.run("-c", OF_ARCH).splitlines()
    assert lines == [
        "loongarch64 loongarch64 loongarch64",
        "la464 qemu-system-loongarch64",
        "arch/loongarch/boot/vmlinux.efi",
        "loongarch64",
    ]
    assert program.endswith("a program of loongarch64: must be of x86_64")


# A source of kernels.

SOURCE = """
from dataclasses import dataclass

from iopath.base.arch import X86_64, Arch
from iopath.base.errors import IopathError
from iopath.kernels.kernel import Kernel

NAMES = ("planted:NUMBER",)


@dataclass(frozen=True)
class Planted(Kernel):
    number: str
    arch: Arch = X86_64

    @property
    def title(self):
        return f"kernel {self.number}"

    def prepare(self, cache, apt, step):
        raise IopathError(f"{self.title} is only planted")


def find(spec, finder):
    return Planted(spec)


def between(good, bad, finder):
    numbers = range(int(good), int(bad) + 1)
    return [f"planted:{number}" for number in numbers], f"{len(numbers)} planted kernels"
"""


def test_a_source(tree: Tree) -> None:
    """Its kernels are found, named in messages, prepared and searched."""
    tree.append(f"{PACKAGE}/kernels/sources/planted.py", SOURCE)
    assert not_named("How to add a kernel source", tree) == []
    scenario = ("--rung", "dio.pread", "--op", "read")
    near = tree.run("-m", "iopath", "measure", "plantd:1", *scenario, status=2)
    assert "did you mean 'planted'" in near
    assert "planted:NUMBER" in near
    said = tree.run("-m", "iopath", "measure", "planted:1", *scenario, status=1)
    assert said == "iopath: planted:1: kernel 1 is only planted\n"
    said = tree.run("-m", "iopath", "bisect", "planted:1", "planted:9", *scenario, status=1)
    assert "9 planted kernels" in said
    assert "kernel 1 is only planted" in said
    said = tree.run("-m", "iopath", "bisect", "planted:1", "debian:7.2", *scenario, status=2)
    assert "debian:7.2: cannot be searched: must be" in said
    assert "planted:NUMBER" in said


def test_a_file_that_no_recipe_names_is_found(tree: Tree) -> None:
    tree.append(f"{PACKAGE}/rungs/rungs.toml", RUNG)
    tree.append(f"{PACKAGE}/rungs/rung.py", "# changed\n")
    assert not_named("How to add a rung", tree) == [f"{PACKAGE}/rungs/rung.py"]
