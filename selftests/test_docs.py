# SPDX-License-Identifier: GPL-2.0
"""The documentation builds without a warning, and every command in it works.

Commands that take a guest or minutes are only checked for syntax: options by the program's own
parser, targets by make, parameters by the modules' sources. The commands of host.rst are run in a
guest (test_package.py), the tutorial's comparison is test_planted.py's.
"""

import itertools
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from iopath.base.programs import guest_program
from iopath.base.sources import source_root
from iopath.cli import parser

ROOT = source_root()
TEXTS = [ROOT / "README.md", *sorted((ROOT / "Documentation").glob("*.rst"))]

# Commands of other projects, and the test that runs each one, if any.
KNOWN = {
    "apt-get": "test_package.py, by dpkg", "bpftrace": "",
    "callgrind_annotate": "show/test_views.py", "cat": "", "cd": "",
    "cp": "test_planted.py", "dd": "",
    "dkms": "test_package.py", "echo": "test_selftests.py, modules.sh",
    "git": "test_planted.py", "kubectl": "", "loginctl": "",
    "mkdir": "test_selftests.py, modules.sh", "modinfo": "description.py", "mokutil": "", "mv": "",
    "perf": "test_package.py", "pipx": "test_install.py, by pip",
    "podman": "test_container.py, by buildah", "qemu-system-x86_64": "test_pathcount.py",
    "rmdir": "test_selftests.py",
    "rmmod": "test_package.py", "scripts/kconfig/merge_config.sh": "linux_source.py",
    "sed": "test_planted.py", "systemctl": "", "tar": "linux_source.py",
}  # fmt: skip
# Targets of a kernel's own Makefile.
KERNEL_TARGETS = {"tinyconfig", "olddefconfig", "bzImage", "Image", "modules", "modules_install"}


def commands(path: Path) -> Iterator[str]:
    """The command lines in a text, from literal blocks that begin with a command."""
    text = path.read_text().replace("\\\n", "")
    if path.suffix == ".rst":
        text = text.replace(".. code-block:: none", "OUTPUT")
        blocks = re.findall(r"::\n\n((?:    .*\n|\n)+)", text)
    else:
        text = re.sub(r"<!-- \w+ -->.*?<!-- end -->", "", text, flags=re.DOTALL)
        blocks = re.findall(r"\n\n((?:    .*\n)+)", text)
    for block in blocks:
        lines = [line[4:].removeprefix("$ ").strip() for line in block.splitlines()]
        for line in lines if _is_command(next(filter(None, lines))) else ():
            for part in re.split(r"\s+&&\s+", re.sub(r"(^|\s+)# .*", "", line)):
                if part:
                    yield part


def _is_command(line: str) -> bool:
    word = line.split()[0]
    ours = {f"{place}{name}" for name in ("ioloop", "iopath") for place in ("", "build/bin/")}
    assigns = bool(re.fullmatch(r"\w+=.*", word))
    return (
        assigns
        or word in KNOWN.keys() | ours | {"make", "modprobe", "insmod"}
        or "/sign-file" in word
    )


def check_command(line: str) -> None:
    """Fail if a command cannot be right."""
    words = shlex.split(line)
    while words and re.fullmatch(r"\w+=.*", words[0]):
        del words[0]
    if not words:
        return
    name = Path(words[0]).name
    if name == "iopath":
        try:
            parser.parser().parse_args(words[1:])
        except SystemExit as error:
            assert not error.code, line
    elif name == "ioloop":
        done = subprocess.run(
            [guest_program("ioloop"), *words[1:]], capture_output=True, text=True, check=False
        )
        # 2 is for wrong options; a missing device has another status.
        assert done.returncode != 2, f"{line}: {done.stderr}"
    elif name == "make" and words[1] == "-C":
        assert words[2].startswith("LINUX") or (ROOT / words[2] / "Makefile").is_file(), line
    elif name == "make":
        targets = {w for w in words[1:] if "=" not in w and not w.startswith("-")}
        ours = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert targets <= KERNEL_TARGETS | set(ours), line
    elif name in ("insmod", "modprobe"):
        for module in ("blknull", "biogen"):
            if any(Path(w).name.split(".")[0] == module for w in words[1:]):
                source = "".join(p.read_text() for p in (ROOT / "kernel" / module).glob("*.[ch]"))
                for parameter in (w.split("=")[0] for w in words[1:] if "=" in w):
                    assert re.search(rf"\b{parameter}\b", source), f"{line}: no {parameter}"
    else:
        assert name in KNOWN or words[0] in KNOWN or name == "sign-file", line


COMMANDS = [(path, line) for path in TEXTS for line in commands(path)]


@pytest.mark.parametrize(
    ("path", "line"), COMMANDS, ids=[f"{p.name}-{n}" for n, (p, _) in enumerate(COMMANDS)]
)
def test_command(path: Path, line: str) -> None:
    check_command(line)


def test_commands_are_found() -> None:
    names = {path.name for path, _ in COMMANDS}
    assert names >= {"README.md", "quickstart.rst", "tutorial.rst", "install.rst", "host.rst"}


@pytest.mark.parametrize(
    "line",
    ["build/bin/iopath measure debian:6.1 --fast", "build/bin/ioloop --rw=sideways",
     "make nonsense", "insmod blknull.ko colour=1", "frobnicate"],
)  # fmt: skip
def test_planted(line: str) -> None:
    with pytest.raises(AssertionError):
        check_command(line)


RESULTS = ROOT / "Documentation/results"
COMPARISON = re.compile(r"<!-- compare -->.*?<!-- end -->", re.DOTALL)  # the README's


def number(text: str) -> float:
    return float(text.replace(",", ""))


def row_of_results(rung: str) -> list[float]:
    """The figures of a rung on 5.10, 6.1, 6.12, 7.2 and 7.3, as the committed results have them."""
    text = (RESULTS / "five-kernels.md").read_text()
    (row,) = re.findall(rf"^\| {re.escape(rung)} +\|([ |\d.,]+)\|$", text, re.MULTILINE)
    return [number(cell) for cell in row.split("|")]


def layers_of_results(kernel: str) -> dict[str, float]:
    """By how much the layers of dio.pread read differ from those on 5.10."""
    text = (RESULTS / "five-kernels.md").read_text()
    _, _, section = text.partition(f"### dio.pread read 4 KiB: debian:5.10 to {kernel}\n")
    line = " ".join(re.search(r"By layer: (.*?)\.\n\n", section, re.DOTALL)[1].split())
    return {
        layer: number(by) for layer, _, by in (part.rpartition(" ") for part in line.split(", "))
    }


def test_the_readme_shows_what_the_results_say() -> None:
    """Every figure of the README's comparison is in the committed results, or follows from them."""
    text = (ROOT / "README.md").read_text()
    block = COMPARISON.search(text)[0]
    row = re.search(
        r"^    dio\.pread read +([\d,.]+) +([\d,.]+) +([-+][\d,.]+) ", block, re.MULTILINE
    )
    before, after, difference = map(number, row.groups())
    figures = row_of_results("dio.pread read 4 KiB")
    assert [before, after] == [figures[1], figures[3]]
    assert after - before == pytest.approx(difference, abs=0.005)
    percent = f"({difference / before:+.1%})".replace("%", " %")
    # The verdict, the row and the heading.
    assert block.count(f"{difference:+.2f} {percent}") == 2
    assert f"to debian:7.2, {difference:+.2f} instructions per I/O" in block
    functions = re.findall(r"^ +([-+][\d,.]+)  ", block, re.MULTILINE)
    assert len(functions) > 5
    assert sum(map(number, functions)) == pytest.approx(difference, abs=0.01)
    old, new = layers_of_results("debian:6.1"), layers_of_results("debian:7.2")
    verdict = re.search(r" %\); mostly (.*?)\.\n\n", block, re.DOTALL)[1]
    for layer, by in re.findall(r"([^,]+), ([-+][\d,.]+)", " ".join(verdict.split())):
        assert new.get(layer, 0) - old.get(layer, 0) == pytest.approx(number(by), abs=0.51), layer


def test_the_picture_shows_what_the_results_say() -> None:
    """The README's picture has the figures of the committed results on all five kernels; its
    alternative text names the largest steps, as the picture does."""
    picture = (RESULTS / "ladder.svg").read_text()
    shown = re.findall(r">([\d,]+)<", picture)
    rows = {}
    for rung in ("gen.sync", "raw.pread", "dio.pread", "dio.uring", "buf.pread"):
        rows[rung] = row_of_results(f"{rung} read 4 KiB")
        figures = [f"{figure:,.0f}" for figure in rows[rung]]
        assert any(shown[at : at + 5] == figures for at in range(len(shown))), rung
    said = re.search(r"<title>(.*)</title>", picture)[1]
    assert f"![{said}](Documentation/results/ladder.svg)" in (ROOT / "README.md").read_text()
    rung, change, label = re.search(r"steps: (\S+) (\+(?:[\d,]+) (\(.*?\)))", said).groups()
    steps = {
        rung: [after - before for before, after in itertools.pairwise(row)]
        for rung, row in rows.items()
    }
    largest = max(max(row) for row in steps.values())
    assert largest == max(steps[rung])
    assert change == f"{largest:+,.0f} {label}"
    assert f">{change}<" in picture


SHOWN = re.compile(
    r"::\n\n    iopath (.+)\n\n\.\. code-block:: none\n\n((?:    .*\n|\n)+)"
)  # a command, and what it printed


def not_printed(text: str, results: str) -> list[str]:
    """The lines that a text shows below commands and that the results lack, in their order."""
    outputs = {
        command: output.splitlines()
        for command, output in re.findall(r"^\$ iopath (.+)\n((?:[^$\n].*\n|\n)*)", results, re.M)
    }
    found = []
    for command, block in SHOWN.findall(text):
        printed = iter(outputs.get(command, ()))
        lines = [line[4:] for line in block.rstrip().splitlines()]
        found += [line for line in lines if line != "..." and line not in printed]
    return found


def test_the_questions_show_what_the_results_say() -> None:
    text = (ROOT / "Documentation/questions.rst").read_text()
    results = (RESULTS / "questions.txt").read_text()
    assert not_printed(text, results) == []
    script = (ROOT / "selftests/results/update.sh").read_text()
    commands = [command for command, _ in SHOWN.findall(text)]
    assert len(commands) > 3
    assert all(f"\t\t{command}\n" in script for command in commands)


def test_planted_line_that_was_not_printed() -> None:
    text = "Text::\n\n    iopath x\n\n.. code-block:: none\n\n    a\n    ...\n    b\n\n"
    assert not_printed(text, "$ iopath x\n\na\n\nz\nb\n") == []
    assert not_printed(text, "$ iopath x\n\nb\na\n$ iopath y\n\nb\n") == ["b"]
    assert not_printed(text, "$ iopath y\n\na\nb\n") == ["a", "b"]


# Texts with figures from elsewhere, and where these come from.
OTHER_ORIGIN = {
    "bridge.rst": "a machine that is made up, as the text says",
    "ioloop.rst": "programs in user mode, which test_ioloop.py counts",
}
FIGURE = re.compile(r"(?<![\d.,:~+-])[-+]?((?:\d{1,3}(?:,\d{3})+|\d{3})\.\d\d)(?![\d.])")


def unknown_figures(text: str, results: str) -> list[str]:
    """Counts of a hundred instructions or more, with two digits after the point, that no result
    has."""
    known = set(re.findall(r"\d[\d,]*\.\d\d", results))
    return [figure for figure in FIGURE.findall(text) if figure not in known]


@pytest.mark.parametrize(
    "path", [*TEXTS, *sorted((ROOT / "Documentation/man").iterdir())], ids=lambda path: path.name
)
def test_each_figure_is_in_a_result(path: Path) -> None:
    """Nobody would notice that a figure is outdated if `make results` did not repeat it."""
    results = [one for one in RESULTS.iterdir() if one.suffix in (".md", ".txt")]
    text = COMPARISON.sub("", path.read_text())  # which has a test of its own
    unknown = unknown_figures(text, "\n".join(one.read_text() for one in results))
    if path.name in OTHER_ORIGIN:
        assert unknown, f"{path.name} has no figure of another origin: take it out of the list"
    else:
        assert unknown == []


def test_planted_unknown_figure() -> None:
    text = "from 1,234.56 to 1,244.56, by +10.00, Linux 5.10, 120.25 and -333.10"
    assert unknown_figures(text, "| 1,234.56 | +120.25 |") == ["1,244.56", "333.10"]


# Files that texts name and that the repository lacks: those of a kernel, and what commands write.
OTHER_FILES = {
    "Documentation/admin-guide/blockdev", "include/uapi/linux/biogen.h", "kselftest_harness.h",
    "points.json", "steps.json",
}  # fmt: skip
SUFFIXES = ("c", "config", "h", "json", "md", "py", "rst", "sh", "svg", "toml")
PLACE = "/userspace/iopath/iopath"
ROOMS = {path.name for path in (ROOT / PLACE[1:]).iterdir() if (path / "__init__.py").is_file()}
FOLDERS = {"Documentation", "kernel", "selftests", "userspace", *ROOMS}


def repository() -> set[str]:
    """The files of the repository, and the folders that they are in."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    files = {Path(name) for name in listed if (ROOT / name).exists()}
    return {f"/{path}" for file in files for path in (file, *file.parents)}


def gone(text: str, paths: set[str]) -> list[str]:
    """The files, folders and modules that a text names in double backquotes and that are none of
    the *paths*. The beginning of a path may be missing, and so may the suffix of a module."""
    found = []
    for name in re.findall(r"``([\w.*/…-]+)``", text):
        file = name.removeprefix("…/").rstrip("/")
        room, _, module = file.partition(".")
        if room in ROOMS and module.isidentifier() and module not in SUFFIXES:
            file = f"iopath/{room}/{module}"
        elif not ("/" in file and file.split("/")[0] in FOLDERS) and not re.search(
            rf"[\w*]\.({'|'.join(SUFFIXES)})$", file
        ):
            continue
        elif file.startswith("/") or re.search(r"(^|/)(build/|[A-Z]+\b(?!-))", file):
            continue  # of a machine, made by make, or a placeholder
        wanted = re.compile(f".*/{re.escape(file).replace(chr(92) + '*', '[^/]*')}(\\.py)?")
        if file not in OTHER_FILES and not any(map(wanted.fullmatch, paths)):
            found.append(name)
    return found


def not_in_rooms(text: str, paths: set[str]) -> list[str]:
    """The modules in design.rst's table of rooms that are not in their room."""
    room, found = "", []
    for line in text.splitlines():
        if first := re.match(r"``(\w+)`` ", line):
            room = first[1]
        if room in ROOMS and (first or line.startswith(" " * 14)):
            found += [
                f"{room}/{name}"
                for name in re.findall(r"``(\w+)``", line[14:66])
                if not paths & {f"{PLACE}/{room}/{name}", f"{PLACE}/{room}/{name}.py"}
            ]
        else:
            room = ""
    return found


@pytest.mark.parametrize(
    "path", [path for path in TEXTS if path.suffix == ".rst"], ids=lambda path: path.name
)
def test_files_that_texts_name_exist(path: Path) -> None:
    assert gone(path.read_text(), repository()) == []


def test_the_rooms_have_the_modules_that_design_names() -> None:
    assert not_in_rooms((ROOT / "Documentation/design.rst").read_text(), repository()) == []


def test_planted_file_that_is_gone() -> None:
    paths = {f"/{name}" for name in (
        "kernel/blknull/mq.c", "userspace/iopath/iopath/show/page.py", "selftests/blknull",
    )}  # fmt: skip
    there = "``mq.c`` ``show.page`` ``show/page`` ``*/mq.c`` ``…/page.py`` ``selftests/blknull/``"
    other = "``/etc/x.c`` ``FILE.md`` ``build/x.json`` ``dio.pread`` ``t/io_uring`` ``points.json``"
    assert gone(f"{there} {other}", paths) == []
    named = ["q.c", "show.pages", "show/pages.py", "kernel/biogen", "compare/noise"]
    assert gone(" ".join(f"``{name}``" for name in named), paths) == named
    rows = [
        f"``show``      {'``page``, ``pages``':52} compare",
        f"{'':14}``terminal``",
        "``null`` ``a``",
    ]
    assert not_in_rooms("\n".join(rows), paths) == ["show/pages", "show/terminal"]


def dead_links(path: Path) -> list[str]:
    """The links of a Markdown text to files that the repository does not have."""
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text())
    return [link for link in links if "://" not in link and not (path.parent / link).exists()]


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted(RESULTS.glob("*.md"))], ids=lambda path: path.name
)
def test_links(path: Path) -> None:
    """Sphinx checks the links of the other texts."""
    assert dead_links(path) == []


def test_planted_dead_link(tmp_path: Path) -> None:
    text = tmp_path / "text.md"
    text.write_text("[one](text.md#part) [two](https://a.b/c) [three](pictures/x.svg)\n")
    assert dead_links(text) == ["pictures/x.svg"]


def test_sphinx() -> None:
    done = subprocess.run(
        ["make", "-s", "htmldocs"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_compat_register_is_whole() -> None:
    page = (ROOT / "build/html/compat.html").read_text()
    sources = "".join(path.read_text() for path in (ROOT / "kernel/compat").glob("*.h"))
    wanted = len(re.findall(r"Goes[\s*]+with[\s*]+support[\s*]+for", sources))
    assert page.count("<tr") - 1 == wanted > 20


def test_uapi_reference_is_whole() -> None:
    page = (ROOT / "build/html/uapi.html").read_text()
    header = (ROOT / "kernel/include/uapi/biogen.h").read_text()
    for name in re.findall(r"^(?:struct|enum) (\w+) {", header, re.MULTILINE):
        assert re.search(rf"\b{name}\b", page), name


def test_manual_pages_name_every_option() -> None:
    """iopath(1) has each option of each command, and completion finds them by --help."""
    page = (ROOT / "Documentation/man/iopath.1").read_text()
    top = parser.parser()
    for name in parser.commands():
        assert re.search(rf"\.(?:It )?Cm {name}\b|Cm {name} ", page), name
        for option in top.command(name).options:
            if option.startswith("--") and option not in ("--help", "--quiet"):
                assert f"Fl {option[1:]}" in page, f"{name} {option}"
