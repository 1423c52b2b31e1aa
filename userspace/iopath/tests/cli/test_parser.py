# SPDX-License-Identifier: GPL-2.0
"""A command is one file: a copy of the project with one more file has one more command. Commands
that are not used are not imported."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.recipe_tree import PACKAGE, Tree
from iopath.cli.parser import QUESTIONS, commands, load, parser

NEW = '''# SPDX-License-Identifier: GPL-2.0
"""Greet a kernel.

More about it."""

import argparse

from iopath.base.errors import Regressed
from iopath.cli.work import Work

EXAMPLES = ("iopath greet debian:7.2", "iopath greet host --word Hello")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernel", metavar="KERNEL")
    parser.add_argument("--word", default="Good morning", help="what to say")


def run(args: argparse.Namespace, work: Work) -> int:
    work.say(f"{args.word}, {args.kernel}")
    if args.kernel == "debian:2.6":
        raise Regressed("it is too old")
    return 3 if args.kernel == "host" else 0
'''


@pytest.mark.parametrize("line", QUESTIONS.values())
def test_a_question_has_a_command(line: str) -> None:
    """The end of help has commands that are understood, in 80 columns."""
    parser().parse_args(shlex.split(line))
    shown = parser().format_help().splitlines()
    assert 0 < max(len(one) for one in shown if one.endswith(f"iopath {line}")) <= 80


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A copy of the project with the command greet."""
    found = Tree(tmp_path)
    (found.root / PACKAGE / "commands/greet.py").write_text(NEW)
    return found


def test_a_new_command_is_one_file(tree: Tree) -> None:
    listed = tree.run("-m", "iopath", "--help")
    assert "    greet     greet a kernel\n" in listed
    helped = tree.run("-m", "iopath", "greet", "--help")
    assert helped.startswith("examples:\n  iopath greet debian:7.2\n  iopath greet host --word")
    assert "  --word WORD  what to say\n" in helped
    assert "  --quiet      suppress progress messages\n" in helped
    for words, status, said in (
        ("greet debian:7.2 --word Hello", 0, "Hello, debian:7.2\n"),
        ("greet host", 3, "Good morning, host\n"),
        ("greet debian:2.6", 1, "Good morning, debian:2.6\niopath: it is too old\n"),
        (
            "great host", 2, "iopath: argument COMMAND: invalid choice 'great':"
            " did you mean 'greet'? (see --help)\n",
        ),
    ):  # fmt: skip
        assert tree.run("-m", "iopath", *words.split(), status=status) == said
    near = tree.run("-m", "iopath", "greet", "host", "--wrod=x", status=2)
    assert "unknown argument '--wrod=x': did you mean '--word'?" in near


def test_a_broken_command_breaks_no_other(tree: Tree) -> None:
    """Only the command that is used is imported."""
    broken = '"""Greet."""\n\nimport nothing_like_this\n'
    (tree.root / PACKAGE / "commands/greet.py").write_text(broken)
    assert "    greet     greet\n" in tree.run("-m", "iopath", "--help")
    tree.run("-m", "iopath", "rungs")
    assert "nothing_like_this" in tree.run("-m", "iopath", "greet", "host", status=1)


# Libraries that are slow to load, which only some answers need.
SLOW = {"cattrs", "debian", "distributed", "jinja2", "jsonschema", "matplotlib", "numpy", "scipy"}


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["rungs"], ["cache", "--help"]])
def test_a_command_loads_no_other(words: list[str]) -> None:
    """What lists the commands or prints a table loads neither guests nor kernels."""
    code = (
        "import sys; from iopath.cli.main import main\n"
        f"try: main({words})\nexcept SystemExit: pass\n"
        "print('loaded', *sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert loaded.pop(0) == "loaded"
    slow = {*SLOW, "rich.progress", *(() if words == ["rungs"] else ("tomllib",))}
    assert not {*loaded} & slow
    loaded = [name for name in loaded if name.startswith("iopath.")]
    found = {name.split(".")[2] for name in loaded if name.startswith("iopath.commands.")}
    assert found == set(words[:1]) & set(commands())
    rooms = {name.split(".")[1] for name in loaded}
    assert rooms <= {"base", "cli", "commands", "results", "rungs", "show"}


def test_a_question_loads_no_slow_library() -> None:
    """What is loaded for a question whose answer the cache has. A bar is for terminals only."""
    code = (
        "import sys, iopath.cli.main, iopath.commands.compare, iopath.measure.session\n"
        "print(*sys.modules)\n"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "iopath.measure.session" in loaded
    slow = {*SLOW, "rich.progress", "iopath.measure.cluster", "iopath.measure.counting"}
    assert not {*loaded} & slow


@pytest.mark.parametrize("name", commands())
def test_the_line_of_help_is_the_docstring(name: str) -> None:
    first = load(name).__doc__.splitlines()[0]
    assert first.endswith(".")
    assert commands()[name] == first[0].lower() + first[1:-1]


def test_options_are_written_in_full() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "iopath", "measure", "host", "--jso", "x.json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "unknown argument '--jso': did you mean '--json'?" in done.stderr
