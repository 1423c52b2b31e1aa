# SPDX-License-Identifier: GPL-2.0
"""Names of kernels, and a source of kernels that is added by one file."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from helpers.command import write_index
from iopath.base.cache import Cache
from iopath.base.errors import UsageError
from iopath.base.progress import Reporter
from iopath.kernels import sources
from iopath.kernels.apt import Package
from iopath.kernels.finder import prefixes
from iopath.measure.session import Session

ADDED = """
from dataclasses import dataclass
from pathlib import Path

from iopath.base.arch import X86_64, Arch
from iopath.kernels.built import Built, built
from iopath.kernels.kernel import Kernel

NAMES = ("planted:FOLDER",)


@dataclass(frozen=True)
class Planted(Kernel):
    folder: Path
    arch: Arch = X86_64

    @property
    def title(self):
        return self.folder.name

    def prepare(self, cache, apt, step):
        step("reading the folder", 0.0)
        return built(self.title, "1", "planted", self.folder, self.folder)


def find(spec, finder):
    return Planted(Path(spec))
"""


@pytest.fixture
def session(recorded: list[Package], tmp_path: Path) -> Session:
    write_index(tmp_path / "cache", recorded)
    return Session(Cache(tmp_path / "cache"), Reporter(Console(stderr=True), quiet=True))


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A file beside those of the existing sources."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "planted.py").write_text(ADDED)
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(folder)])
    yield
    sys.modules.pop("iopath.kernels.sources.planted", None)


@pytest.mark.usefixtures("added")
def test_a_source_is_a_file(session: Session, tmp_path: Path) -> None:
    """Its kernels are found, named in messages and prepared."""
    folder = tmp_path / "6.99"
    folder.mkdir()
    for name in ("vmlinuz", "config", "build.log", "blknull.ko"):
        (folder / name).write_text(name)
    assert session.expand([f"planted:{folder}"]) == [f"planted:{folder}"]
    kernel = session.find(f"planted:{folder}")
    said = []
    prepared = session.build(kernel, lambda what, part: said.append(what))
    assert (prepared.release, prepared.vmlinuz) == ("6.99", folder / "vmlinuz")
    assert set(prepared.modules) == {"blknull"}
    assert said == ["reading the folder"]
    with pytest.raises(UsageError, match=r"planted:FOLDER, rpm:FILES or tree:PATH, e\.g"):
        session.find("6.99")
    with pytest.raises(UsageError, match=r"^plantd:x: not a kernel: did you mean 'planted'"):
        session.find("plantd:x")
    with pytest.raises(UsageError, match=r"^--inline: 6\.99 has no debug information$"):
        kernel.debug_info(prepared, session.cache, session.apt, lambda what, part: None)


def test_without_that_file(session: Session) -> None:
    with pytest.raises(UsageError, match=r"^planted:x: not a kernel"):
        session.find("planted:x")


@pytest.mark.parametrize("name", ["debian:", "host", "__init__:x", "tree", "os:path", ".:x"])
def test_what_is_no_kernel(session: Session, name: str) -> None:
    with pytest.raises(UsageError, match=f"^{name}: "):
        session.find(name)


PACKAGE = Path(sources.__path__[0]).parents[1]

# What lists Debian's kernels, and charts that leave out a source from its kernels' names.
_KNOW = ("commands/kernels.py", "show/picture.py", "studies/featurechart.py")


def knows(text: str) -> list[str]:
    """What Python's source says of single sources: an import of one, a class of kernels, and a
    prefix by itself, which is compared, cut off or put before something."""
    kinds = ("DebianKernel", "GitKernel", "TreeKernel")
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(sources.__name__):
            found.append(f"imports {node.module}")
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            found += [
                f"imports {name}" for name in names if name.startswith(f"{sources.__name__}.")
            ]
        elif isinstance(node, ast.Name) and node.id in kinds:
            found.append(node.id)
        elif isinstance(node, ast.Constant) and str(node.value).endswith(":"):
            found += [f"says {name}:" for name in prefixes() if node.value == f"{name}:"]
    return found


def test_only_a_source_knows_its_kernels() -> None:
    """Outside of the room of kernels, nothing distinguishes sources."""
    files = [
        path
        for path in PACKAGE.rglob("*.py")
        if not {"source", "kernels"} & {*path.relative_to(PACKAGE).parts[:-1]}
    ]
    assert len(files) > 90
    told = {str(path.relative_to(PACKAGE)): knows(path.read_text()) for path in files}
    assert {name: said for name, said in told.items() if said and name not in _KNOW} == {}


@pytest.mark.parametrize(
    "text",
    [
        "from iopath.kernels.sources import debian",
        "from iopath.kernels.sources.git import GitKernel",
        "import iopath.kernels.sources.tree",
        'name.startswith("git:")',
        'f"debian:{release}"',
        "isinstance(kernel, DebianKernel)",
    ],
)
def test_planted_knowledge_of_a_source(text: str) -> None:
    assert knows(text)
