#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write the modules into a kernel's git repository, as a branch with a series of patches.

    export.py KERNEL [BRANCH]

The branch (default: blknull-biogen) begins at HEAD of the repository KERNEL. The work tree and the
index of KERNEL are not touched. The patches have the drivers without kernel/compat (resolve.py),
their documentation, their selftests, and entries in Kconfig, Makefiles and MAINTAINERS. Author and
Signed-off-by are those of the repository's git configuration.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from resolve import Driver, ResolveError, Shims

HERE = Path(__file__).resolve().parent
KERNEL = HERE.parent
ROOT = KERNEL.parent

DEFAULT_BRANCH = "blknull-biogen"
_SUPPORTED = re.compile(r"^#if !?COMPAT_KERNEL_BEFORE\((\d+), (\d+)\)$", re.MULTILINE)

TITLES = {
    "biogen": "BIOGEN DIRECT-TO-BIO CHARACTER DEVICE",
    "blknull": "BLKNULL BLOCK DEVICE WITH ZERO LATENCY",
}
CONFIGS = {"biogen": "CONFIG_BIOGEN", "blknull": "CONFIG_BLK_DEV_BLKNULL"}
UAPI = "include/uapi/linux/biogen.h"


class ExportError(Exception):
    """Something that a person can mend, in one line."""


class Repository:
    """A kernel's git repository."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self.head = self.git("rev-parse", "--verify", "HEAD^{commit}")
        except ExportError as error:
            raise ExportError(f"{path}: not a git repository with a commit") from error
        makefile = self.text("Makefile", "")
        found = re.findall(r"^(?:VERSION|PATCHLEVEL) = (\d+)$", makefile, re.MULTILINE)
        if len(found) != 2 or not self.has("drivers/block/Kconfig"):
            raise ExportError(f"{path}: not the source of a Linux kernel")
        self.version = int(found[0]), int(found[1])

    def git(self, *words: str, text: str | None = None) -> str:
        done = subprocess.run(
            ["git", "-C", self._path, *words],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise ExportError(f"git {words[0]}: {said[0] if said else 'it failed'}")
        return done.stdout.strip("\n")

    def has(self, path: str) -> bool:
        return bool(self.git("ls-tree", "--name-only", "HEAD", path))

    def text(self, path: str, default: str | None = None) -> str:
        """The file at HEAD."""
        if default is not None and not self.has(path):
            return default
        return self.git("show", f"HEAD:{path}") + "\n"

    def defines(self, macro: str) -> bool:
        """Whether a header defines a macro."""
        words = ["git", "-C", self._path, "grep", "-qE", rf"^#\s*define\s+{macro}\b"]
        return subprocess.run([*words, "HEAD", "--", "include"], check=False).returncode == 0


@dataclass
class Patch:
    """A commit: its message, and the files that it writes."""

    message: str
    files: dict[str, str] = field(default_factory=dict)


def check_version(version: tuple[int, int]) -> None:
    """Raises ExportError for a kernel that the modules do not know."""
    limits = [
        (int(a), int(b)) for a, b in _SUPPORTED.findall((KERNEL / "compat/version.h").read_text())
    ]
    oldest, newest = min(limits), max(limits)
    # The interfaces that drivers of 6.10 and older need are for modules only.
    oldest = max(oldest, (6, 12))
    if not oldest <= version < newest:
        raise ExportError(
            f"this is Linux {version[0]}.{version[1]}: the series can be made for"
            f" {oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1] - 1}"
        )


# Files of the patches.


def driver_files(
    name: str, shims: Shims, style: Path, folder: Path, *, objects: bool
) -> dict[str, str]:
    """A driver's files in drivers/block, made in *folder*."""
    at = f"drivers/block/{name}"
    shutil.copytree(KERNEL / name, folder / name, ignore=shutil.ignore_patterns("*.mod.c", ".*"))
    driver = Driver(name, folder / name)
    driver.resolve(shims, style, objects=objects)
    files = {}
    for path in driver.paths:
        text = path.read_text()
        text = text.replace("#include <uapi/biogen.h>", "#include <uapi/linux/biogen.h>")
        if "#include <iopath/marker.h>\n" in text:
            marker = (KERNEL / "include/iopath/marker.h").read_text()
            files[f"{at}/marker.h"] = marker.replace(" WITH Linux-syscall-note", "")
            text = _with_own_include(text.replace("#include <iopath/marker.h>\n", ""), "marker.h")
        files[f"{at}/{path.name}"] = re.sub(r"\n{3,}", "\n\n", text)
    makefile = (KERNEL / name / "Kbuild").read_text()
    makefile = re.sub(r"^ccflags-y.*\n", "", makefile, flags=re.MULTILINE)
    files[f"{at}/Makefile"] = makefile.replace("obj-m :=", f"obj-$({CONFIGS[name]}) +=")
    files[f"{at}/Kconfig"] = (HERE / name / "Kconfig").read_text()
    return files


def _with_own_include(text: str, name: str) -> str:
    """*text* with '#include "name"' among the others, in the alphabet's order."""
    own = list(re.finditer(r'^#include "(.*)"\n', text, re.MULTILINE))
    at = next((match.start() for match in own if match[1] > name), own[-1].end())
    return f'{text[:at]}#include "{name}"\n{text[at:]}'


def selftest_files(name: str) -> dict[str, str]:
    """A collection's files in tools/testing/selftests."""
    at = f"tools/testing/selftests/{name}"
    files, programs = {}, []
    for path in sorted((ROOT / "selftests" / name).iterdir()):
        if not re.search(r"\.(c|h|sh)$|^(Makefile|config|settings)$", path.name):
            continue
        text = path.read_text().replace("#include <uapi/biogen.h>", "#include <linux/biogen.h>")
        if path.name == "Makefile":
            text = re.sub(r"^UAPI \?=.*\n", "", text, flags=re.MULTILINE)
            text = text.replace("-I $(UAPI)", "$(KHDR_INCLUDES)")
        if path.suffix == ".c" and re.search(
            r"^(?:TEST_HARNESS_MAIN|SELFTEST_MAIN|int main)\b", text, re.MULTILINE
        ):
            programs.append(path.stem)
        files[f"{at}/{path.name}"] = text
    lines = ["# SPDX-License-Identifier: GPL-2.0-only", *programs]
    files[f"{at}/.gitignore"] = "\n".join(lines) + "\n"
    return files


def with_line(text: str, line: str, before: str) -> str:
    """*text* with *line* in front of the first line that begins with *before*, or at its end."""
    if line in text.splitlines():
        raise ExportError(
            f"'{line}' is there already: begin the branch at a kernel without the drivers"
        )
    match = re.search(rf"^{re.escape(before)}", text, re.MULTILINE)
    at = match.start() if match else len(text)
    return f"{text[:at]}{line}\n{text[at:]}"


def with_maintainer(text: str, name: str, person: str, paths: list[str]) -> str:
    """MAINTAINERS with the entry of a driver, in the alphabet's order; it replaces an older one."""
    title = TITLES[name]
    files = "".join(f"F:\t{path}\n" for path in sorted(paths))
    entry = f"{title}\nM:\t{person}\nL:\tlinux-block@vger.kernel.org\nS:\tMaintained\n{files}\n"
    text = re.sub(rf"^{re.escape(title)}\n(?:[A-Z]:\t.*\n)*\n", "", text, flags=re.MULTILINE)
    for match in re.finditer(r"(?<=\n\n)(?!THE REST\n)([^\s].*)\n[A-Z]:\t", text):
        if match[1] > title:
            return text[: match.start()] + entry + text[match.start() :]
    raise ExportError("MAINTAINERS has no entry that this one could be put before")


# The series.


def series(repository: Repository, person: str, folder: Path) -> list[Patch]:
    """The patches."""
    shutil.copytree(KERNEL / "compat", folder / "compat")
    shims = Shims.read(folder / "compat", repository.version, repository.defines)
    style = folder / "style"
    own = (ROOT / ".clang-format").read_text()
    # checkpatch refuses a line that ends with "(".
    style.write_text(
        re.sub(
            r"^(PenaltyBreakBeforeFirstCallParameter:).*$", r"\1 1000",
            repository.text(".clang-format", own), flags=re.MULTILINE,
        )
    )  # fmt: skip
    objects = repository.defines("kmalloc_obj")
    drivers = {name: driver_files(name, shims, style, folder, objects=objects) for name in CONFIGS}

    now: dict[str, str] = {}  # existing files, as changed by the patches so far
    maintained: dict[str, list[str]] = {name: [] for name in CONFIGS}

    def edited(path: str) -> str:
        return now.get(path) or repository.text(path)

    def patch(name: str, message: str, files: Mapping[str, str], owned: str) -> Patch:
        maintained[name].append(owned)
        found = dict(files)
        found["MAINTAINERS"] = with_maintainer(
            edited("MAINTAINERS"), name, person, maintained[name]
        )
        now.update(found)
        return Patch((HERE / name / f"{message}.txt").read_text(), found)

    def driver(name: str) -> Patch:
        files = dict(drivers[name])
        config = f'source "drivers/block/{name}/Kconfig"'
        files["drivers/block/Kconfig"] = with_line(
            edited("drivers/block/Kconfig"), config, 'source "drivers/block/null_blk'
        )
        line = f"obj-$({CONFIGS[name]})\t+= {name}/"
        files["drivers/block/Makefile"] = with_line(
            edited("drivers/block/Makefile"), line, "obj-$(CONFIG_BLK_DEV_NULL_BLK)"
        )
        return patch(name, "driver", files, f"drivers/block/{name}/")

    def documentation(name: str) -> Patch:
        at = "Documentation/admin-guide/blockdev"
        index = edited(f"{at}/index.rst")
        entries = re.findall(r"^   (\w+)$", index, re.MULTILINE)
        following = next((entry for entry in entries if entry > name), "drbd/index")
        files = {
            f"{at}/{name}.rst": (HERE / name / "admin-guide.rst").read_text(),
            f"{at}/index.rst": with_line(index, f"   {name}", f"   {following}"),
        }
        return patch(name, "documentation", files, f"{at}/{name}.rst")

    def selftests(name: str) -> Patch:
        files = selftest_files(name)
        makefile = edited("tools/testing/selftests/Makefile")
        targets = re.findall(r"^(TARGETS \+= (\S+))$", makefile, re.MULTILINE)
        following = next(line for line, target in targets if target > name)
        files["tools/testing/selftests/Makefile"] = with_line(
            makefile, f"TARGETS += {name}", following
        )
        return patch(name, "selftests", files, f"tools/testing/selftests/{name}/")

    uapi = {UAPI: (KERNEL / "include/uapi/biogen.h").read_text()}
    return [
        driver("blknull"),
        documentation("blknull"),
        patch("biogen", "interface", uapi, UAPI),
        driver("biogen"),
        documentation("biogen"),
        selftests("biogen"),
        selftests("blknull"),
    ]


def write(repository: Repository, branch: str, patches: list[Patch], person: str) -> None:
    """Make the branch."""
    author = repository.git("var", "GIT_AUTHOR_IDENT")
    committer = repository.git("var", "GIT_COMMITTER_IDENT")
    stream = ""
    for number, patch in enumerate(patches):
        message = f"{patch.message.rstrip()}\n\nSigned-off-by: {person}\n"
        stream += f"commit refs/heads/{branch}\nmark :{number + 1}\n"
        stream += f"author {author}\ncommitter {committer}\n{_data(message)}"
        stream += f"from {repository.head if not number else f':{number}'}\n"
        for path, text in sorted(patch.files.items()):
            mode = "100755" if path.endswith(".sh") else "100644"
            stream += f"M {mode} inline {path}\n{_data(text)}"
        stream += "\n"
    repository.git("fast-import", "--quiet", "--done", text=f"{stream}done\n")


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


def main(words: list[str]) -> int:
    if not 1 <= len(words) <= 2 or words[0].startswith("-"):
        print(__doc__.split("\n\n")[1].strip(), file=sys.stderr)
        return 2
    branch = words[1] if len(words) == 2 else DEFAULT_BRANCH
    try:
        repository = Repository(Path(words[0]))
        check_version(repository.version)
        repository.git("check-ref-format", f"refs/heads/{branch}")
        if repository.git("for-each-ref", f"refs/heads/{branch}"):
            raise ExportError(f"the branch {branch} exists: delete it, or choose another name")
        person = re.sub(r" \d+ [-+]\d+$", "", repository.git("var", "GIT_COMMITTER_IDENT"))
        with tempfile.TemporaryDirectory() as folder:
            patches = series(repository, person, Path(folder))
            write(repository, branch, patches, person)
    except (ExportError, ResolveError) as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        return 1
    first = repository.head[:12]
    print(f"{branch}: {len(patches)} patches: git -C {words[0]} log {first}..{branch}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
