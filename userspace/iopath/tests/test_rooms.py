# SPDX-License-Identifier: GPL-2.0
"""The rooms of the package: imports between rooms only go down, and imports within a room have no
circle. A name stands for one file, and for one class. The tests of a room are in a folder of its
name, those of a module in a file of its name."""

import ast
import graphlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

import iopath

# The rooms from the lowest to the highest, each with those that it may use. What these may use, it
# may use, too.
ROOMS = {
    "base": (),
    "results": ("base",),
    "guest": ("base",),
    "rungs": ("guest", "results"),
    "kernels": ("guest", "results"),
    "counts": ("rungs",),
    "host": ("rungs",),
    "compare": ("results",),
    "measure": ("counts", "host", "kernels"),
    "show": ("compare",),
    "studies": ("measure", "show"),
    "track": ("studies",),
    "cli": ("measure", "show"),
    "commands": ("cli", "studies", "track"),
}

PACKAGE = Path(iopath.__file__).parent
TESTS = Path(__file__).parent
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path.read_text()
    for path in sorted(PACKAGE.rglob("*.py"))
    if "source" not in path.relative_to(PACKAGE).parts
}


def imports(modules: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each of *modules*, source texts by name, with the modules that it imports, in functions, too.

    An import of a package is one of its "__init__"."""
    for name, text in modules.items():
        for node in ast.walk(ast.parse(text)):
            found = []
            if isinstance(node, ast.ImportFrom):
                assert not node.level, f"{name}: from . import"
                found = [f"{node.module}.{alias.name}" for alias in node.names]
                found.append(str(node.module))
            elif isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            for one in found:
                place = one.removeprefix("iopath.")
                if one.startswith("iopath.") and place in modules:
                    yield name, place


def upward(modules: Mapping[str, str]) -> list[str]:
    """The imports that a room may not make."""
    below: dict[str, set[str]] = {}
    for room, uses in ROOMS.items():
        below[room] = {room}.union(*(below[used] for used in uses))
    found = []
    for name, imported in imports(modules):
        room, other = name.partition(".")[0], imported.partition(".")[0]
        if room != "__main__" and other not in below[room]:
            found.append(f"{name} imports {imported}")
    return found


def circle(modules: Mapping[str, str]) -> list[str]:
    """A circle of imports, or nothing."""
    graph: dict[str, set[str]] = {}
    for name, imported in imports(modules):
        graph.setdefault(name, set()).add(imported)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_each_module_is_in_a_room() -> None:
    rooms = {name.partition(".")[0] for name in MODULES if "." in name}
    assert rooms == set(ROOMS)
    assert {name for name in MODULES if "." not in name} == {"__init__", "__main__"}


def strangers(tests: Iterable[str]) -> list[str]:
    """Those of *tests*, paths of test files, that have no module of their name in their room."""
    modules = {f"{name.replace('.', '/')}.py" for name in MODULES}
    return [path for path in tests if path.replace("test_", "") not in modules]


# Tests of the whole: of what guests say, of what people see, and of the project.
WHOLE = ("guests/", "looks/", "test_")


def test_each_test_is_of_a_module() -> None:
    tests = [str(path.relative_to(TESTS)) for path in TESTS.rglob("test_*.py")]
    of_modules = [path for path in tests if not path.startswith(WHOLE)]
    assert len(of_modules) > 60
    assert strangers(of_modules) == []


def test_planted_tests_of_no_module() -> None:
    gone = ["show/test_no_such_module.py", "no_such_room/test_page.py"]
    assert strangers(["show/test_page.py", *gone]) == gone


def doubled(names: Iterable[str]) -> list[str]:
    """The names that occur twice or more."""
    return [name for name, times in Counter(names).items() if times > 1]


def files(modules: Iterable[str]) -> Iterator[str]:
    """The names of files. A command may be called as what it runs."""
    for module in modules:
        room, _, name = module.rpartition(".")
        if room != "commands" and name != "__init__":
            yield name


def classes(modules: Mapping[str, str]) -> Iterator[str]:
    """The names of the classes of modules, source texts by name."""
    for text in modules.values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                yield node.name


def test_imports_go_down_only() -> None:
    assert len([*imports(MODULES)]) > 400
    assert upward(MODULES) == []


def test_no_circle() -> None:
    assert circle(MODULES) == []


def test_no_two_files_have_the_same_name() -> None:
    assert doubled(files(MODULES)) == []
    assert doubled(files([*MODULES, "show.plan", "commands.session"])) == ["plan"]


def test_no_two_classes_have_the_same_name() -> None:
    assert doubled(classes(MODULES)) == []
    assert doubled(classes(MODULES | {"show.other": "class Job:\n    pass\n"})) == ["Job"]


@pytest.mark.parametrize(
    "text",
    [
        "from iopath.measure import plan",
        "from iopath.measure.plan import guests",
        "import iopath.measure.plan",
        "def f():\n    from iopath.measure import plan",
    ],
)
def test_planted_upward_import(text: str) -> None:
    planted = MODULES | {"show.page": MODULES["show.page"] + f"\n\n{text}\n"}
    assert set(upward(planted)) == {"show.page imports measure.plan"}


def test_planted_circle() -> None:
    assert circle(
        {
            "base.a": "import os\nfrom iopath.base.b import x\n",
            "base.b": "def f():\n    from iopath.base import c\n",
            "base.c": "import iopath.base.a\n",
        }
    )


# The code that shows and compares results needs no machine.
@pytest.mark.parametrize("room", ["results", "compare", "show"])
def test_showing_loads_no_machine(room: str) -> None:
    names = [f"iopath.{name}" for name in MODULES if name.startswith(f"{room}.")]
    assert len(names) > 5
    code = f"import sys\nfor name in {names}: __import__(name)\nprint(*sys.modules)\n"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {*names} <= {*loaded}
    rooms = {name.split(".")[1] for name in loaded if name.startswith("iopath.")}
    assert rooms <= {"base", "results", "compare", "show"}


def untyped(modules: Mapping[str, str]) -> list[str]:
    """The modules that name Any, but for the borders to JSON in base.typed."""
    return [
        name
        for name, text in modules.items()
        if name != "base.typed"
        and any(
            isinstance(node, ast.Name | ast.alias)
            and "Any" in (getattr(node, "id", ""), getattr(node, "name", ""))
            for node in ast.walk(ast.parse(text))
        )
    ]


def test_nothing_is_any() -> None:
    assert untyped(MODULES) == []
    assert untyped({"show.other": "from typing import Any\n"}) == ["show.other"]
