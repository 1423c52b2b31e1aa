# SPDX-License-Identifier: GPL-2.0
"""Shell scripts as programs: a guest has busybox's shell and commands, and the programs that a
script calls."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from iopath.base.cache import Cache
from iopath.kernels.apt import Apt
from iopath.measure import packages

SHELL = "bin/busybox"  # in the guest
_PACKAGE, _PROGRAM = "busybox-static", "busybox"
_SHELLS = ("sh", "ash", "dash")

# Words that a command may follow, and those that are never one.
_BEFORE = {
    "if",
    "then",
    "else",
    "elif",
    "while",
    "until",
    "do",
    "!",
    "{",
    "time",
    "exec",
    "command",
}
_NEVER = {"for", "case", "esac", "in", "fi", "done", "}", "function", "select"}
_BUILT_IN = {
    ".", ":", "[", "[[", "alias", "bg", "break", "cd", "continue", "echo", "eval", "exit", "export",
    "false", "fg", "getopts", "hash", "help", "history", "jobs", "kill", "let", "local", "printf",
    "pwd", "read", "readonly", "return", "set", "shift", "source", "test", "times", "trap", "true",
    "type", "ulimit", "umask", "unalias", "unset", "wait",
}  # fmt: skip


def is_script(data: bytes) -> bool:
    """Whether a file is a script for the shell."""
    first = data.split(b"\n", 1)[0].decode(errors="replace")
    words = first.removeprefix("#!").split()
    names = [Path(word).name for word in words]
    return (
        first.startswith("#!") and bool(names) and names[-1 if names[0] == "env" else 0] in _SHELLS
    )


def is_shell(name: str) -> bool:
    return name in _SHELLS


def commands(text: str) -> list[str]:
    """The commands that a script calls and does not define, as far as its text tells: not those
    that it makes of variables."""
    text = re.sub(r"\\\n", " ", text)
    text = re.sub(
        r"<<-?\s*(['\"]?)(\w+)\1(.*?)^\s*\2$", r"\n", text, flags=re.DOTALL | re.MULTILINE
    )
    defined = set(re.findall(r"^\s*(?:function\s+)?([\w-]+)\s*\(\)", text, re.MULTILINE))
    found = dict.fromkeys(_commands(text))
    return [name for name in found if name not in _BUILT_IN | defined]


def _commands(text: str) -> Iterator[str]:
    for line in text.splitlines():
        # Patterns of case end with a parenthesis, and commands that are substituted begin with one.
        line = re.sub(r"^[^()]*\)|\d?[<>]&\d", " ", line)
        words = shlex.shlex(
            re.sub(r"\$\((?!\()|`", " ; ", line), posix=True, punctuation_chars=";|&()"
        )
        words.whitespace_split = True
        words.commenters = "#"
        begins = True
        try:
            for word in words:
                if set(word) <= set(";|&()"):
                    begins = word != ")"
                elif not begins or re.match(r"\w+\+?=|\d*[<>]", word):
                    continue
                elif word not in _BEFORE:
                    begins = False
                    if word not in _NEVER and re.fullmatch(r"[\w./+-]+", word):
                        yield word
        except ValueError:  # a quotation that goes on in the next line
            continue


def busybox(cache: Cache, apt: Apt) -> dict[str, Path]:
    """The files of the shell."""
    return packages.files(cache, apt, _PACKAGE, _PROGRAM)[1]


def of_busybox(shell: Path) -> set[str]:
    """The commands that it has in itself: their names are in its table."""
    found = re.search(rb"\[\x00\[\[\x00(?:[\w.-]+\x00)+", shell.read_bytes())
    return {name.decode() for name in found[0].split(b"\0") if name} if found else set()
