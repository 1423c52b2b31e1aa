# SPDX-License-Identifier: GPL-2.0
"""Features of the kernel: what switches each on, and how to see that it took effect.

The table is features.toml; a file of the user's adds to it (Documentation/features.rst).
"""

import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from iopath.base.errors import UsageError, did_you_mean
from iopath.rungs import tomlfile
from iopath.rungs.builtin import RUNGS, matching
from iopath.rungs.rung import Module, Rung

NOTHING = "nothing"  # the feature that changes nothing: it must cost nothing


@dataclass(frozen=True)
class Feature:
    """What is done to switch a feature on, and how to see that it took effect."""

    name: str
    about: str = ""
    rungs: tuple[str, ...] = ()  # those that it is measured on, if not the usual ones
    ops: tuple[str, ...] = ()
    cmdline: str = ""  # added to the kernel's command line
    devices: tuple[str, ...] = ()  # of QEMU that the machine has besides
    tools: tuple[tuple[str, str], ...] = ()  # packages and their programs that steps run
    files: tuple[tuple[str, Path], ...] = ()  # other files in the guest, by path there
    options: tuple[str, ...] = ()  # added to the program's
    swap: tuple[tuple[str, str], ...] = ()  # options of the program that are replaced
    modules: tuple[Module, ...] = ()  # loaded before those of the rung
    parameters: tuple[Module, ...] = ()  # of modules that the rung loads
    setup: tuple[str, ...] = ()  # steps before the run
    expect: tuple[str, ...] = ()  # files with the text that they must contain then: "PATH TEXT"
    ios: int = 0  # I/Os in a round, if not the usual number
    interrupts: int = 0  # that end an I/O
    shows: tuple[str, ...] = ()  # functions that the rung must execute; A|B is one of these
    needs: tuple[str, ...] = ()  # kernel options
    since: tuple[int, ...] = ()  # the first series of kernels that has it
    until: tuple[int, ...] = ()  # the last one
    tracer: bool = False  # it looks for a cause, and is not on in production
    layer: Rung | None = None  # a rung with a layer, instead of the rung without it

    def applied(self, rung: Rung, base: "Base") -> Rung:
        """*rung* with the base's steps and this feature. With a layer it is called *rung*, too, so
        that the two are compared."""
        if self.layer:
            layered = replace(self.layer, name=rung.name)
            return replace(self, layer=None)._applied(layered, base, _device(rung))
        return self._applied(rung, base, _device(rung))

    def _applied(self, rung: Rung, base: "Base", target: str) -> Rung:
        """*target* is that of the rung without a layer."""
        swapped = dict(self.swap)
        steps = (*base.setup, *self.setup, *(f"expect {text}" for text in self.expect))
        disk = target.removeprefix("/dev/")
        return replace(
            rung,
            options=(*(swapped.get(word, word) for word in rung.options), *self.options),
            modules=(*self.modules, *(self._parameters(module) for module in rung.modules)),
            begin=(
                *rung.begin,
                *(step.replace("{disk}", disk).replace("{target}", target) for step in steps),
            ),
            tools=(*rung.tools, *self.tools),
            files=(*rung.files, *self.files),
            needs=(*rung.needs, *self.needs),
            each_cpu=(),  # the steps are for one device
            round_ios=max(self.ios or base.ios, rung.batch),
            interrupts=self.interrupts,
            alone=True,
        )

    def _parameters(self, module: Module) -> Module:
        for own in self.parameters:
            if own.name == module.name:
                both = {**dict(module.parameters), **dict(own.parameters)}
                return Module(module.name, tuple(both.items()))
        return module

    def suits(self, device: Rung, base: "Base") -> bool:
        """Whether it can be switched on under a program on a *device*: it changes no option of
        ioloop, and nothing of another device."""
        if self.layer or self.options or self.swap or self.interrupts:
            return False
        steps = (*self.setup, *self.expect)
        of_disk = any("{disk}" in step or "{target}" in step for step in steps)
        if not (of_disk or self.parameters or self.devices):
            return True
        own = matching([*(self.rungs or base.rungs)], RUNGS)
        return _device(device) in [_device(rung) for rung in own]

    def fits(self, version: tuple[int, ...]) -> bool:
        """Whether kernels of this series have it."""
        return (not self.since or version >= self.since) and (
            not self.until or version <= self.until
        )

    def changed(self) -> Iterator[str]:
        """What it changes, by name: two features that change one thing exclude each other."""
        for word in self.cmdline.split():
            yield f"the kernel's option {word.partition('=')[0]}"
        for step in self.setup:
            words = step.split()
            if words[0].startswith("write") and not words[1].startswith("/cg/"):
                yield words[1]
        for word in (*self.options, *(old for old, _ in self.swap)):
            yield f"the option {word.partition('=')[0]}"
        if self.layer:
            yield "the layer"
        for module in self.parameters:
            for name, _ in module.parameters:
                yield f"the parameter {name} of {module.name}"


def _device(rung: Rung) -> str:
    """The path of the device of a rung: of a layer, that of the rung without it."""
    below = next((one for one in RUNGS if one.name == rung.base), rung)
    return below.target or ""


PLAIN = Feature(NOTHING, "the base, measured again with other seeds")


@dataclass(frozen=True)
class Base:
    """What features are compared with."""

    cmdline: str
    rungs: tuple[str, ...]
    ops: tuple[str, ...]
    ios: int  # I/Os in a round
    setup: tuple[str, ...] = ()


_BASE: tomlfile.Fields = {
    "cmdline": ("cmdline", "a string", tomlfile.is_(str)),
    "rungs": ("rungs", "a list of rungs", tomlfile.words),
    "ops": ("ops", 'a list of "read" and "write"', tomlfile.ops),
    "ios": ("ios", "a number, 1 or more", tomlfile.positive),
    "setup": ("setup", "a list of steps", tomlfile.strings),
}
_FEATURE: tomlfile.Fields = {
    "name": ("name", "a string", tomlfile.is_(str)),
    "about": ("about", "a string", tomlfile.is_(str)),
    "tracer": ("tracer", "true or false", tomlfile.is_(bool)),
    "rungs": _BASE["rungs"],
    "ops": _BASE["ops"],
    "cmdline": _BASE["cmdline"],
    "devices": ("devices", "a list of devices of QEMU", tomlfile.words),
    "options": ("options", "a list of words", tomlfile.words),
    "swap": ("swap", "a table of strings", tomlfile.pairs),
    "modules": ("modules", "a table of tables of parameters", tomlfile.modules),
    "parameters": ("parameters", "a table of tables of parameters", tomlfile.modules),
    "setup": _BASE["setup"],
    "expect": ("expect", 'a list of "PATH TEXT"', tomlfile.strings),
    "ios": ("ios", "a number, 1 or more", tomlfile.positive),
    "interrupts": ("interrupts", "a number, 1 or more", tomlfile.positive),
    "shows": ("shows", "a list of functions", tomlfile.words),
    "needs": ("needs", "a list of kernel options, CONFIG_...", tomlfile.options),
    "since": ("since", 'a series of kernels, e.g. "6.13"', tomlfile.version),
    "until": ("until", 'a series of kernels, e.g. "6.13"', tomlfile.version),
}


def load(path: Path | None = None) -> tuple[Base, list[Feature]]:
    """The base and the features of iopath's table, and those of the file *path*, which may have a
    base of its own."""
    base, features = _load(Path(__file__).parent / "features.toml")
    assert base
    if path:
        own, added = _load(path)
        base = own or base
        features += added
    features += [
        Feature(rung.name, rung.about, (rung.base,), rung.can, ios=rung.round_ios or 0, layer=rung)
        for rung in RUNGS
        if rung.base
    ]
    distinct(features, str(path))
    return base, features


def distinct(features: Sequence[Feature], source: str) -> None:
    """Raise UsageError if two features have one name; *source* is where the last come from."""
    for feature in features:
        if [other.name for other in features].count(feature.name) > 1 or feature.name == NOTHING:
            raise UsageError(
                f"{source}: feature {feature.name}: the name is in use: choose another"
            )


def _load(path: Path) -> tuple[Base | None, list[Feature]]:
    tables = tomlfile.load(path, {"feature": _FEATURE})
    base = tables.pop("base", None)
    features = [Feature(**{"about": own["name"], **own}) for own in tables.pop("feature")]
    for key in tables:
        raise UsageError(f"{path}: unknown key {key!r}: features are tables [[feature]]")
    if base is None:
        return None, features
    if not isinstance(base, dict) or {"cmdline", "rungs", "ops", "ios"} - set(base):
        raise UsageError(f"{path}: base must be a table with cmdline, rungs, ops and ios")
    return Base(**tomlfile.values("base", base, _BASE, path)), features


def together(features: Sequence[Feature]) -> Feature:
    """One feature that is several. Raises UsageError if two exclude each other."""
    seen: dict[str, str] = {}
    for one in features:
        for what in one.changed():
            if seen.setdefault(what, one.name) != one.name:
                raise UsageError(f"{seen[what]} and {one.name} exclude each other: both set {what}")
    steps = dict.fromkeys(step for one in features for step in one.setup)

    def all_of(name: str) -> tuple[object, ...]:
        return tuple(dict.fromkeys(part for one in features for part in getattr(one, name)))

    return Feature(
        name="+".join(one.name for one in features),
        about=", ".join(one.about for one in features),
        tracer=any(one.tracer for one in features),
        rungs=next((one.rungs for one in features if one.layer), features[0].rungs),
        ops=features[0].ops,
        cmdline=" ".join(filter(None, (one.cmdline for one in features))),
        setup=tuple(steps),
        since=max(one.since for one in features),
        ios=min((one.ios for one in features if one.ios), default=0),
        until=min((one.until for one in features if one.until), default=()),
        interrupts=max(one.interrupts for one in features),
        layer=next((one.layer for one in features if one.layer), None),
        **{
            name: all_of(name)
            for name in (
                "devices", "tools", "files", "options", "swap", "modules", "parameters", "expect",
                "shows", "needs",
            )
        },
    )  # fmt: skip


def choose(features: Sequence[Feature], names: Sequence[str]) -> list[Feature]:
    """The features whose names match any of *names* (shell wildcards); all without a name."""
    for name in names:
        if not any(fnmatch.fnmatchcase(one.name, name) for one in features):
            known = [one.name for one in features]
            several = any(one.startswith(f"{name}.") for one in known)
            near = f": did you mean '{name}.*'?" if several else did_you_mean(name, known)
            raise UsageError(f"unknown feature {name!r}{near or ' (see iopath features --list)'}")
    return [
        one
        for one in features
        if not names or any(fnmatch.fnmatchcase(one.name, name) for name in names)
    ]
