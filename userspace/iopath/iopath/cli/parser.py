# SPDX-License-Identifier: GPL-2.0
"""The parser of the command line. It knows commands by their files (see iopath.commands), and loads
the one that is used."""

import argparse
import importlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, Protocol, TextIO

from iopath import __version__
from iopath.base import stdout
from iopath.base.errors import did_you_mean
from iopath.cli.work import Work

_EXAMPLES = ("iopath compare debian:6.1 debian:7.2", "iopath measure debian:7.2 --rung 'dio.*'")

# Which question, which command: the end of help (Documentation/questions.rst).
QUESTIONS = {
    "my patch": "compare git:linux@HEAD~1 git:linux@HEAD",
    "my series": "series v6.12..my-branch --cpus 4 --markdown cover.txt",
    "which release": "bisect debian:6.1 debian:7.2 --rung dio.uring --op read",
    "which commit": "bisect git:linux@v6.12 git:linux@v6.13 --rung dio.uring",
    "a scheduler": "features debian:7.2 --feature mq-deadline --cpus 2",
    "a limit": "features debian:7.2 --feature io.max",
    "tracing": "features debian:7.2 --feature 'trace.*'",
    "configuration": "compare git:linux@v6.12 debian:6.12 --rung dio.pread",
    "an upgrade": "compare debian:6.1 debian:7.2",
    "my machine": "bridge host.json exact.json",
    "passthrough": "measure debian:7.2 --rung 'nvme.*.fixed' --op read",
    "my program": "run debian:6.1 debian:7.2 -- ./program",
    "my kernel": "measure installed",
}

# The order in which help lists the commands; others follow.
_ORDER = (
    "kernels", "rungs", "cache", "measure", "profile", "compare", "search", "bisect", "series",
    "track", "features", "run", "bridge",
)  # fmt: skip

_FOLDER = Path(__file__).parents[1] / "commands"
_HEAD = 1000  # bytes of a file that its docstring begins in


class Parser(argparse.ArgumentParser):
    """A parser whose help begins with examples, and whose error message is one line. Options must
    be written in full."""

    def __init__(self, examples: Sequence[str] = (), **settings: object) -> None:
        super().__init__(allow_abbrev=False, **settings)
        self.examples = examples

    def format_help(self) -> str:
        lines = "".join(f"  {line}\n" for line in self.examples)
        return f"examples:\n{lines}\n{super().format_help()}"

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see --help)\n")

    def _check_value(self, action: argparse.Action, value: str) -> None:
        if action.choices is not None and value not in action.choices:
            near = did_you_mean(value, action.choices)
            known = f": must be one of {', '.join(action.choices)}"
            raise argparse.ArgumentError(action, f"invalid choice '{value}'{near or known}")

    def _print_message(self, message: str, file: TextIO | None = None) -> None:
        if file is not sys.stdout:
            super()._print_message(message, file)
            return
        with stdout.writing():
            file.write(message)

    @property
    def options(self) -> list[str]:
        return [option for action in self._actions for option in action.option_strings]


class CommandModule(Protocol):
    """The module of a command."""

    EXAMPLES: Sequence[str]

    @staticmethod
    def add_options(parser: Parser) -> None: ...

    @staticmethod
    def run(args: argparse.Namespace, work: Work) -> int: ...


def load(name: str) -> CommandModule:
    """The module of a command."""
    return importlib.import_module(f"iopath.commands.{name}")  # type: ignore[return-value]


class _CommandParser(Parser):
    """The parser of a *command*. It has options once it is used."""

    def __init__(self, command: str, **settings: object) -> None:
        super().__init__(**settings)
        self._command = command
        self._takes_program = False

    def fill(self) -> None:
        if not self.examples:
            command = load(self._command)
            self.examples = command.EXAMPLES
            command.add_options(self)
            self.add_argument("--quiet", action="store_true", help="suppress progress messages")
            self._takes_program = getattr(command, "PROGRAM", False)
            if self._takes_program:
                usage = self.format_usage()[len("usage: ") :].rstrip()
                self.usage = f"{usage} [-- PROGRAM [ARGS...]]"

    def parse_known_args(self, args=None, namespace=None):  # noqa: ANN001, ANN202
        self.fill()
        if not self._takes_program:
            return super().parse_known_args(args, namespace)
        words = list(args)
        at = words.index("--") if "--" in words else len(words)
        found, unknown = super().parse_known_args(words[:at], namespace)
        found.program = words[at + 1 :]
        return found, unknown


class _TopParser(Parser):
    """The parser of the whole command line."""

    def __init__(self, **settings: object) -> None:
        super().__init__(_EXAMPLES, **settings)
        self.add_argument("--version", action="version", version=f"iopath {__version__}")
        self._commands = self.add_subparsers(
            dest="command", metavar="COMMAND", parser_class=_CommandParser
        )
        for name, about in commands().items():
            self._commands.add_parser(name, command=name, help=about)

    def format_help(self) -> str:
        width = max(map(len, QUESTIONS)) + 2
        lines = [f"  {what:{width}}iopath {command}\n" for what, command in QUESTIONS.items()]
        return f"{super().format_help().rstrip()}\n\nwhat does it cost?\n{''.join(lines)}"

    def command(self, name: str) -> Parser:
        """The parser of a command."""
        found = self._commands.choices[name]
        found.fill()
        return found

    def parse_args(self, args=None, namespace=None):  # noqa: ANN001, ANN202
        """As argparse does it, except for the message about an unknown argument."""
        found, unknown = self.parse_known_args(args, namespace)
        if not found.command:
            if unknown:
                self.error(f"unknown argument '{unknown[0]}'")
            self.print_help()
            self.exit(2)
        if unknown:
            options = self.command(found.command).options
            near = did_you_mean(unknown[0].partition("=")[0], options)
            self.error(f"unknown argument '{unknown[0]}'{near}")
        return found


def commands() -> dict[str, str]:
    """The commands, and what each does. They are not imported."""
    found = {path.stem: _about(path) for path in sorted(_FOLDER.glob("[!_]*.py"))}
    order = [name for name in _ORDER if name in found]
    return {name: found[name] for name in dict.fromkeys([*order, *found])}


def _about(path: Path) -> str:
    """The first line of a file's docstring, as help has it."""
    with path.open("rb") as file:
        head = file.read(_HEAD).decode(errors="replace")
    match = re.search(r'^"""(.+?)\.?(?:"""|$)', head, re.MULTILINE)
    return match[1][0].lower() + match[1][1:] if match else ""


def parser() -> _TopParser:
    return _TopParser(
        prog="iopath",
        description="What one I/O costs in the Linux kernel above the driver, in instructions.",
        epilog="KERNEL is debian:SERIES (debian:6.1, debian:7.2-rt), debian:RELEASE"
        " (debian:7.2.12+deb13-amd64), git:PATH@REVISION (a commit, which is built), tree:PATH (a"
        " built kernel tree), installed (the kernel of this machine), deb:FILES or rpm:FILES"
        " (packages), image:VMLINUZ, or host (the running kernel, measured in time).",
    )
