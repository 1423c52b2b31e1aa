# SPDX-License-Identifier: GPL-2.0
"""git:PATH@REVISION[FOO=y,...]: kernels that are built from the commits of a git repository.

A kernel is built in a sealed root file system of a Debian suite, at fixed paths, with a fixed time,
user and host. So it only depends on the commit's tree, the configuration and the suite's packages,
and the cache keeps it under the digest of these. A work tree and a build folder stay in the cache:
the next commit only takes the time of the files that it changes.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from iopath.base import process
from iopath.base.arch import X86_64, Arch
from iopath.base.cache import Cache, digest_file, digest_of, entry_name
from iopath.base.errors import IopathError, UsageError
from iopath.kernels import gitrepo, kbuild, own_modules
from iopath.kernels.apt import SUITES, Apt
from iopath.kernels.built import Built, Entry, Step, built
from iopath.kernels.finder import Finder
from iopath.kernels.gitrepo import Repository, open_repository
from iopath.kernels.kernel import Kernel, Parts
from iopath.kernels.recipe import Recipe, configuration, recipe
from iopath.kernels.root import root, sandbox
from iopath.kernels.watching import State, Watching

NAMES = ("git:PATH@REVISION",)
HERE = "git:.@{}"  # a range of the repository in this folder

# Packages that build a kernel, besides the tools of every root.
_TOOLS = (
    "gcc", "libc6-dev", "diffutils", "flex", "bison", "bc", "libelf-dev", "libssl-dev", "ccache",
    "cpio", "gzip", "xz-utils", "zstd", "kmod", "rsync",
)  # fmt: skip

# With LLVM=1 these are used instead of gcc, whose libraries clang needs.
_LLVM = ("clang", "lld", "llvm")

# Packages that build the parts of a kernel that are written in Rust.
_RUST = ("rustc", "rust-src", "bindgen", "rustfmt")

# The same inputs make the same kernel to the last bit.
_SAME = (
    "LOCALVERSION=", "KBUILD_BUILD_TIMESTAMP=2026-01-01", "KBUILD_BUILD_HOST=iopath",
    "KBUILD_BUILD_USER=iopath", "KBUILD_BUILD_VERSION=1",
)  # fmt: skip

_CCACHE_SIZE = "5G"

_NAMED = 5  # options in a warning
_OBJECTS = "objects"  # the file of a workspace with the number of objects that it has built
_LOOK = 5.0  # seconds between two counts of objects

_FAILED = "error"  # the file that says why a commit does not build
_REFUSED = re.compile(r":\d+:\d+: (?:fatal )?error: ")  # what compilers say of a source

# The files of a tree that a configuration depends on: Kconfig runs scripts that try the compiler.
_CONFIGURED_BY = (
    ":(glob)**/Kconfig*", ":(glob)**/configs/**", ":(glob)arch/*/Makefile*", "Makefile", "scripts",
)  # fmt: skip

# Increase this if this file builds another kernel than before from the same inputs.
_RECIPE = 1


@dataclass(frozen=True)
class GitKernel(Kernel):
    """A kernel that is built from a commit."""

    repository: Repository
    commit: str
    recipe: Recipe

    @property
    def arch(self) -> Arch:
        return self.recipe.arch

    @property
    def title(self) -> str:
        return self.commit[:12]

    @property
    def subject(self) -> str:
        return self.repository.subject(self.commit)

    @property
    def place(self) -> str:
        return self.repository.place

    def prepare(self, cache: Cache, apt: Apt, step: Step) -> Built:
        """Raises IopathError if it does not build."""
        recipe = self.recipe
        at = compiler(self, cache, apt, step)
        for_image, for_modules = entries(self, at)
        workspace = {
            "repository": gitrepo.key(self.repository),
            "suite": recipe.suite,
            "base": recipe.base,
            "fragment": recipe.fragment,
            **({"llvm": True} if recipe.llvm else {}),
        }

        def compile_in(use: Callable[[_Workspace], None]) -> None:
            with (
                cache.workspace(
                    "workspace",
                    workspace,
                    waits=lambda: step(
                        "waiting for another iopath that builds in this workspace", 0.0
                    ),
                ) as folder,
                cache.workspace("ccache", {"size": _CCACHE_SIZE}, shared=True) as ccache,
            ):
                place = _Workspace(folder, at, ccache, self, step)
                place.build(digest_file(at / "packages"))
                use(place)

        def waits() -> None:
            step("waiting for another iopath that builds this kernel", 0.0)

        def make_image(folder: Path) -> None:
            compile_in(lambda place: place.keep(folder))

        failed = cache.path("failed", for_image[1]) / _FAILED
        if failed.exists():
            raise DoesNotBuild(f"{self.title} {failed.read_text()}")
        try:
            image = cache.entry(*for_image, make_image, waits)
        except DoesNotBuild as error:
            text = str(error).removeprefix(f"{self.title} ")
            cache.entry("failed", for_image[1], lambda folder: _remember(folder, text))
            raise
        release = (image / "release").read_text()

        def make_modules(folder: Path) -> None:
            def use(place: _Workspace) -> None:
                made = place.build_folder / self.arch.image
                if digest_file(made) != digest_file(image / "vmlinuz"):
                    raise IopathError(
                        f"{self.title}: two builds of the kernel are not the same: {image}"
                        f" differs from {place.build_folder}"
                    )
                step("building the modules", 0.9)
                words = ["--bind", str(folder / "src"), "/modules"]
                kbuild.make_modules(folder, place.make(*words), "/modules", release)

            compile_in(use)

        modules = cache.entry(*for_modules, make_modules, waits)
        origin = f"git {self.title} {self.subject}"
        found = built(release, "", origin, image, modules, arch=self.arch)
        if not (dropped := recipe.dropped(found.config.read_text())):
            return found
        more = f" and {len(dropped) - _NAMED} more" if len(dropped) > _NAMED else ""
        text = f"{self.title}: it lacks {', '.join(dropped[:_NAMED])}{more} of the configuration"
        return replace(found, notes=(text,))

    def debug_info(self, built: Built, cache: Cache, apt: Apt, step: Step) -> Path:
        raise UsageError(
            "--inline: kernels of a git repository are built without debug information"
        )

    def parts(self, cache: Cache, apt: Apt, step: Step) -> Parts:
        return entries(self, compiler(self, cache, apt, step)), {}

    def here(self, cache: Cache) -> "GitKernel":
        repository = open_repository(self.repository.place, cache)
        repository.commit(self.commit)
        return replace(self, repository=repository)


class DoesNotBuild(IopathError):
    """The compiler refuses the source of a commit, now and each further time."""


def _remember(folder: Path, text: str) -> None:
    """Keep the reason why a commit does not build, without the log, which is removed."""
    (folder / _FAILED).write_text(kbuild.without_log(text))


def repository(finder: Finder, place: str) -> Repository:
    """The repository at a path or an address."""
    return finder.once(("git", place), lambda: open_repository(place, finder.cache))


def commit(spec: str, finder: Finder) -> tuple[Repository, str]:
    place, revision = gitrepo.split(spec)
    return repository(finder, place), revision


def find(spec: str, finder: Finder) -> GitKernel:
    place, revision = gitrepo.split(spec)
    if ".." in revision:
        raise UsageError(f"git:{spec}: a range is for measure, compare and series")
    found = repository(finder, place)
    commit = found.commit(revision)
    _warn_of_changes(spec, found, revision, finder)
    return GitKernel(found, commit, _recipe(spec, finder))


def _recipe(spec: str, finder: Finder) -> Recipe:
    """How a kernel is built: as all others, with the settings behind its revision."""
    settings = gitrepo.SETTINGS.search(spec)
    usual = finder.recipe
    if not settings:
        return usual
    options, base, suite = list(usual.asked), usual.base, usual.suite
    for word in filter(None, settings[1].split(",")):
        if word.startswith("config="):
            base, own = configuration(
                word.removeprefix("config="),
                lambda name: finder.find(name).prepare(
                    finder.cache, finder.apt, lambda what, part: None
                ),
            )
            options += own
        elif word.startswith("suite="):
            suite = word.removeprefix("suite=")
            if suite not in SUITES:
                raise UsageError(f"{word}: must be one of {', '.join(SUITES)}")
        else:
            options.append(word)
    return recipe(suite, base, options, usual.arch)


def _warn_of_changes(spec: str, found: Repository, revision: str, finder: Finder) -> None:
    """Say that the changed files of a work tree are not measured with the commit that it holds."""
    if not found.is_checked_out(revision) or not (changed := found.changed()):
        return
    without = "1 changed file" if changed == 1 else f"{changed} changed files"
    text = f"git:{spec}: measuring {revision}, without {without}: commit to measure"
    text += " it" if changed == 1 else " them"
    finder.once(("git", found.place, "changed"), lambda: finder.warn(text))


def expand(spec: str, finder: Finder, *, every: int = 1, merges: bool = False) -> list[str] | None:
    """The commits of a range, A..B, oldest first, behind the commit that it is compared with: A, or
    where B was branched off."""
    place, revision = gitrepo.split(spec)
    if ".." not in revision:
        return None
    first, last = revision.split("..", 1)
    if "..." in revision or not first:
        raise UsageError(f"git:{spec}: not a range of commits: it must be like A..B")
    found = repository(finder, place)
    last = last or "HEAD"
    base, *commits = found.between(first, last, every=every, merges=merges)
    _warn_of_changes(spec, found, last, finder)
    if base != found.commit(first):
        finder.warn(
            f"git:{spec}: {last} does not have {first}: comparing with {base[:12]}, which both have"
        )
    return [gitrepo.name(place, commit, spec) for commit in (base, *commits)]


# A branch, which is watched from a commit on.


def _branch(spec: str) -> tuple[str, str, str]:
    """The repository, the commit, and the branch."""
    place, revision = gitrepo.split(spec)
    first, _, last = revision.partition("..")
    return place, first, last or "HEAD"


def _wrong(spec: str) -> str:
    _, first, last = _branch(spec)
    if ".." in spec and first and not last.startswith("."):
        return ""
    return "not a branch with its start: it must be git:PATH@START..BRANCH"


def _states(
    spec: str, finder: Finder, *, newest: bool, every: int, merges: bool
) -> Iterator[State]:
    """Commits of the first parents of the branch, so that each is a state that the branch had."""
    place, first, last = _branch(spec)
    found = repository(finder, place)
    commits = found.line(first, last)
    start = int(found.git("rev-list", "--count", "--first-parent", commits[0].name))
    numbered = [
        (number, commit)
        for number, commit in enumerate(commits, start)
        if not merges or commit.is_merge or number == start
    ]
    arch = finder.recipe.arch.name
    for number, commit in numbered[::every]:
        yield State(
            f"git:{place}@{commit.name}", commit.name[:12], str(number), commit.subject,
            date=commit.date, commit=commit.name, arch=arch,
        )  # fmt: skip


def _kept(spec: str, finder: Finder, states: Sequence[State]) -> list[State]:
    return [replace(one, name=f"git:{_branch(spec)[0]}@{one.commit}") for one in states]


WATCH = Watching(
    "commits of a branch",
    ("every", "merges", "suite", "config", "kconfig", "arch"),
    ("git:PATH@START..BRANCH",),
    _states,
    _kept,
    _wrong,
    alone="a branch",
    branch=lambda spec: _branch(spec)[::2],
)


def compiler(kernel: GitKernel, cache: Cache, apt: Apt, step: Step) -> Path:
    """The root file system in which *kernel* is built."""
    step("preparing the compiler", 0.0)
    arch = kernel.arch
    tools = (*_TOOLS, *(() if arch == X86_64 else (f"gcc-{arch.triplet}",)))
    if kernel.recipe.llvm:
        tools = (*tools, *_LLVM)
    if _has_rust(kernel.recipe):
        tools = (*tools, *_RUST)
    return root("compiler", tools, {"for": tools}, kernel.recipe.suite, cache, apt, step)


def entries(kernel: GitKernel, at: Path) -> tuple[Entry, Entry]:
    """The cache entries that a prepared kernel consists of, if it is built in the root file system
    *at*: its image, and our modules."""
    inputs: dict[str, object] = {
        "tree": kernel.repository.git("rev-parse", f"{kernel.commit}^{{tree}}"),
        "base": kernel.recipe.base,
        "fragment": kernel.recipe.fragment,
        "packages": digest_file(at / "packages"),
        "variables": _variables(kernel.recipe),
        "modules": own_modules.module_parts(kernel.arch),
        "recipe": _RECIPE,
    }
    return ("kernel", inputs), kbuild.modules_entry({"kernel": entry_name(inputs)})


def _has_rust(recipe: Recipe) -> bool:
    return recipe.sets("CONFIG_RUST=y")


def _variables(recipe: Recipe) -> tuple[str, ...]:
    """The variables of make."""
    arch = recipe.arch
    if recipe.llvm:
        made_by = ("LLVM=1", "CC=ccache clang", "HOSTCC=ccache clang")
        return (f"ARCH={arch.source}", *made_by, *_SAME)
    prefix = "" if arch == X86_64 else f"{arch.triplet}-"
    # rustc takes HOSTCC for the name of its linker.
    host = "gcc" if _has_rust(recipe) else "ccache gcc"
    return (
        f"ARCH={arch.source}", f"CC=ccache {prefix}gcc", f"HOSTCC={host}", *_SAME,
        *([f"CROSS_COMPILE={prefix}"] if prefix else []),
    )  # fmt: skip


def keeps_configuration(repository: Repository, before: str, after: str) -> bool:
    """Whether two commits have the same files that a configuration is made from."""
    words = ("diff", "--quiet", before, after, "--", *_CONFIGURED_BY)
    return gitrepo.run(repository.path, *words).returncode == 0


class _Workspace:
    """A work tree of a repository and a folder in which it is built, both kept from one commit to
    the next."""

    def __init__(
        self, folder: Path, root: Path, ccache: Path, kernel: GitKernel, step: Step
    ) -> None:
        self._step = step
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
            self._step("checking out", 0.1)
            self._check_out()
            if not self._is_configured(before, now):
                self._step("configuring", 0.1)
                self._configure()
            configured = True
            jobs = f"-j{os.cpu_count() or 1}"
            command = [*self.make(), jobs, self._kernel.arch.target, "modules"]
            self._run(command, "does not build", poll=self._count_objects())
            built = True
            (self._folder / _OBJECTS).write_text(f"{self._recipe_key()} {len(self._objects())}")
        except IopathError:
            note.write_text(json.dumps({**now, "configured": configured, "built": built}))
            raise
        note.write_text(json.dumps({**now, "configured": configured, "built": built}))

    def _is_configured(self, before: Mapping[str, object], now: Mapping[str, object]) -> bool:
        """Whether the folder has the configuration of this commit: that of the commit *before*, if
        both have the same files that a configuration is made from."""
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
        variables = _variables(self._kernel.recipe)
        return [*self._inside(*words), "make", "-s", "-C", "/src", "O=/build", *variables]

    def _inside(self, *words: str) -> list[str | Path]:
        """The beginning of a command that runs in the root file system."""
        return [
            *sandbox(
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
        own_modules.keep_own_modules(self.build_folder, folder, arch)

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
        if recipe.target:
            said = f"cannot be configured by make {recipe.target}"
            self._run([*self.make(), recipe.target], said)
        else:
            config.write_text(recipe.base or "")
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
                    f"{self._kernel.title}: the option {option} did not take effect: the kernel"
                    " does not have it, or it depends on others"
                )

    def _objects(self) -> list[Path]:
        # Unlike rglob(), walk() passes over folders that the build removes meanwhile.
        return [
            Path(folder, name)
            for folder, _, names in os.walk(self.build_folder)
            for name in names
            if name.endswith(".o")
        ]

    def _recipe_key(self) -> str:
        """What a kernel's number of objects depends on, apart from its version."""
        recipe = self._kernel.recipe
        return digest_of({"base": recipe.base, "fragment": recipe.fragment})

    def _usual_number(self) -> str:
        """The number of objects that another workspace has of such a kernel; empty if none has."""
        for path in sorted(self._folder.parent.glob(f"*/{_OBJECTS}")):
            key, _, number = path.read_text().partition(" ")
            if key == self._recipe_key():
                return f" of about {number}"
        return ""

    def _count_objects(self) -> Callable[[], None]:
        """A function that reports the number of compiled objects. It counts less often the longer
        the compilation takes. The whole number is not known if the folder has objects of another
        commit."""
        began = looked = time.monotonic()
        start = time.time() - 1  # the clock of a file system is coarse
        usual = "" if self._objects() else self._usual_number()
        self._step(f"compiling, log at {self._log}", 0.1)

        def count() -> None:
            nonlocal looked
            now = time.monotonic()
            if now - looked < max(_LOOK, (now - began) / 20):
                return
            looked = now
            new = sum(1 for path in self._objects() if _is_newer(path, start))
            self._step(f"compiling, {new}{usual} objects, log at {self._log}", 0.1)

        return count

    def _run(
        self, command: list[str | Path], what: str, poll: Callable[[], None] | None = None
    ) -> None:
        if process.run(command, output=self._log, poll=poll):
            complaint = kbuild.complaint(self._log)
            kind = DoesNotBuild if _REFUSED.search(complaint) else IopathError
            raise kind(f"{self._kernel.title} {what}: {complaint}")


def _is_newer(path: Path, moment: float) -> bool:
    try:
        return path.stat().st_mtime >= moment
    except FileNotFoundError:  # a temporary file of the compiler
        return False


def _unset(option: str, found: Sequence[str]) -> bool:
    """Whether "# CONFIG_FOO is not set" holds."""
    name = option.split()[1]
    return not any(line.startswith(f"{name}=") for line in found)
