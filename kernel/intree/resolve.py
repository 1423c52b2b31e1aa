# SPDX-License-Identifier: GPL-2.0
"""Resolve the shims of kernel/compat for one kernel, so that a driver needs none of them.

unifdef decides the conditions on versions. Then the headers' definitions themselves say what to do:

* a macro is expanded where it is used;
* a function that only returns an expression, or is one statement, is inlined by coccinelle;
* any other function moves into the driver, under the driver's prefix.

What a shim's comment says is about versions, so it stays behind. Comments inside a function move
along.
"""

import difflib
import re
import subprocess
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_CONDITION = re.compile(r"COMPAT_KERNEL_BEFORE\((\d+), (\d+)\)")
_TOLD_BY = re.compile(r"^#\s*ifn?def (\w+)$", re.MULTILINE)
_MACRO = re.compile(r"^#define (\w+)(\([^)]*\))?((?:.*\\\n)*.*)$", re.MULTILINE)
_FUNCTION = re.compile(
    r"^(static (?:inline|__always_inline) (?:[^;{}()#]|\n)*?\b(\w+)\(([^{}]*?)\))\n\{\n(.*?)^\}\n",
    re.MULTILINE | re.DOTALL,
)
_INCLUDE = re.compile(r"^#include <(.*)>\n", re.MULTILINE)
_PRIMARY = re.compile(r"[\w()]+((->|\.)[\w()]+)*")  # binds tighter than any operator
_ANY_INCLUDE = re.compile(r'^#include [<"](?!attrs).*\n', re.MULTILINE)
_OURS = re.compile(r'^#include "compat/(.*)"\n', re.MULTILINE)
# spatch cannot read "!call()" in what it is to add, but "!(call())".
_CALL = r"\w+\((?:[^()]|\([^()]*\))*\)"
_NEGATED, _IN_PARENTHESES = re.compile(rf"!({_CALL})"), re.compile(rf"!\(({_CALL})\)")
_CONSTANT = re.compile(r"\b(?:true|false|0) *[&|]|[&|]\s+(?:true|false)\b|!(?:true|false)\b")
_COMMENT = re.compile(r"/\*.*?\*/\n?", re.DOTALL)
_INFO = "MODULE_INFO(iopath_shims"


def _rules(metavariables: str, changes: Mapping[str, str]) -> str:
    """A semantic patch. It has a rule for each change: matches of one rule must not overlap."""
    return "".join(
        f"@@\nexpression {metavariables};\n@@\n- {old}\n+ {new}\n\n" for old, new in changes.items()
    )


# Conditions on shims that are constants.
SIMPLIFY = _rules(
    "E",
    {
        "!false": "true",
        "E && false": "false",
        "false && E": "false",
        "0 && E": "false",
        "0 | E": "E",
        "true && E": "E",
        "E && true": "E",
        "false || E": "E",
        "E || false": "E",
    },
)

# Objects are allocated by their type, on kernels that have kmalloc_obj() (7.0).
OBJECTS = _rules(
    "P, F",
    {
        "kmalloc(sizeof(*P), F)": "kmalloc_obj(*P, F)",
        "kzalloc(sizeof(*P), F)": "kzalloc_obj(*P, F)",
    },
)


class ResolveError(Exception):
    """A shim that cannot be resolved."""


def _run(*words: str | Path, good: tuple[int, ...] = (0,)) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ResolveError(f"{words[0]} is missing: install the package of this name") from error
    if done.returncode not in good:
        raise ResolveError(f"{words[0]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


@dataclass
class Function:
    """A shim that is a function."""

    name: str
    head: str  # up to the closing parenthesis
    parameters: list[str]
    body: str
    includes: list[str]  # of its header

    @property
    def text(self) -> str:
        return f"{self.head}\n{{\n{self.body}}}\n"

    def rule(self) -> str | None:
        """The semantic patch that inlines it, if it is an expression or one statement."""
        code = re.sub(r"\s+", " ", _COMMENT.sub("", self.body)).strip()
        if re.search(r"[{}#]", code) or code.count(";") > 1:
            return None
        returned = re.fullmatch(r"return (.*);", code)
        if re.match(r"(return|if|for|while|struct|unsigned|int|bool)\b", code) and not returned:
            return None
        metavariables = [f"p_{name}" for name in self.parameters]
        call = f"{self.name}({', '.join(metavariables)})"
        new = returned[1] if returned else code
        for name in self.parameters:
            new = re.sub(rf"(?<!->)(?<!\.)\b{name}\b", f"p_{name}", new)
        new = _NEGATED.sub(r"!(\1)", new)
        head = f"@@\nexpression {', '.join([*metavariables, 'E'])};\n@@\n"
        if not returned:
            return f"{head}- {call};\n{f'+ {new}' if new else ''}\n"
        if _PRIMARY.fullmatch(_nested(new)):
            return f"{head}- {call}\n+ {new}\n"
        # Parentheses where the expression could be torn apart, and nowhere else.
        places = ["{} && E", "E && {}", "{} || E", "E || {}", "E = {}"]
        if re.search(r"&&|[|]{2}|[?]", _nested(new)):
            places = ["E = {}"]
        cases = [f"- {place.format(call)}\n+ {place.format(new)}\n" for place in places]
        inner = "|\n".join([*cases, f"- {call}\n+ ({new})\n"])
        return f"{head}- return {call};\n+ return {new};\n\n{head}(\n{inner})\n"


def _nested(text: str) -> str:
    """*text* without what is in parentheses or brackets."""
    before = None
    while before != text:
        before, text = text, re.sub(r"\([^()]+\)|\[[^][]+\]", "()", text)
    return text


@dataclass
class Shims:
    """The shims for one kernel, by name."""

    macros: dict[str, tuple[list[str] | None, str]] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)

    @classmethod
    def read(
        cls, folder: Path, version: tuple[int, int], defines: Callable[[str], bool]
    ) -> "Shims":
        """Those of the headers in *folder*, which are changed. *defines* says whether the kernel
        defines a macro."""
        found = cls()
        for path in sorted(folder.glob("*.h")):
            if path.name == "version.h":
                continue
            text = _CONDITION.sub(
                lambda match: str(int(version < (int(match[1]), int(match[2])))), path.read_text()
            )
            guard = f"IOPATH_COMPAT_{path.stem.upper()}_H"
            path.write_text(text.replace('#include "compat/version.h"\n', ""))
            told = {name for name in _TOLD_BY.findall(text) if not name.startswith("CONFIG_")}
            words = [f"-{'DU'[not defines(name)]}{name}" for name in sorted(told - {guard})]
            # 1 says that the file was changed.
            _run("unifdef", "-k", "-m", "-B", f"-U{guard}", *words, path, good=(0, 1))
            found._add(path.read_text(), guard)
        return found

    def _add(self, text: str, guard: str) -> None:
        for name, parameters, body in _MACRO.findall(text):
            if name != guard:
                names = [word.strip() for word in parameters[1:-1].split(",")]
                lines = [line.rstrip("\\").rstrip() for line in body.splitlines()]
                new = "\n".join(lines).strip("\n")
                new = new if new.startswith("\t") and "\n" in new else new.strip()
                self.macros[name] = (names if parameters else None, new)
        for head, name, parameters, body in _FUNCTION.findall(text):
            names = [re.split(r"[ *]", one)[-1] for one in _arguments(_callbacks(parameters))]
            self.functions[name] = Function(
                name, head, [n for n in names if n != "void"], body, _INCLUDE.findall(text)
            )

    # Macros.

    def expand(self, text: str) -> str:
        """*text* with all macros expanded."""
        before = None
        while before != text:
            before = text
            for name in self.macros:
                if name in text:
                    text = self._expand(name, text)
        return text

    def _expand(self, name: str, text: str) -> str:
        parameters, body = self.macros[name]
        if parameters is None:
            if not body:
                text = re.sub(rf"^\s*return {name};\n", "", text, flags=re.MULTILINE)
            return re.sub(rf"\b{name}\b", lambda _: body, text)
        while match := re.search(rf"\b{name}\(", text):
            end = _closing(text, match.end())
            values = dict(zip(parameters, _arguments(text[match.end() : end]), strict=True))
            new = "".join(values.get(word, word) for word in re.split(r"(\w+)", body))
            start = text.rfind("\n", 0, match.start()) + 1
            indent, rest = text[start : match.start()], text[end + 1 :]
            if indent.strip():  # within a line
                text = text[: match.start()] + new + rest
            elif not new or _INFO in new:
                text = text[:start] + re.sub(r"^;?\n", "", rest)
            else:
                text = text[:start] + textwrap.indent(textwrap.dedent(new), indent) + rest
                text = _without_wrapper(text, new)
        return text

    # Functions.

    def inline(self, path: Path) -> None:
        """Inline functions in a file, and remove conditions that became constant."""
        text = path.read_text()
        rules = [
            rule
            for name, function in self.functions.items()
            if re.search(rf"\b{name}\(", text) and (rule := function.rule())
        ]
        if rules:
            _spatch("\n".join(rules), path)
            path.write_text(_IN_PARENTHESES.sub(r"!\1", path.read_text()))
        while _CONSTANT.search(before := path.read_text()):
            _spatch(SIMPLIFY, path)
            if path.read_text() == before:
                break

    def left(self, text: str) -> list[Function]:
        """The functions that *text* uses, behind those that they use themselves."""
        found: list[Function] = []
        for name, function in self.functions.items():
            if re.search(rf"\b{name}\b", text):
                for one in [*self.left(function.body), function]:
                    if one not in found:
                        found.append(one)
        return found


def _with_includes(text: str, names: Sequence[str]) -> str:
    """*text* with includes of the kernel's headers *names*, in the alphabet's order."""
    present = _INCLUDE.findall(text)
    if set(names) <= set(present):
        return text
    match = _ANY_INCLUDE.search(text)
    start = match.start() if match else 0
    lines = "".join(f"#include <{name}>\n" for name in sorted({*names, *present}))
    return text[:start] + lines + _INCLUDE.sub("", text[start:])


def _spatch(rules: str, path: Path) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".cocci") as patch:
        patch.write(rules)
        patch.flush()
        _run("spatch", "--very-quiet", "--no-includes", "--in-place", "--sp-file", patch.name, path)


_WRAPPER = re.compile(
    r"^static [^{;]*?\b(\w+)\(([^{}]*)\)\n\{\n\t(?:return )?(\w+)\(([^()]*)\);\n\}$"
)


def _without_wrapper(text: str, function: str) -> str:
    """*text* without *function*, if that only passes its arguments to another one."""
    function = textwrap.dedent(function).strip()
    match = _WRAPPER.match(function)
    if not match:
        return text
    names = [re.split(r"[ *]", one)[-1] for one in _arguments(match[2])]
    if names != _arguments(match[4]):
        return text
    text = text.replace(f"{function}\n\n", "", 1)
    return re.sub(rf"\b{match[1]}\b", match[3], text)


def _closing(text: str, start: int) -> int:
    """Where the parenthesis ends that was opened before *start*."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if not depth:
            return at
    raise ResolveError(f"unbalanced parentheses: {text[start : start + 40]}")


def _arguments(text: str) -> list[str]:
    """The arguments in *text*."""
    found, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return [one.strip() for one in found]


def _callbacks(parameters: str) -> str:
    """*parameters* with "(*name)(...)" as "name"."""
    return re.sub(r"\(\*(\w+)\)\([^()]*\)", r"\1", parameters)


def _needs_format(line: str) -> bool:
    """Whether a line is too long, or is part of a longer statement; tables stay as they are."""
    if not line.strip() or re.match(r"\s*\.\w+\t+=|#|.*\\$", line):
        return False
    long = len(line.expandtabs(8)) > 80 or re.search(r"\((?:unsigned )?\w+( \*+)?\) \w", line)
    return bool(long) or line.count("(") != line.count(")") or line.rstrip()[-1] not in ";{}:"


def _format(path: Path, before: str, style: Path) -> None:
    """Format the lines that differ from those of *before*, apart from tables."""
    lines = path.read_text().splitlines()
    changed = [
        number
        for word, _, _, first, last in difflib.SequenceMatcher(
            None, before.splitlines(), lines, autojunk=False
        ).get_opcodes()
        if word in ("replace", "insert")
        for number in range(first, last)
        if _needs_format(lines[number])
    ]
    if changed:
        words = [f"--lines={number + 1}:{number + 1}" for number in changed]
        _run("clang-format", "-i", f"--style=file:{style}", *words, path)


class Driver:
    """A driver's files, by name, below a folder."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.paths = sorted([*folder.glob("*.c"), *folder.glob("*.h")])
        self.header = folder / f"{name}.h"

    def resolve(self, shims: Shims, style: Path, *, objects: bool) -> None:
        """Leave no shim in the files. *objects* are allocated by type. *style* is for
        clang-format."""
        for path in self.paths:
            before = path.read_text()
            path.write_text(_OURS.sub("", shims.expand(before)))
            shims.inline(path)
            if objects and re.search(r"\bk[mz]alloc\(sizeof", path.read_text()):
                _spatch(OBJECTS, path)
            _format(path, before, style)
        self._move(shims)

    def _move(self, shims: Shims) -> None:
        """Move functions into the only file that uses them, or else into the driver's header."""
        texts = {path: path.read_text() for path in self.paths}
        needed = shims.left("\n".join(texts.values()))
        for function in needed:
            users = [
                path for path, text in texts.items() if re.search(rf"\b{function.name}\b", text)
            ]
            at = users[0] if len(users) == 1 else self.header
            texts[at] = _with_includes(texts[at], function.includes)
            end = [match.end() for match in _ANY_INCLUDE.finditer(texts[at])][-1]
            rest = texts[at][end:].lstrip("\n")
            texts[at] = f"{texts[at][:end]}\n{shims.expand(function.text)}\n{rest}"
        whole = "\n".join(texts.values())
        for path, text in texts.items():
            for function in needed:
                new = function.name.replace("compat_", f"{self.name}_", 1)
                if re.search(rf"\b{new}\b", whole):  # the driver has a function of this name
                    new = f"__{new}"
                text = re.sub(rf"\b{function.name}\b", new, text)
            if found := re.search(r"\b(?:COMPAT_\w+|compat/\w+)", text):
                raise ResolveError(f"{path.name} still has {found[0]}")
            path.write_text(text)
