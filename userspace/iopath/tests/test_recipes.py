# SPDX-License-Identifier: GPL-2.0
"""The recipes of contributing.rst: in a copy of the project, a rung, an architecture, a source of
kernels and a view are added. Only files that the recipe names are changed, and the copy uses what
was added. tests/guests/test_metric.py adds a metric."""

import json
from pathlib import Path

import pytest

from helpers.examples import a_record, a_result
from helpers.recipe_tree import PACKAGE, Tree, not_named


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


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
    assert " ".join(row.split()) == "dio.pread.twice two at a time (read only)"
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
from pathlib import Path

from iopath.base.arch import X86_64, Arch
from iopath.base.errors import IopathError
from iopath.kernels.built import built
from iopath.kernels.kernel import Kernel
from iopath.kernels.watching import State, Watching

NAMES = ("planted:NUMBER",)


@dataclass(frozen=True)
class Planted(Kernel):
    number: str
    arch: Arch = X86_64

    @property
    def title(self):
        return f"kernel {self.number}"

    def prepare(self, cache, apt, step):
        folder = Path(self.number)
        if not folder.is_dir():
            raise IopathError(f"{self.title} is only planted")
        step("reading the folder", 0.0)
        return built(self.title, "1", "planted", folder, folder)


def find(spec, finder):
    return Planted(spec)


def between(good, bad, finder):
    numbers = range(int(good), int(bad) + 1)
    return [f"planted:{number}" for number in numbers], f"{len(numbers)} planted kernels"


def states(spec, finder, *, newest, every, merges):
    return [State(f"planted:{spec}", spec, spec, "planted")]


WATCH = Watching("planted kernels", (), NAMES, states, lambda spec, finder, kept: kept)
"""
WATCHED = """
rungs = ["dio.pread"]
[[watch]]
name = "some"
kernels = ["planted:3"]
"""
PREPARED = """
from pathlib import Path
from rich.console import Console
from iopath.base.cache import Cache
from iopath.base.errors import UsageError
from iopath.base.progress import Reporter
from iopath.measure.session import Session
session = Session(Cache(Path("cache")), Reporter(Console(stderr=True), quiet=True))
assert session.expand(["planted:6.99"]) == ["planted:6.99"]
kernel = session.find("planted:6.99")
made = session.build(kernel, lambda what, part: print(what))
print(made.release, made.vmlinuz, *made.modules)
try:
    kernel.debug_info(made, session.cache, session.apt, print)
except UsageError as error:
    print(error)
"""


def test_a_source(tree: Tree) -> None:
    """Its kernels are found, named in messages, prepared, searched and watched."""
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
    (tree.root / "watch.toml").write_text(WATCHED)
    said = tree.run("-m", "iopath", "track", "watch.toml", status=125)
    assert "Not measured: some 3: kernel 3 is only planted." in said
    (tree.root / "6.99").mkdir()
    for name in ("vmlinuz", "config", "build.log", "blknull.ko"):
        (tree.root / "6.99" / name).write_text(name)
    assert tree.run("-c", PREPARED).splitlines() == [
        "reading the folder", "kernel 6.99 6.99/vmlinuz blknull",
        "--inline: kernel 6.99 has no debug information",
    ]  # fmt: skip


# A view.

VIEW = """
from iopath.show.figures import Figure


def render(found):
    return "".join(f"{one.kernel} {one.title} {one.metric}={one.value}\\n" for one in found)
"""
ROW = '    View("planted", "figures as a test takes them", "figures", "planted.render"),\n'
IN_MAN = ".It Fl -planted Ar FILE\nFigures as a test takes them.\n"

COMMANDS = """
from iopath.cli.parser import commands, parser
print(*(name for name in commands() if "--planted" in parser().command(name).options))
"""


def test_a_view(tree: Tree) -> None:
    """Each command that has figures has it, and writes it."""
    tree.append(f"{PACKAGE}/show/planted.py", VIEW)
    tree.replace(f"{PACKAGE}/show/views.py", "VIEWS = (\n", f"VIEWS = (\n{ROW}")
    tree.replace("Documentation/man/iopath.1", ".It Fl -csv", f"{IN_MAN}.It Fl -csv")
    assert not_named("How to add a view", tree) == []
    assert tree.run("-c", COMMANDS).split() == [
        "measure", "profile", "compare", "bisect", "series", "track", "features", "run",
    ]  # fmt: skip
    for name in ("a", "b"):
        made = a_result([a_record(name, "dio.pread", "read", 4096)])
        (tree.root / f"{name}.json").write_text(json.dumps(made))
    tree.run("-m", "iopath", "compare", "a.json", "b.json", "--planted", "out")
    written = (tree.root / "out").read_text().splitlines()
    assert written[0] == "a dio.pread read 4 KiB instructions=601.93"
    assert {line.split()[0] for line in written} == {"a", "b"}


def test_a_file_that_no_recipe_names_is_found(tree: Tree) -> None:
    tree.append(f"{PACKAGE}/rungs/rungs.toml", RUNG)
    tree.append(f"{PACKAGE}/rungs/rung.py", "# changed\n")
    assert not_named("How to add a rung", tree) == [f"{PACKAGE}/rungs/rung.py"]
