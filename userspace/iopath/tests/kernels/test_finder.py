# SPDX-License-Identifier: GPL-2.0
"""Names of kernels, and who knows their sources."""

import ast
from pathlib import Path

import pytest
from rich.console import Console

from helpers.command import write_index
from iopath.base.cache import Cache
from iopath.base.errors import UsageError
from iopath.base.progress import Reporter
from iopath.kernels import sources
from iopath.kernels.apt import Package
from iopath.kernels.finder import prefixes, source
from iopath.kernels.kernel import Kernel
from iopath.measure.session import Session


@pytest.fixture
def session(recorded: list[Package], tmp_path: Path) -> Session:
    write_index(tmp_path / "cache", recorded)
    return Session(Cache(tmp_path / "cache"), Reporter(Console(stderr=True), quiet=True))


@pytest.mark.parametrize("name", ["debian:", "host", "__init__:x", "tree", "os:path", ".:x"])
def test_what_is_no_kernel(session: Session, name: str) -> None:
    with pytest.raises(UsageError, match=f"^{name}: "):
        session.find(name)


PACKAGE = Path(sources.__path__[0]).parents[1]
SOURCES = sources.__name__
# The classes of kernels, each of which one source has.
KERNELS = {
    name
    for prefix in prefixes()
    for name, part in vars(source(prefix)).items()
    if isinstance(part, type) and Kernel in part.__mro__ and part.__module__.startswith(SOURCES)
}

# What finds sources, what lists Debian's kernels, and charts that leave out a source from its
# kernels' names.
_KNOW = ("kernels/finder.py", "commands/kernels.py", "show/picture.py", "studies/featurechart.py")


def knows(text: str) -> list[str]:
    """What Python's source says of single sources: an import of one, in words, too, a class of one,
    and a prefix by itself, which is compared, cut off or put before something."""
    found = []
    for node in ast.walk(ast.parse(text)):
        words: list[str] = []
        if isinstance(node, ast.ImportFrom):
            words = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            words = [alias.name for alias in node.names]
        elif isinstance(node, ast.Name | ast.Attribute):
            word = node.id if isinstance(node, ast.Name) else node.attr
            found += [word] if word in KERNELS else []
        elif isinstance(node, ast.Constant):
            words = [str(node.value)]
            found += [f"says {name}:" for name in prefixes() if node.value == f"{name}:"]
        found += [f"imports {word}" for word in words if word.startswith(SOURCES)]
    return found


def test_only_a_source_knows_its_kernels() -> None:
    """Outside of the sources, nothing distinguishes them. The room of kernels may say what their
    prefixes mean."""
    told = {}
    for path in PACKAGE.rglob("*.py"):
        name = str(path.relative_to(PACKAGE))
        if not name.startswith(("kernels/sources/", "source/")):
            said = knows(path.read_text())
            inside = name.startswith("kernels/")
            told[name] = [one for one in said if not (inside and one.startswith("says "))]
    assert len(told) > 130
    assert {"DebianKernel", "GitKernel", "Tree"} < KERNELS
    assert {name: said for name, said in told.items() if said and name not in _KNOW} == {}


@pytest.mark.parametrize(
    "text",
    [
        "from iopath.kernels import sources",
        "from iopath.kernels.sources import debian",
        "from iopath.kernels.sources.git import find",
        "import iopath.kernels.sources.tree",
        'importlib.import_module("iopath.kernels.sources.rpm")',
        'name.startswith("git:")',
        'f"debian:{release}"',
        "isinstance(kernel, DebianKernel)",
        "kernels.Tree(path)",
    ],
)
def test_planted_knowledge_of_a_source(text: str) -> None:
    assert knows(text)
