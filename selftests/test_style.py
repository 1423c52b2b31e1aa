# SPDX-License-Identifier: GPL-2.0
"""The style of the sources: every file that git knows (or would), by the tool for its kind."""

import graphlib
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

import pytest

from helpers.linux_source import LinuxSource
from iopath.base.cache import Cache, digest_file
from iopath.base.process import need
from iopath.base.sources import source_root
from iopath.measure.session import Session

ROOT = source_root()


def _sources() -> list[Path]:
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return sorted(Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file())


def _is_shell(path: Path) -> bool:
    if path.suffix == ".sh":
        return True
    with (ROOT / path).open("rb") as file:
        return re.match(rb"#!\s*/(usr/)?bin/(env )?(ba|da)?sh\b", file.readline()) is not None


SOURCES = _sources()
C_SOURCES = [path for path in SOURCES if path.suffix in (".c", ".h")]
SHELL = [path for path in SOURCES if _is_shell(path)]
MAN = [path for path in SOURCES if re.search(r"\.[1-9]$", path.name)]

# Checks that apply only to the kernel's own code: types, macros and messages that others lack; and
# in kernel/compat, distinctions of versions.
OUTSIDE = (
    "BIT_MACRO", "CAMELCASE", "EMBEDDED_FUNCTION_NAME", "NEW_TYPEDEFS", "SPLIT_STRING",
    "PREFER_DEFINED_ATTRIBUTE_MACRO", "PREFER_FALLTHROUGH", "PREFER_KERNEL_TYPES",
    "MACRO_ARG_REUSE",  # macros that define functions by name
    "PARENTHESIS_ALIGNMENT",  # QEMU's names leave no room for it
)  # fmt: skip
# Macros for a list's entries, each of which uses some arguments, and for tables of operations.
LISTS = (
    "COMPLEX_MACRO", "MACRO_ARG_REUSE", "MACRO_ARG_UNUSED", "MULTISTATEMENT_MACRO_USE_DO_WHILE",
    "TRAILING_SEMICOLON",
)  # fmt: skip
IGNORED = {
    "userspace": OUTSIDE,
    "selftests": OUTSIDE,
    "kernel/include/uapi": ("BIT_MACRO",),
    "kernel/compat": (
        "CONSTANT_COMPARISON", "DEPRECATED_API", "LINUX_VERSION_CODE", "MACRO_WITH_FLOW_CONTROL",
        *LISTS,
    ),
    "kernel/blknull": LISTS,
}  # fmt: skip


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a checker; its output is the failure."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        pytest.fail(f"{done.stdout}{done.stderr}".strip(), pytrace=False)


@pytest.mark.parametrize("what", [("format", "--check"), ("check",)], ids=["format", "check"])
def test_ruff(what: tuple[str, ...]) -> None:
    """All Python code, by the settings of the package."""
    package = ROOT / "userspace/iopath"
    ruff = Path(sys.executable).with_name("ruff")
    places = [ROOT / name for name in ("kernel", "userspace", "selftests", "Documentation")]
    run(ruff, *what, "--quiet", "--config", "pyproject.toml", *places, cwd=package)


@pytest.mark.parametrize("path", SHELL, ids=str)
def test_shellcheck(path: Path) -> None:
    run(need("shellcheck", "shellcheck"), "--external-sources", path)


@pytest.mark.parametrize("path", MAN, ids=str)
def test_mandoc(path: Path) -> None:
    run(need("mandoc", "mandoc"), "-T", "lint", "-W", "warning", path)


@pytest.mark.parametrize("path", MAN, ids=str)
def test_groff(path: Path) -> None:
    run(need("groff", "groff-base"), "-ww", "-man", "-Tutf8", "-z", path)


@pytest.fixture(scope="session")
def checkpatch(session: Session) -> Path:
    return LinuxSource(session).checkpatch()


def check_c(cache: Cache, checkpatch: Path, path: Path) -> None:
    """Check a file with checkpatch. This is slow, so a file without faults is not checked again."""
    ignored = [k for top, kinds in IGNORED.items() if path.is_relative_to(top) for k in kinds]
    command = [
        "perl", checkpatch, "--strict", "--no-tree", "--terse", "--no-summary", "--show-types",
        *(f"--ignore={kind}" for kind in ignored), "--file", path,
    ]  # fmt: skip
    inputs = {"command": [str(word) for word in command], "file": digest_file(ROOT / path)}
    cache.entry("checked", inputs, lambda folder: run(*command))


@pytest.mark.parametrize("path", C_SOURCES, ids=str)
def test_checkpatch(session: Session, checkpatch: Path, path: Path) -> None:
    check_c(session.cache, checkpatch, path)


@pytest.mark.parametrize(
    "path", [path for path in C_SOURCES if not path.is_relative_to("kernel/compat")], ids=str
)
def test_versions_are_told_apart_in_compat_alone(path: Path) -> None:
    text = (ROOT / path).read_text()
    assert re.findall(r".*\b(?:LINUX_VERSION_CODE|KERNEL_VERSION)\b.*", text) == []


@pytest.mark.parametrize(
    "path", [p for p in SOURCES if p.suffix in (".c", ".h", ".py", ".sh") or _is_shell(p)], ids=str
)
def test_licence(path: Path) -> None:
    with (ROOT / path).open() as file:
        head = file.readline() + file.readline()
    assert "SPDX-License-Identifier: GPL-2.0" in head


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """A circle in *graph*, the names that each name depends on, or nothing."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def c_files(top: str) -> dict[str, str]:
    """The C files below *top*, without tests: source texts by path below it."""
    return {
        str(path.relative_to(top)): (ROOT / path).read_text()
        for path in C_SOURCES
        if path.is_relative_to(top) and "tests" not in path.parts
    }


MODULES = c_files("kernel")
PROGRAMS = {name: c_files(f"userspace/{name}") for name in ("ioloop", "pathcount", "guest")}


def stem(name: str) -> str:
    """What x.c and x.h are together."""
    return name.rpartition(".")[0]


def include_circle(files: Mapping[str, str]) -> list[str]:
    """A circle of includes among *files*, source texts by path below a folder."""
    graph = {}
    for name, text in files.items():
        included = re.findall(r'^#include [<"](.*)[>"]$', text, re.MULTILINE)
        places = (PurePath(name).parent, PurePath(), PurePath("include"))
        found = {os.path.normpath(place / path) for path in included for place in places}
        graph[name] = found & files.keys()
    return circle(graph)


def call_circle(files: Mapping[str, str]) -> list[str]:
    """A circle of uses of functions and variables among *files*, where x.c and x.h count as one."""
    code = {}
    where = {}
    for name, text in files.items():
        text = re.sub(r"/\*.*?\*/|//.*?$|^#include.*?$", "", text, flags=re.DOTALL | re.MULTILINE)
        if name.endswith(".h"):
            # Inline functions; stubs of what a configuration lacks are defined in their .c file.
            inline = re.findall(r"^static [^{};#=(]*?(\w+)\([^{};#]*\)\n\{", text, re.MULTILINE)
            where = dict.fromkeys(inline, stem(name)) | where
        else:
            defined = re.findall(
                r"^(?!static)[a-z](?:[^{};#=(]*?)(\w+)(?:\([^{};#]*\)\n\{|(?:\[.*\])? = \{)",
                text,
                re.MULTILINE,
            )
            # Variables that are not tables. Prototypes have parentheses.
            defined += re.findall(
                r"^(?!static|extern|typedef)[a-z][\w *]*[ *](\w+)(?:\[.*\])*(?: = [^{;\n]+)?;$",
                re.sub(r"^(?:struct|enum|union) \w+;$", "", text, flags=re.MULTILINE),
                re.MULTILINE,
            )
            where |= dict.fromkeys(defined, stem(name))
        # Declarations begin in the first column and have no body.
        code[name] = re.sub(r"^(?!static)[a-z][^{};#=]*;", "", text, flags=re.MULTILINE)
    graph: dict[str, set[str]] = {}
    for name, text in code.items():
        user = stem(name)
        # Members and types of structures are not uses.
        words = re.findall(r"(?<!->)(?<!\.)(?<!struct )\b[a-z]\w*", text)
        used = {where[word] for word in words if word in where}
        graph.setdefault(user, set()).update(used - {user})
    return circle(graph)


def test_no_circle_in_modules() -> None:
    assert include_circle(MODULES) == []
    assert call_circle(MODULES) == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_circle_in_program(name: str) -> None:
    assert len(PROGRAMS[name]) > 3
    assert include_circle(PROGRAMS[name]) == []
    assert call_circle(PROGRAMS[name]) == []


# The walk of a write through biogen, in contributing.rst: file and function of each step.
WALK = re.compile(r"^(\d+) +``(\w+\.[ch])`` +``(\w+)\(\)``", re.MULTILINE)
STOPS, RETURNS = 14, 4


def functions(text: str) -> dict[str, str]:
    """The functions that a C file defines, with their bodies."""
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    found = re.findall(
        r"^[a-z][^{};#=(]*?(\w+)\([^{};#]*\)\n\{\n(.*?)^\}", code, re.MULTILINE | re.DOTALL
    )
    return dict(found)


def walk_faults(walk: Sequence[tuple[str, str]], files: Mapping[str, str]) -> list[str]:
    """What is wrong with a walk of files and functions: each step is defined in its file, and is
    named by a step before or, if it is a callback, in the file of one. Going on in a file that
    was left is a return."""
    faults = []
    bodies: list[str] = []
    texts = []
    for name, function in walk:
        body = functions(files.get(f"biogen/{name}", "")).get(function)
        if body is None:
            faults.append(f"{name} has no {function}()")
            continue
        word = re.compile(rf"\b{function}\b")
        if bodies and not any(word.search(text) for text in (*bodies, *texts)):
            faults.append(f"no step before calls {function}()")
        bodies.append(body)
        # Callbacks are in tables and inline functions of the files before.
        texts += [files[f"biogen/{name}"]] if name.endswith(".h") else []
    visits = [name for name, _ in itertools.groupby(name for name, _ in walk)]
    returns = len(visits) - len(set(visits))
    if len(walk) > STOPS or returns > RETURNS:
        faults.append(f"{len(walk)} stops and {returns} returns")
    return faults


def walk() -> list[tuple[str, str]]:
    rows = WALK.findall((ROOT / "Documentation/contributing.rst").read_text())
    assert [int(number) for number, _, _ in rows] == list(range(1, len(rows) + 1))
    return [(name, function) for _, name, function in rows]


def test_walk_through_biogen() -> None:
    assert len(walk()) > 10
    assert walk_faults(walk(), MODULES) == []


def test_planted_walk() -> None:
    good = walk()
    assert walk_faults([("rw.c", "biogen_rw_gone"), *good[1:]], MODULES) != []
    assert walk_faults([("io.h", good[0][1]), *good[1:]], MODULES) != []
    assert walk_faults([good[0], *reversed(good[1:])], MODULES) != []
    assert walk_faults([*good, ("rw.c", "biogen_read")], MODULES) != []


# The walks of values through the package, in the order of contributing.rst: how many stays and
# returns each may have.
STAY = re.compile(r"^(\d+) +``([\w/]+/\w+\.(?:c|py))`` +``(\w+)\(\)``", re.MULTILINE)
MOST = {"arguments": (20, 4), "name": (12, 2), "block": (14, 2)}
PLACES = (ROOT / "userspace/iopath/iopath", ROOT / "userspace")


def stays_of(text: str) -> dict[str, list[tuple[str, str]]]:
    rows = STAY.findall(text)
    begins = [at for at, (number, _, _) in enumerate(rows) if number == "1"]
    walks = [rows[at:to] for at, to in itertools.pairwise([*begins, len(rows)])]
    assert all([int(row[0]) for row in rows] == [*range(1, len(rows) + 1)] for rows in walks)
    return {
        name: [(file, function) for _, file, function in rows]
        for name, rows in zip(MOST, walks, strict=True)
    }


STAYS = stays_of((ROOT / "Documentation/contributing.rst").read_text())


def stay_faults(walk: Sequence[tuple[str, str]], most: tuple[int, int]) -> list[str]:
    """What is wrong with a walk: each file has its function, which another file of the walk names,
    or a file that is entered again itself: values go to what is called, and results back."""
    texts = {
        file: next((p / file).read_text() for p in PLACES if (p / file).is_file())
        for file, _ in walk
    }
    faults = []
    for number, (file, function) in enumerate(walk):
        if not re.search(rf"^ *(?:def|class) {function}\b|^\w.*\b{function}\(", texts[file], re.M):
            faults.append(f"{file} has no {function}()")
        named = {other: len(re.findall(rf"\b{function}\b", texts[other])) for other in texts}
        again = file in [other for other, _ in walk[:number]] and named[file] > 1
        if number and not (again or sum(named.values()) > named[file]):
            faults.append(f"no step names {function}()")
    faults += [f"{one[0]} twice" for one, two in itertools.pairwise(walk) if one[0] == two[0]]
    returns = len(walk) - len(texts)
    if len(walk) > most[0] or returns > most[1]:
        faults.append(f"{len(walk)} stays and {returns} returns")
    return faults


@pytest.mark.parametrize("name", MOST)
def test_walk_through_the_package(name: str) -> None:
    assert len(STAYS[name]) > 10
    assert stay_faults(STAYS[name], MOST[name]) == []


def test_planted_stays() -> None:
    good, most = STAYS["block"], MOST["block"]
    first, *rest = good
    assert stay_faults([(first[0], "gone"), *rest], most) != []
    assert stay_faults([*good, ("counts/btf.py", "functions")], most) != []
    assert stay_faults([*good, rest[-1]], most) != []
    assert stay_faults([first, rest[0], first, *rest], most) != []
    assert stay_faults(good, (len(good) - 1, most[1])) != []


# Planted faults: the tools find them.


def test_planted_include_circle() -> None:
    files = MODULES | {"compat/bio.h": '#include "biogen/submit.h"\n'}
    assert {"compat/bio.h", "biogen/biogen.h", "biogen/submit.h"} <= set(include_circle(files))


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("biogen/io.h", "static int x(void)\n{\n\tbiogen_io_wait(0);\n}\n", "biogen/late"),
        ("biogen/io.h", "static int x(void)\n{\n\tbiogen_io_rewind(0);\n}\n", "biogen/submit"),
        ("blknull/bio.c", "static int x(void)\n{\n\tblknull_destroy(0);\n}\n", "blknull/disk"),
        ("biogen/pin.c", "static void *x = &biogen_fops;\n", "biogen/chardev"),
    ],
)
def test_planted_call_circle(name: str, text: str, found: str) -> None:
    stems = set(call_circle(MODULES | {name: MODULES[name] + text}))
    assert {found, stem(name)} <= stems


@pytest.mark.parametrize(
    ("program", "name", "text", "found"),
    [
        ("ioloop", "engines/sync.c", "static void *x = engine_names;\n", "engines"),
        ("ioloop", "job.c", "static int x(void)\n{\n\tcrew_run(0, 0);\n}\n", "crew"),
        ("ioloop", "error.c", "static void *x = &engine_sync;\n", "engines/sync"),
        ("pathcount", "arch/x86_64.c", "static void *x = &arch;\n", "arch"),
        ("guest", "stack.c", "static int x(void)\n{\n\tmain();\n}\n", "init"),
    ],
)
def test_planted_call_circle_in_program(program: str, name: str, text: str, found: str) -> None:
    files = PROGRAMS[program]
    stems = set(call_circle(files | {name: files[name] + text}))
    assert {found, stem(name)} <= stems


def test_planted_include_circle_in_program() -> None:
    files = PROGRAMS["ioloop"] | {"options.h": '#include "engines/../job.h"\n'}
    assert {"options.h", "job.h"} <= set(include_circle(files))


def test_planted_checkpatch(checkpatch: Path, tmp_path: Path) -> None:
    """The fault is found although the file was good before."""
    cache, path = Cache(tmp_path / "cache"), tmp_path / "planted.c"
    path.write_text("// SPDX-License-Identifier: GPL-2.0\nstatic int a;\n")
    check_c(cache, checkpatch, path)
    path.write_text("// SPDX-License-Identifier: GPL-2.0\nint a( void );\n")
    for _ in range(2):
        with pytest.raises(pytest.fail.Exception, match="ERROR:SPACING"):
            check_c(cache, checkpatch, path)


def test_planted_shellcheck(tmp_path: Path) -> None:
    path = tmp_path / "planted.sh"
    path.write_text("#!/bin/sh\nrm $1\n")
    with pytest.raises(pytest.fail.Exception, match="SC2086"):
        test_shellcheck(path)


def test_planted_mandoc(tmp_path: Path) -> None:
    path = tmp_path / "planted.1"
    path.write_text(".TH PLANTED 1\n.SH NAME\n.nonsense\n")
    with pytest.raises(pytest.fail.Exception, match="nonsense"):
        test_mandoc(path)


# Phrases that read like a translation; a reader needs each sentence twice.
STILTED = re.compile(
    r"\b(?:what there is|that which|of its own accord|for want of|is needed but to|what came since"
    r"|what is to be|(?:can|could|may|cannot) be had|anew|whosoever|whatsoever"
    r"|name it behind|that what a guest says depends|so many of a run's|times the I/Os of a round"
    r"|by which each I/O ends|went on after these|puts? them apart|how much all may differ)\b",
    re.IGNORECASE,
)
QUOTES_THEM = {"COPYING", "Documentation/contributing.rst", "selftests/test_style.py"}


def stilted(text: str) -> list[str]:
    return [" ".join(found.split()) for found in STILTED.findall(re.sub(r"\s+[*#]?\s*", " ", text))]


def test_english_is_plain() -> None:
    found = {}
    for path in SOURCES:
        if str(path) not in QUOTES_THEM and path.suffix not in (".svg", ".png"):
            found[str(path)] = stilted((ROOT / path).read_text(errors="replace"))
    assert len(found) > 300
    assert {name: phrases for name, phrases in found.items() if phrases} == {}


def test_planted_stilted_phrase() -> None:
    assert stilted("/*\n * Shows what\n * there is.\n */\n") == ["what there is"]
    assert stilted("# make it\n# anew\n") == ["anew"]
    assert stilted("It shows what is there. Run make again. A new file.") == []


LARGE = 256 << 10


def large(root: Path) -> list[str]:
    """The committed files that are too large for a repository: `make results` makes such files."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True, check=True
    ).stdout.split("\0")
    return [name for name in filter(None, listed) if (root / name).lstat().st_size > LARGE]


def test_no_file_is_large() -> None:
    assert large(ROOT) == []


def test_planted_large_file(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    for name, size in (("small", LARGE), ("large", LARGE + 1), ("ignored", LARGE + 1)):
        (tmp_path / name).write_bytes(bytes(size))
    subprocess.run(["git", "-C", tmp_path, "add", "small", "large"], check=True)
    assert large(tmp_path) == ["large"]


def test_every_test_is_in_a_part() -> None:
    """check.sh names each file whose tests boot guests; the others are in the part iopath."""
    text = (ROOT / "selftests/check.sh").read_text()
    tests = (ROOT / "userspace/iopath/tests").rglob("test_*.py")
    guests = [path.stem for path in tests if "mark.guest" in path.read_text()]
    assert len(guests) > 10
    assert [one for one in guests if not re.search(rf"\b{one[5:]}\b", text)] == []
