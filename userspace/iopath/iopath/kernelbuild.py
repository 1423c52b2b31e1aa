# SPDX-License-Identifier: GPL-2.0
"""Build kernels from the commits of a git repository.

A kernel is built in a sealed root file system of a Debian suite, at places that are the same
everywhere, and nothing in it says when, where or by whom it was built. So what comes out depends on
the commit's tree, the configuration and the suite's packages alone, and it is kept under the digest
of these. A work tree and a build folder stay in the cache: the next commit takes the time of what
it changes.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iopath import build, gitrepo, process
from iopath.apt import Apt
from iopath.arch import ARCHES, X86_64, Arch
from iopath.build import Built, Entry, Step
from iopath.cache import Cache, digest_file, entry_name
from iopath.errors import IopathError, UsageError
from iopath.gitrepo import Repository
from iopath.kernels import NEEDED

SUITE = "trixie"  # the default
MINIMAL = "minimal"  # the default configuration
MINIMAL_CONFIG = Path(__file__).with_name("minimal.config")

# What a kernel is built with, besides build's tools.
_TOOLS = (
    "gcc", "libc6-dev", "diffutils", "flex", "bison", "bc", "libelf-dev", "libssl-dev", "ccache",
    "cpio", "gzip", "xz-utils", "zstd", "kmod", "rsync",
)  # fmt: skip

_CCACHE_SIZE = "5G"

# What of a tree a configuration is made from: Kconfig runs scripts that try the compiler.
_CONFIGURED_BY = (
    ":(glob)**/Kconfig*", ":(glob)**/configs/**", ":(glob)arch/*/Makefile*", "Makefile", "scripts",
)  # fmt: skip

# Raised when this file would build another kernel from the same inputs.
_RECIPE = 1

_OPTION = re.compile(r"(?:CONFIG_)?(\w+)=(.+)")


@dataclass(frozen=True)
class Recipe:
    """How kernels are built: with the compiler of a *suite*, from the configuration *base* (the
    text of a .config; None: make tinyconfig), with the *fragment* merged over it. *options* are
    those of the fragment that the result must have."""

    suite: str
    base: str | None
    fragment: str
    options: tuple[str, ...]
    arch: Arch = X86_64

    def inputs(self) -> dict[str, Any]:
        """What it is known by: the fragment tells the architectures apart."""
        return {name: value for name, value in vars(self).items() if name != "arch"}

    @classmethod
    def default(cls) -> "Recipe":
        return recipe(SUITE, None, ())


@dataclass(frozen=True)
class GitKernel:
    """A kernel that is built from a commit."""

    repository: Repository
    commit: str
    recipe: Recipe

    @property
    def arch(self) -> Arch:
        return self.recipe.arch

    @property
    def short(self) -> str:
        return self.commit[:12]


def recipe(suite: str, base: str | None, options: Sequence[str], arch: Arch = X86_64) -> Recipe:
    """The recipe for *base* (the text of a configuration, or None for the minimal one) with
    *options* ("FOO=y")."""
    for other in ARCHES:
        if base and other != arch and f"CONFIG_{other.option}=y" in base.splitlines():
            raise UsageError(
                f"the configuration is one of {other.debian}: it must be one of {arch.debian}"
            )
    needed = [f"CONFIG_{name}=y" for name in (arch.option, *arch.options, *NEEDED)]
    lines = []
    for option in options:
        match = _OPTION.fullmatch(option)
        if not match:
            raise UsageError(f"invalid option '{option}': must be like FOO=y or FOO=n")
        name, value = match.groups()
        lines.append(f"# CONFIG_{name} is not set" if value == "n" else f"CONFIG_{name}={value}")
    fragment = _minimal(arch) if base is None else _essential(needed, arch)
    return Recipe(suite, base, "\n".join([fragment, *lines, ""]), (*needed, *lines), arch)


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
    """The files with the minimal configuration, of which the later ones count."""
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


def _variables(arch: Arch) -> tuple[str, ...]:
    """What make is told: the same inputs make the same kernel to the last bit."""
    prefix = "" if arch == X86_64 else f"{arch.triplet}-"
    return (
        f"ARCH={arch.source}", f"CC=ccache {prefix}gcc", "HOSTCC=ccache gcc", "LOCALVERSION=",
        "KBUILD_BUILD_TIMESTAMP=2026-01-01", "KBUILD_BUILD_HOST=iopath",
        "KBUILD_BUILD_USER=iopath", "KBUILD_BUILD_VERSION=1",
        *([f"CROSS_COMPILE={prefix}"] if prefix else []),
    )  # fmt: skip


def compiler(kernel: GitKernel, cache: Cache, apt: Apt, step: Step) -> Path:
    """The root file system in which *kernel* is built."""
    step("preparing the compiler", 0.0)
    arch = kernel.arch
    tools = (*_TOOLS, *(() if arch == X86_64 else (f"gcc-{arch.triplet}",)))
    return build.root("compiler", tools, {"for": tools}, kernel.recipe.suite, cache, apt, step)


def entries(kernel: GitKernel, at: Path) -> tuple[Entry, Entry]:
    """The cache entries that a prepared kernel consists of, if it is built in the root file system
    *at*: its image, and our modules."""
    inputs: dict[str, object] = {
        "tree": kernel.repository.git("rev-parse", f"{kernel.commit}^{{tree}}"),
        "base": kernel.recipe.base,
        "fragment": kernel.recipe.fragment,
        "packages": digest_file(at / "packages"),
        "variables": _variables(kernel.arch),
        "modules": build.module_parts(kernel.arch),
        "recipe": _RECIPE,
    }
    return ("kernel", inputs), build.modules_entry({"kernel": entry_name(inputs)})


def build_kernel(kernel: GitKernel, cache: Cache, apt: Apt, step: Step) -> Built:
    """The kernel, with the project's modules. Raises IopathError if it does not build."""
    recipe = kernel.recipe
    at = compiler(kernel, cache, apt, step)
    for_image, for_modules = entries(kernel, at)
    workspace = {
        "repository": gitrepo.key(kernel.repository),
        "suite": recipe.suite,
        "base": recipe.base,
        "fragment": recipe.fragment,
    }

    def compile_in(use: Callable[[_Workspace], None]) -> None:
        with (
            cache.workspace("workspace", workspace) as folder,
            cache.workspace("ccache", {"size": _CCACHE_SIZE}, shared=True) as ccache,
        ):
            place = _Workspace(folder, at, ccache, kernel)
            step(f"building {kernel.short}", 0.1)
            place.build(digest_file(at / "packages"))
            use(place)

    def make_image(folder: Path) -> None:
        compile_in(lambda place: place.keep(folder))

    image = cache.entry(*for_image, make_image)
    release = (image / "release").read_text()

    def make_modules(folder: Path) -> None:
        def use(place: _Workspace) -> None:
            made = place.build_folder / kernel.arch.image
            if digest_file(made) != digest_file(image / "vmlinuz"):
                raise IopathError(
                    f"{kernel.short}: built twice, the kernel is not the same: {image} differs from"
                    f" {place.build_folder}"
                )
            words = ["--bind", str(folder / "src"), "/modules"]
            build.make_modules(folder, place.make(*words), "/modules", release)

        compile_in(use)

    modules = cache.entry(*for_modules, make_modules)
    origin = f"git {kernel.short} {kernel.repository.subject(kernel.commit)}"
    return build.built(release, "", origin, image, modules, arch=kernel.arch)


def keeps_configuration(repository: Repository, before: str, after: str) -> bool:
    """Whether two commits differ in nothing that a configuration is made from."""
    words = ("diff", "--quiet", before, after, "--", *_CONFIGURED_BY)
    return gitrepo.run(repository.path, *words).returncode == 0


class _Workspace:
    """A work tree of a repository and a folder in which it is built, both kept from one commit to
    the next."""

    def __init__(self, folder: Path, root: Path, ccache: Path, kernel: GitKernel) -> None:
        self._folder = folder
        self._root = root
        self._ccache = ccache
        self._kernel = kernel
        self._log = folder / "build.log"
        self.build_folder = folder / "build"

    def build(self, packages: str) -> None:
        """Check the commit out, configure it and build it, each only if the folder does not hold it
        yet. *packages* identifies the compiler."""
        note = self._folder / "holds"
        before = json.loads(note.read_text()) if note.exists() else {}
        now = {"commit": self._kernel.commit, "packages": packages, "recipe": _RECIPE}
        if before == {**now, "configured": True, "built": True}:
            return
        if not before:  # a build that was killed may have left half a file
            shutil.rmtree(self.build_folder, ignore_errors=True)
        note.unlink(missing_ok=True)
        for path in (self._folder / "source", self.build_folder, self._ccache):
            path.mkdir(parents=True, exist_ok=True)
        self._log.write_text("")
        configured = built = False
        try:
            self._check_out()
            if not self._is_configured(before, now):
                self._configure()
            configured = True
            jobs = f"-j{os.cpu_count() or 1}"
            self._run([*self.make(), jobs, self._kernel.arch.target, "modules"], "does not build")
            built = True
        except IopathError:
            note.write_text(json.dumps({**now, "configured": configured, "built": built}))
            raise
        note.write_text(json.dumps({**now, "configured": configured, "built": built}))

    def _is_configured(self, before: Mapping[str, object], now: Mapping[str, object]) -> bool:
        """Whether the folder has the configuration of this commit: that of the one *before*, if
        they differ in nothing that a configuration is made from."""
        if not before or not before["configured"]:
            return False
        if any(before[key] != now[key] for key in ("packages", "recipe")):
            return False
        return keeps_configuration(
            self._kernel.repository, str(before["commit"]), self._kernel.commit
        )

    def make(self, *words: str) -> list[str | Path]:
        """The beginning of a command that runs make in the root file system; *words* are options of
        bwrap."""
        variables = _variables(self._kernel.arch)
        return [*self._inside(*words), "make", "-s", "-C", "/src", "O=/build", *variables]

    def _inside(self, *words: str) -> list[str | Path]:
        """The beginning of a command that runs in the root file system."""
        return [
            *build.sandbox(
                self._root,
                "--ro-bind", self._folder / "source", "/src",
                "--bind", self.build_folder, "/build",
                "--bind", self._ccache, "/ccache",
                *words,
            ),
            "--setenv", "HOME", "/tmp", "--setenv", "CCACHE_DIR", "/ccache",
            "--setenv", "CCACHE_MAXSIZE", _CCACHE_SIZE,
        ]  # fmt: skip

    def keep(self, folder: Path) -> None:
        """Copy what a guest needs of the kernel to *folder*."""
        arch = self._kernel.arch
        shutil.copyfile(self.build_folder / arch.image, folder / "vmlinuz")
        shutil.copyfile(self.build_folder / ".config", folder / "config")
        release = (self.build_folder / "include/config/kernel.release").read_text().strip()
        (folder / "release").write_text(release)
        build.keep_own_modules(self.build_folder, folder, arch)

    def _check_out(self) -> None:
        git = self._folder / "git"
        gitrepo.share_objects(self._kernel.repository, git)
        gitrepo.git(git, "config", "core.bare", "false")
        gitrepo.git(
            git, f"--work-tree={self._folder}/source", "--git-dir=.",
            "checkout", "--quiet", "--force", "--detach", self._kernel.commit,
        )  # fmt: skip

    def _configure(self) -> None:
        recipe, config = self._kernel.recipe, self.build_folder / ".config"
        fragment = self.build_folder / "iopath.config"
        fragment.write_text(recipe.fragment)
        if recipe.base is None:
            self._run([*self.make(), "tinyconfig"], "cannot be configured")
        else:
            config.write_text(recipe.base)
        script = (
            "cd /build && KCONFIG_CONFIG=/build/.config"
            " /src/scripts/kconfig/merge_config.sh -m -O /build .config iopath.config"
        )
        self._run([*self._inside(), "bash", "-c", script], "cannot be configured")
        self._run([*self.make(), "olddefconfig"], "cannot be configured")
        found = config.read_text().splitlines()
        for option in recipe.options:
            if option not in found and not (option.startswith("#") and _unset(option, found)):
                raise IopathError(
                    f"{self._kernel.short}: the option {option} did not take effect: the kernel"
                    " does not have it, or it needs others"
                )

    def _run(self, command: list[str | Path], what: str) -> None:
        if process.run(command, output=self._log):
            raise IopathError(f"{self._kernel.short} {what}: {build.complaint(self._log)}")


def _unset(option: str, found: Sequence[str]) -> bool:
    """Whether "# CONFIG_FOO is not set" holds."""
    name = option.split()[1]
    return not any(line.startswith(f"{name}=") for line in found)
