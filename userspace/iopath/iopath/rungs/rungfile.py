# SPDX-License-Identifier: GPL-2.0
"""Read rungs from a TOML file (Documentation/rungs.rst, "Rungs of your own").

A table [[rung]] is a rung, or a family of rungs. A table [part.NAME] has keys that several share.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from iopath.base.errors import UsageError
from iopath.rungs import tomlfile
from iopath.rungs.rung import Rung

_REPLACED = ("can", "since")  # fields whose tuples are one value: a later one replaces the earlier


class RungFile:
    """The *tables* of a file, which are of KINDS. Its rungs may use the parts of *base*, another
    file, besides its own."""

    def __init__(self, path: Path, tables: tomlfile.Values, base: "RungFile | None" = None) -> None:
        self._path = path
        self.tables = tables  # those that are still to be read
        self._parts: dict[str, tomlfile.Values] = dict(base._parts) if base else {}
        for name, own in self.tables.pop("part").items():
            if name in self._parts:
                raise self._error(f"part {name}", "the name is in use: choose another")
            self._parts[name] = self._joined(f"part {name}", own)

    def rungs(self, kind: str = "rung", taken: Collection[str] = ()) -> list[Rung]:
        """The rungs of the tables [[*kind*]]. Their names must not be among those *taken*."""
        rungs = [rung for own in self.tables.pop(kind) for rung in self._rungs(kind, own)]
        if not rungs:
            raise UsageError(f"{self._path}: no {kind}: each must be a table [[{kind}]]")
        names = [*taken, *(rung.name for rung in rungs)]
        for rung in rungs:
            if names.count(rung.name) > 1:
                raise self._error(f"{kind} {rung.name}", "the name is in use: choose another")
        return rungs

    def _rungs(self, kind: str, own: tomlfile.Values) -> Iterator[Rung]:
        """The rungs of a table: one, or one for each of the parts that its key "each" names."""
        for part in own.pop("each", [""]):
            what = f"{kind} {own['name'].replace('*', part)}"
            values = self._joined(what, own, *filter(None, [part]))
            about = self._parts[part].get("about", part) if part else ""
            for field, text in (("name", part), ("base", part), ("about", about)):
                if field in values:
                    values[field] = values[field].replace("*", text)
            yield self._rung(what, values)

    def _joined(self, what: str, own: tomlfile.Values, *more: str) -> tomlfile.Values:
        """The values of a table and of its parts, and of *more* parts. Lists are joined, in the
        order of the parts; the table's own are last. Other values replace earlier ones."""
        found: tomlfile.Values = {}
        names = (*own.get("parts", ()), *more)
        for name in names:
            if name not in self._parts:
                raise self._error(what, f"unknown part {name!r}: define [part.{name}] before it")
        for values in (*(self._parts[name] for name in names), own):
            for field, value in values.items():
                joins = isinstance(value, tuple) and field not in _REPLACED
                found[field] = (*found.get(field, ()), *value) if joins else value
        found.pop("parts", None)
        return found

    def _rung(self, what: str, values: tomlfile.Values) -> Rung:
        if "program" in values:
            values["program"] = _program(self._path.parent / values["program"], what)
        rung = Rung(**{"about": values["name"], **values})
        if "*" in rung.name:
            raise self._error(what, "a name has * only in a table with each")
        if "can" in values and not rung.target:
            raise self._error(what, "ops needs a target")
        for word in rung.options if rung.program is None else ():
            if word.startswith("--numjobs") and word != "--numjobs=1":
                raise self._error(what, f"{word}: a rung has one job: give --cpus for several")
        modules = [module.name for module in rung.modules]
        for module in modules:
            if modules.count(module) > 1:
                raise self._error(what, f"{module} has parameters twice: give them in one table")
        if rung.has_target_each_cpu and not _can_be_many(rung):
            text = "each_cpu needs a target with a number at its end, and module parameters"
            raise self._error(what, f"{text} that are numbers")
        return rung

    def _error(self, what: str, text: str) -> UsageError:
        return UsageError(f"{self._path}: {what}: {text}")


def _can_be_many(rung: Rung) -> bool:
    """Whether the parameters of Rung.each_cpu can be multiplied, and the target's number."""
    parameters = dict(rung.modules[0].parameters) if rung.modules else {}
    numbers = all(parameters.get(name, "").isdecimal() for name in rung.each_cpu)
    return numbers and (rung.target or "")[-1:].isdecimal()


def _program(path: Path, what: str) -> Path:
    try:
        with path.open("rb") as file:
            is_elf = file.read(4) == b"\x7fELF"
    except OSError as error:
        raise UsageError(f"{what}: {path}: {error.strerror}") from error
    if not is_elf:
        raise UsageError(f"{what}: {path} is not a program: build it with gcc -static")
    return path.absolute()


_PART: tomlfile.Fields = {
    "about": ("about", "a string", tomlfile.is_(str)),
    "parts": ("parts", "a list of the names of parts", tomlfile.words),
    "program": ("program", "the path of a static program", tomlfile.is_(str)),
    "options": ("options", "a list of words", tomlfile.words),
    "ios": ("round_ios", "a number, 1 or more", tomlfile.positive),
    "batch": ("batch", "a number, 1 or more", tomlfile.positive),
    "target": ("target", "a path", tomlfile.is_(str)),
    "ops": ("can", 'a list of "read" and "write"', tomlfile.ops),
    "bs": ("block_size", "a multiple of 512", tomlfile.sectors),
    "modules": ("modules", "a table of tables of parameters", tomlfile.modules),
    "each_cpu": ("each_cpu", "a list of parameters", tomlfile.words),
    "devices": (
        "devices",
        'a list of tables of properties, each with a "driver"',
        tomlfile.devices,
    ),
    "needs": ("needs", "a list of kernel options, CONFIG_...", tomlfile.options),
    "since": ("since", 'a series of kernels, e.g. "6.13"', tomlfile.version),
    "tools": ("tools", "a table of packages and their programs", tomlfile.pairs),
    "start": ("start", "a list of steps", tomlfile.strings),
    "begin": ("begin", "a list of steps", tomlfile.strings),
    "setup": ("setup", "a list of steps", tomlfile.strings),
    "cleanup": ("cleanup", "a list of steps", tomlfile.strings),
    "cpus": ("cpus", "a string", tomlfile.is_(str)),
    "own_threads": ("own_threads", "true or false", tomlfile.is_(bool)),
    "base": ("base", "the name of a rung", tomlfile.is_(str)),
    "alone": ("alone", "true or false", tomlfile.is_(bool)),
}
_RUNG: tomlfile.Fields = {
    "name": ("name", "a string", tomlfile.is_(str)),
    "each": ("each", "a list of the names of parts", tomlfile.words),
    **_PART,
}
# Of tomlfile.load().
KINDS = (dict.fromkeys(("rung", "device", "mount"), _RUNG), {"part": _PART})
