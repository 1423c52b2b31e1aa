# SPDX-License-Identifier: GPL-2.0
"""Debian packages of any suite, without root: apt with a state of its own.

apt chooses, verifies and downloads; nothing is installed on this machine. The mirrors are those of
this machine's apt configuration; only the suite is chosen here.
"""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from iopath.base import process
from iopath.base.arch import X86_64, Arch
from iopath.base.cache import DOWNLOADS, Cache, out_of_space
from iopath.base.errors import IopathError, Unreachable

# Every suite that has kernels, with the suites its packages' dependencies are found in.
SUITES: dict[str, tuple[str, ...]] = {
    "bullseye": ("bullseye",),
    "bullseye-security": ("bullseye", "bullseye-security"),
    "bookworm": ("bookworm",),
    "bookworm-security": ("bookworm", "bookworm-security"),
    "bookworm-backports": ("bookworm", "bookworm-security", "bookworm-backports"),
    "trixie": ("trixie",),
    "trixie-security": ("trixie", "trixie-security"),
    "trixie-backports": ("trixie", "trixie-security", "trixie-backports"),
    "forky": ("forky",),
    "forky-security": ("forky", "forky-security"),
    "forky-backports": ("forky", "forky-security", "forky-backports"),
    "sid": ("sid",),
    "experimental": ("sid", "experimental"),
}

# Suites that are not a release of Debian yet: their compilers change all the time.
UNRELEASED = {"forky", "forky-security", "forky-backports", "sid", "experimental"}

# The packages of a suite that are read.
KERNEL_PACKAGE = re.compile(
    r"linux-(image|binary|modules|headers|kbuild|base|compiler|support|source)-"
)
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_MAX_AGE = 24 * 3600  # seconds after which package lists are fetched again
_ROOM = 1 << 30  # bytes: the lists take half of it, a kernel with its build root the rest

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Package:
    """One version of a binary package in one suite. *depends* is as in the package's control file,
    *size* is that of the .deb in bytes, *sha256* its digest, which lists of older versions of
    iopath lack."""

    name: str
    version: str
    suite: str
    depends: str
    size: int
    sha256: str = ""


def read_index(lines: Iterable[str], suite: str) -> Iterator[Package]:
    """The kernel packages in a Packages file."""
    from debian.deb822 import Packages

    wanted: list[str] = []
    keep = False
    for line in lines:
        if line.startswith("Package: "):
            keep = KERNEL_PACKAGE.match(line, len("Package: ")) is not None
        if keep:
            wanted.append(line)
    for entry in Packages.iter_paragraphs(wanted, use_apt_pkg=False):
        yield Package(
            entry["Package"],
            entry["Version"],
            suite,
            entry.get("Depends", ""),
            int(entry["Size"]),
            entry.get("SHA256", ""),
        )


class Apt:
    """apt for the packages of one architecture, with its state below the cache. *warn* is told what
    is unavailable."""

    def __init__(self, cache: Cache, warn: Callable[[str], None], arch: Arch = X86_64) -> None:
        self._cache = cache
        self._warn = warn
        self.arch = arch
        self._dir = cache.root / ("apt" if arch == X86_64 else f"apt-{arch.debian}")
        self._pool = self._dir / "archives"
        self._configured = False

    def of(self, arch: Arch) -> "Apt":
        """apt for the packages of another architecture."""
        return self if arch == self.arch else Apt(self._cache, self._warn, arch)

    # The lists of packages.

    def packages(self, *, update: bool = False) -> list[Package]:
        """Every kernel package in every suite on the mirror.

        The lists are fetched when *update* says so, when there are none, or when they are a day
        old; old ones are used if there is no network.
        """
        index = self._dir / "index.json"
        with self._cache.lock(f"{self._dir.name}-index"):
            if not update:
                known = _load_index(index, _MAX_AGE)
                if known is not None:
                    return known
            try:
                found, complete = self._fetch_index()
            except IopathError as error:
                known = None if update else _load_index(index, float("inf"))
                if known is None:
                    raise
                self._warn(f"{error}; using the package lists of an earlier day")
                return known
            with out_of_space(f"cannot write the cache {self._cache.root}"):
                part = index.with_suffix(".part")
                part.write_text(json.dumps([asdict(package) for package in found]))
                if not complete:
                    os.utime(part, (0, 0))  # too old to serve next time, if there is a network
                part.rename(index)
            return found

    def _fetch_index(self) -> tuple[list[Package], bool]:
        """The kernel packages, and whether every suite on the mirror could be fetched."""
        self._configure()
        with self._cache.lock(self._dir.name):
            self._clear_log()
            # A suite that the mirror lacks or whose signature has expired fails, the others do not.
            self._run("apt-get", "update", sources="all")
            output = self._log().read_text(errors="replace")
            targets = self._query(
                "indextargets", "--format", "$(FILENAME)|$(RELEASE)", "Created-By: Packages"
            )
        if not re.search(r"^(Get|Hit):", output, re.MULTILINE):
            reason = next(
                (line for line in output.splitlines() if line.startswith(("E:", "W:", "Err:"))),
                "apt-get update printed nothing",
            )
            raise IopathError(f"cannot fetch the lists of kernel packages: {reason}")
        found: list[Package] = []
        for target in targets.splitlines():
            name, suite = target.rsplit("|", 1)
            if Path(name).exists():
                with Path(name).open(encoding="utf-8", errors="replace") as lines:
                    found += read_index(lines, suite)
        # Lists with a bad signature, or whose digest differs from the signed one. apt then uses
        # older lists, if it has any.
        refused = re.findall(
            r"^W: .*?(GPG error: .*)|^E: (Failed to fetch \S+  Hash Sum mismatch)",
            output,
            re.MULTILINE,
        )
        reasons = [signature or digest for signature, digest in refused]
        if not found:
            if reasons:
                raise IopathError(f"cannot fetch the lists of kernel packages: {reasons[0]}")
            raise IopathError(f"the mirror has no kernel packages; see {self._log()}")
        for reason in reasons:
            self._warn(f"package lists refused: {reason}")
        expired = re.findall(r"Release file for \S+/dists/(\S+)/InRelease is expired", output)
        if expired:
            self._warn(f"left out, their lists have expired: {', '.join(sorted(expired))}")
        absent = re.findall(r"repository '\S+ (\S+) Release' does not have a Release", output)
        lists = self._dir / "lists"
        failed = [
            suite
            for suite in sorted(set(SUITES) - set(absent) - set(expired))
            if not any(lists.glob(f"*_dists_{suite}_*Release"))
        ]
        if failed:
            self._warn(f"left out, their lists could not be fetched: {', '.join(failed)}")
        return found, not failed and not reasons

    def digests(self, packages: Sequence[str]) -> dict[str, str]:
        """The digests of those of kernel *packages* ("name=version") that the lists have."""
        known = {f"{one.name}={one.version}": one.sha256 for one in self.packages()}
        return {name: known[name] for name in packages if name in known}

    # Packages.

    def closure(self, packages: Sequence[str], suite: str) -> list[str]:
        """The .deb names of *packages* ("name" or "name=version") and their dependencies."""
        lists = (self._dir / "lists").glob("*_Packages")
        self.packages(update=not any(lists))  # there may be none yet, or old ones
        self._configure()
        with self._cache.lock(self._dir.name):
            self._clear_log()
            status = self._run(
                "apt-get", "install", "--simulate", "--no-install-recommends", *packages,
                sources=suite,
            )  # fmt: skip
            output = self._log().read_text(errors="replace")
        if status:
            raise IopathError(f"cannot resolve {packages[0]}: {_complaint(output)}")
        found = re.findall(r"^Inst (\S+) \((\S+) .*\[(\w+)\]\)", output, re.MULTILINE)
        return sorted(_deb_name(*package) for package in found)

    def download(
        self, packages: Sequence[str], suite: str, *, closure: bool, progress: Progress
    ) -> None:
        """Fetch *packages* into the pool, with their dependencies if *closure* is set.

        apt verifies each against the signed lists. What is in the pool is not fetched again.
        """
        self._configure()
        while not self._cache.use(DOWNLOADS):
            process.check_stopped(after=0.1)
        command = ["install", "--download-only", "--yes", "--no-install-recommends"]
        if not closure:
            command = ["download"]
        with self._cache.lock(self._dir.name):
            self._clear_log()
            status_file = self._dir / "status-fd"
            status_file.write_text("")
            status = self._run(
                "apt-get", *command, "-o", "APT::Status-Fd=9", *packages,
                sources=suite,
                poll=lambda: progress(_percentage(status_file) / 100),
                status_file=status_file,
            )  # fmt: skip
            output = self._log().read_text(errors="replace")
        if status:
            raise download_error(packages[0], output)

    def download_source(self, package: str, suite: str, folder: Path) -> None:
        """Fetch and verify the source of *package* into *folder*, as apt does it for a line
        deb-src. Its output is in the file log there."""
        self._configure()
        with self._cache.lock(self._dir.name):
            sources, log = folder / "sources.list", folder / "log"
            binary = (self._dir / f"{suite}.list").read_text()
            sources.write_text(binary + binary.replace("deb [", "deb-src ["))
            options = ["-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Cache::pkgcache="]
            for command in (["update"], ["source", "--download-only", package]):
                words = ["apt-get", *options, *command]
                if process.run(words, output=log, cwd=folder, env=self._env()):
                    said = log.read_text(errors="replace")[-2000:]
                    raise IopathError(f"no source of {package}: {said}")

    def deb(self, name: str) -> Path:
        """The downloaded package of that file name."""
        return self._pool / name

    # How apt is run.

    def _log(self) -> Path:
        return self._dir / "log"

    def _clear_log(self) -> None:
        with out_of_space(f"cannot write the cache {self._cache.root}"):
            self._log().write_text("")

    def _run(
        self,
        *command: str,
        sources: str,
        poll: Callable[[], None] | None = None,
        status_file: Path | None = None,
    ) -> int:
        argv: list[str | Path] = [
            command[0],
            "-o", f"Dir::Etc::sourcelist={self._dir}/{sources}.list",
            "-o", f"Dir::Cache::pkgcache=pkgcache-{sources}.bin",
            *command[1:],
        ]  # fmt: skip
        if status_file:
            argv = ["sh", "-c", 'file=$1; shift; exec "$@" 9>"$file"', "sh", status_file, *argv]
        return process.run(argv, output=self._log(), cwd=self._pool, env=self._env(), poll=poll)

    def _query(self, *command: str) -> str:
        return subprocess.run(
            ["apt-get", "-o", f"Dir::Etc::sourcelist={self._dir}/all.list", *command],
            env={**os.environ, **self._env()},
            capture_output=True,
            text=True,
            check=False,
        ).stdout

    def _env(self) -> dict[str, str]:
        return {"APT_CONFIG": str(self._dir / "apt.conf"), "LC_ALL": "C.UTF-8"}

    def _configure(self) -> None:
        """Write apt's configuration: our own state, this machine's mirrors and network settings."""
        if self._configured:
            return
        process.need("apt-get", "apt")
        if not _KEYRING.exists():
            raise IopathError(f"{_KEYRING} is missing: apt-get install debian-archive-keyring")
        main, security = find_mirrors()
        with (
            self._cache.lock(self._dir.name),
            out_of_space(f"cannot write the cache {self._cache.root}"),
        ):
            for folder in ("lists/partial", "archives/partial", "parts"):
                (self._dir / folder).mkdir(parents=True, exist_ok=True)
            # On a full disk apt prints no error and may hang.
            free = shutil.disk_usage(self._dir).free
            if free < _ROOM:
                raise IopathError(
                    f"no space in the cache {self._cache.root}: {free >> 20} MiB are free,"
                    f" downloads take {_ROOM >> 20}"
                )
            (self._dir / "status").touch()
            sources = {suite: _source(suite, main, security) for suite in SUITES}
            for suite, needed in SUITES.items():
                text = "".join(sources[part] for part in needed)
                (self._dir / f"{suite}.list").write_text(text)
            (self._dir / "all.list").write_text("".join(sources.values()))
            (self._dir / "apt.conf").write_text(self._settings())
        self._configured = True

    def _settings(self) -> str:
        inherited = subprocess.run(
            ["apt-config", "dump", "--format", '%F "%v";%n', "Acquire", "Dir::Etc::netrc"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        lines = [
            line
            for line in inherited.splitlines()
            if not line.startswith(("Acquire::IndexTargets", "Acquire::GzipIndexes"))
        ]
        here = self._dir
        lines += [
            f'Dir::State "{here}";',
            f'Dir::State::lists "{here}/lists";',
            f'Dir::State::status "{here}/status";',
            f'Dir::State::extended_states "{here}/extended_states";',
            f'Dir::Cache "{here}";',
            f'Dir::Cache::archives "{here}/archives";',
            'Dir::Cache::srcpkgcache "";',
            f'Dir::Etc::sourceparts "{here}/parts";',
            f'Dir::Etc::preferences "{here}/parts/none";',
            f'Dir::Etc::preferencesparts "{here}/parts";',
            f'Dir::Etc::main "{here}/parts/none";',
            f'Dir::Etc::parts "{here}/parts";',
            f'Dir::Log "{here}";',
            f'APT::Architecture "{self.arch.debian}";',
            f'APT::Architectures {{ "{self.arch.debian}"; }};',
            'APT::Get::List-Cleanup "false";',
            'APT::Sandbox::User "";',
            'Acquire::Languages "none";',
            'Acquire::Retries "3";',
            'Debug::NoLocking "true";',  # the cache's own lock covers more than apt's
        ]
        return "\n".join(lines) + "\n"


def find_mirrors() -> tuple[str, str]:
    """The addresses of Debian's main and security archives in this machine's apt configuration.

    IOPATH_MIRROR and IOPATH_SECURITY_MIRROR override them.
    """
    main = os.environ.get("IOPATH_MIRROR", "")
    security = os.environ.get("IOPATH_SECURITY_MIRROR", "")
    targets = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)|$(ORIGIN)|$(LABEL)",
         "Created-By: Packages"],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    # Other distributions also have suites called "stable" and the like. The Release file says whose
    # it is.
    for target in targets.splitlines():
        uri, origin, label = target.rsplit("|", 2)
        if origin != "Debian":
            continue
        if label == "Debian-Security":
            security = security or uri
        elif label == "Debian":
            main = main or uri
    if not main:
        what = "set IOPATH_MIRROR to the address of one"
        if not targets:
            what = f"run apt-get update, or {what}"
        raise IopathError(f"no Debian mirror among this machine's package lists: {what}")
    return main, security or main.rstrip("/") + "-security"


def _source(suite: str, main: str, security: str) -> str:
    uri = security if suite.endswith("-security") else main
    return f"deb [signed-by={_KEYRING}] {uri} {suite} main\n"


def _load_index(path: Path, max_age: float) -> list[Package] | None:
    try:
        if time.time() - path.stat().st_mtime > max_age:
            return None
        return [Package(**entry) for entry in json.loads(path.read_text())]
    except (OSError, ValueError, TypeError):
        return None


def _deb_name(name: str, version: str, arch: str) -> str:
    return f"{name.split(':')[0]}_{version.replace(':', '%3a')}_{arch}.deb"


def _percentage(status_file: Path) -> float:
    """How far apt says it is: lines "dlstatus:FILE:PERCENT:TEXT"."""
    found = re.findall(r"^dlstatus:[^:]*:([\d.]+):", status_file.read_text(), re.MULTILINE)
    return float(found[-1]) if found else 0.0


def download_error(package: str, output: str) -> IopathError:
    """Why apt could not download a package. If the mirror lacks a listed package, trying again does
    not help."""
    text = _complaint(output)
    kind = IopathError if re.search(r"\s404\s", text) else Unreachable
    return kind(f"cannot download {package}: {text}")


def _complaint(output: str) -> str:
    """What apt printed about a failure, on one line."""
    if "No space left" in output or "enough free space" in output:
        return "no space left on the device that holds the cache"
    lines = [line.strip() for line in output.splitlines()]
    unmet = [line for line in lines if " : Depends: " in line or line.startswith("Depends: ")]
    errors = [line.removeprefix("E: ") for line in lines if line.startswith("E: ")]
    return "; ".join(unmet[:1] + errors[:1]) or "apt-get printed no error"
