# SPDX-License-Identifier: GPL-2.0
"""How kernels of a git repository are configured."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopath.base.arch import ARCHES, X86_64, Arch
from iopath.base.errors import UsageError
from iopath.kernels.built import Built
from iopath.kernels.kernel import NEEDED
from iopath.results.kernelinfo import is_probe

SUITE = "trixie"  # the default
MINIMAL = "minimal"  # the default configuration
MINIMAL_CONFIG = Path(__file__).with_name("minimal.config")

LLVM = "LLVM=1"  # among the options: build with Clang and lld, as make of a kernel takes it

_OPTION = re.compile(r"(?:CONFIG_)?(\w+)=(.+)")
_LINE = re.compile(r"(?:# )?CONFIG_(\w+)(?:=(.+)| is not set)")
_TARGET = re.compile(r"\w*config")  # of make, such as defconfig
_MAKE = "make "


@dataclass(frozen=True)
class Recipe:
    """How kernels are built: with the compiler of a *suite*, from the configuration *base* (the
    text of a .config, or "make TARGET"; None: make tinyconfig), with the *fragment* merged over it.
    *options* are those of the fragment that the result must have, *asked* those that a user asked
    for. With *llvm* the compiler is Clang."""

    suite: str
    base: str | None
    fragment: str
    options: tuple[str, ...]
    arch: Arch = X86_64
    asked: tuple[str, ...] = ()
    llvm: bool = False

    def inputs(self) -> dict[str, object]:
        """What identifies it: the fragment shows the architecture, and what was asked for."""
        left_out = ("arch", "asked", *(() if self.llvm else ("llvm",)))
        return {name: value for name, value in vars(self).items() if name not in left_out}

    @property
    def target(self) -> str:
        """The target of make that configures a kernel; empty if *base* is the configuration."""
        if self.base is None:
            return "tinyconfig"
        return self.base.removeprefix(_MAKE) if self.base.startswith(_MAKE) else ""

    def dropped(self, config: str) -> list[str]:
        """The options that *base* switches on and a kernel's *config* does not have, without what
        describes the tools; a fragment may replace them."""
        if self.target or self.base is None:
            return []
        names = [dict(map(_split, text.splitlines())) for text in (self.fragment, config)]
        return [
            f"CONFIG_{name}={value}"
            for name, value in map(_split, self.base.splitlines())
            if value not in ("", "n") and name not in names[0] and name not in names[1]
            if not is_probe(name)
        ]

    def sets(self, option: str) -> bool:
        """Whether it says *option* ("CONFIG_FOO=y")."""
        return option in f"{self.base or ''}\n{self.fragment}".splitlines()

    @classmethod
    def default(cls) -> "Recipe":
        return recipe(SUITE, None, ())


def recipe(suite: str, base: str | None, options: Sequence[str], arch: Arch = X86_64) -> Recipe:
    """The recipe for *base* (the text of a configuration, or None for the minimal one) with
    *options* ("FOO=y", or LLVM)."""
    for other in ARCHES:
        if base and other != arch and f"CONFIG_{other.option}=y" in base.splitlines():
            raise UsageError(
                f"the configuration is one of {other.debian}: it must be one of {arch.debian}"
            )
    needed = [f"CONFIG_{name}=y" for name in (arch.option, *arch.options, *NEEDED)]
    lines = []
    llvm = LLVM in options
    for option in options:
        if option == LLVM:
            continue
        match = _OPTION.fullmatch(option)
        if not match:
            raise UsageError(f"invalid option '{option}': must be like FOO=y, FOO=n or {LLVM}")
        name, value = match.groups()
        lines.append(f"# CONFIG_{name} is not set" if value == "n" else f"CONFIG_{name}={value}")
    fragment = _minimal(arch) if base is None else _essential(needed, arch)
    made_by = ("CONFIG_CC_IS_CLANG=y",) if llvm else ()
    return Recipe(
        suite, base, "\n".join([fragment, *lines, ""]), (*needed, *made_by, *lines), arch,
        tuple(options), llvm,
    )  # fmt: skip


def _split(line: str) -> tuple[str, str]:
    """The name of an option, without CONFIG_, and its value in a line of a configuration."""
    match = _LINE.fullmatch(line)
    return (match[1], match[2] or "n") if match else ("", "")


def configuration(name: str, build: Callable[[str], Built]) -> tuple[str | None, list[str]]:
    """A configuration and the options of the files that are merged over it ("NAME+FILE..."). NAME
    is the minimal one (None), a Debian kernel's, cut down, which *build* gives, a target of make,
    or a file."""
    name, *merged = name.split("+")
    options = [
        f"{option}={value}"
        for path in merged
        for option, value in map(_split, _read(path).splitlines())
        if option
    ]
    if name == MINIMAL:
        return None, options
    if name.startswith("debian:"):
        return cut_down(build(name).config.read_text()), options
    if _TARGET.fullmatch(name) and not Path(name).exists():
        return f"{_MAKE}{name}", options
    return _read(name), options


def _read(name: str) -> str:
    try:
        return Path(name).read_text()
    except OSError as error:
        raise UsageError(f"cannot read the configuration {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the configuration {name} is not text: it must be a .config") from error


_LEFT_OUT = re.compile(r"CONFIG_(DEBUG_INFO|SYSTEM_\w+_KEYS|MODULE_SIG|SECURITY_LOCKDOWN)")


def cut_down(config: str) -> str:
    """The configuration of a distribution without what takes long and no guest needs: modules,
    debug information and signatures."""
    kept = []
    for line in config.splitlines():
        name = line.partition("=")[0]
        if line.endswith("=m"):
            kept.append(f"# {name} is not set")
        elif not _LEFT_OUT.match(name):
            kept.append(line)
    return "\n".join(kept) + "\n"


def minimal_configs(arch: Arch) -> list[Path]:
    """The files with the minimal configuration; later ones override earlier ones."""
    own = MINIMAL_CONFIG.with_name(f"minimal-{arch.debian}.config")
    return [MINIMAL_CONFIG, *([own] if own.is_file() else [])]


def _minimal(arch: Arch) -> str:
    return "".join(path.read_text() for path in minimal_configs(arch))


def _essential(needed: Sequence[str], arch: Arch) -> str:
    """What a configuration that is not ours must have for a guest and the project's modules."""
    return "\n".join(
        [
            *needed, "CONFIG_BLK_DEV=y", "CONFIG_AIO=y", "CONFIG_IO_URING=y",
            "CONFIG_CONFIGFS_FS=y", "CONFIG_MODULE_UNLOAD=y", "CONFIG_KALLSYMS_ALL=y",
            *(f"CONFIG_{name}=y" for name in arch.console), "CONFIG_DEBUG_INFO_NONE=y",
            "# CONFIG_MODULE_SIG is not set", "# CONFIG_GCC_PLUGINS is not set",
        ]
    )  # fmt: skip
