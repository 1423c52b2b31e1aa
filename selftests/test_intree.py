# SPDX-License-Identifier: GPL-2.0
"""The modules as patches for a kernel: kernel/intree."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from test_style import IGNORED, OUTSIDE

from helpers.exported import BRANCH, export, exported, git, make_repository
from iopath.base import process
from iopath.base.arch import X86_64
from iopath.base.sources import source_root
from iopath.kernels.recipe import minimal_configs
from iopath.kernels.root import root
from iopath.measure.session import Session

ROOT = source_root()
SERIES = ("7.2", "7.3")
FOLDERS = ("drivers/block/blknull", "drivers/block/biogen")

# What checkpatch says of code that is as it must be. The list of attributes is expanded by macros
# that use some of its columns each; "choices" and the like are the names of its columns.
ALLOWED = {
    "drivers/block/blknull": set(IGNORED["kernel/blknull"]),
    "tools/testing/selftests": set(OUTSIDE),
}


# A repository with the files of a kernel that the patches change.

SKELETON = {
    "Makefile": "VERSION = 7\nPATCHLEVEL = 2\nSUBLEVEL = 0\n",
    "MAINTAINERS": "List of maintainers\n\n"
    "ATA\nM:\tA <a@example.org>\nF:\tdrivers/ata/\n\n"
    "BLOCK LAYER\nM:\tB <b@example.org>\nF:\tblock/\n\n"
    "ZRAM\nM:\tZ <z@example.org>\nF:\tdrivers/block/zram/\n\n"
    "THE REST\nM:\tL <l@example.org>\nF:\t*\n",
    "include/linux/fs.h": "#define IOCB_AIO_RW 1\n",
    "include/linux/slab.h": "#define kmalloc_obj(x, ...) 0\n",
    "drivers/block/Kconfig": 'source "drivers/block/null_blk/Kconfig"\n',
    "drivers/block/Makefile": "obj-$(CONFIG_BLK_DEV_NULL_BLK)\t+= null_blk/\n",
    "Documentation/admin-guide/blockdev/index.rst": ".. toctree::\n\n   floppy\n   zram\n",
    "tools/testing/selftests/Makefile": "TARGETS += acct\nTARGETS += zram\n",
}


@pytest.fixture
def skeleton(tmp_path: Path) -> Path:
    folder = make_repository(tmp_path / "linux")
    for name, text in SKELETON.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "Linux 7.2")
    return folder


def test_export(skeleton: Path) -> None:
    """The branch has the drivers without a shim; nothing else of the repository changes."""
    before = git(skeleton, "status", "--porcelain", "--branch", "--ignored")
    done = export(skeleton)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert git(skeleton, "status", "--porcelain", "--branch", "--ignored") == before
    names = git(skeleton, "ls-tree", "-r", "--name-only", BRANCH).splitlines()
    drivers = {name: git(skeleton, "show", f"{BRANCH}:{name}") for name in names
               if name.startswith(FOLDERS)}  # fmt: skip
    for path in (
        path for name in FOLDERS for path in (ROOT / "kernel" / Path(name).name).glob("*.[ch]")
    ):
        assert f"drivers/block/{path.parent.name}/{path.name}" in drivers or path.name.endswith(
            ".mod.c"
        )
    for name, text in drivers.items():
        assert (
            re.findall(r"COMPAT_\w+|compat_bdev\w+|compat/|LINUX_VERSION_CODE|iopath_shims", text)
            == []
        ), name
        defined = re.findall(r"^static [^;{}()#]*?\b(\w+)\([^;{}]*\)\n\{", text, re.MULTILINE)
        assert len(defined) == len(set(defined)), name
        constant = r"(?:return|\(|&&|\|\|) (?:true|false|0) (?:&&|\|\|)|!(?:true|false)\b"
        assert re.findall(constant, text) == [], name
    assert "\tbio->bi_iter.bi_bvec_done = " in "".join(drivers.values())  # 7.3: bi_offset
    assert "kzalloc_obj(" in drivers["drivers/block/blknull/configfs.c"]
    for commit in git(skeleton, "rev-list", f"HEAD..{BRANCH}").split():
        subject, *_, last = git(skeleton, "show", "-s", "--format=%B", commit).strip().splitlines()
        assert re.match(r"(?:block|selftests): (?:blknull|biogen): [a-z]", subject)
        assert last == "Signed-off-by: Ada Tester <ada@example.org>"
        assert "MAINTAINERS" in git(skeleton, "show", "--format=", "--name-only", commit)
    headings = re.findall(
        r"(?<=\n\n)([A-Z].*)$", git(skeleton, "show", f"{BRANCH}:MAINTAINERS"), re.M
    )
    assert headings[:-1] == sorted(headings[:-1]) and len(headings) == 6

    again = export(skeleton)
    assert again.returncode == 1
    assert (
        again.stderr
        == f"export.py: the branch {BRANCH} exists: delete it, or choose another name\n"
    )
    # The oldest kernel has other interfaces.
    (skeleton / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\n")
    git(skeleton, "commit", "--quiet", "--all", "-m", "Linux 6.12")
    older = export(skeleton, "other")
    assert older.returncode == 0, older.stderr
    text = git(skeleton, "show", "other:drivers/block/blknull/configfs.c")
    assert "&& !badblocks_set(" in text.replace("\n\t\t       ", " ")


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ((6, 6), "this is Linux 6.6: the series can be made for 6.12 to 7.3"),
        ((7, 9), "this is Linux 7.9: the series can be made for 6.12 to 7.3"),
    ],
)
def test_other_kernels(skeleton: Path, version: tuple[int, int], said: str) -> None:
    """A kernel that the modules do not know is refused, and no branch is made."""
    (skeleton / "Makefile").write_text("VERSION = {}\nPATCHLEVEL = {}\n".format(*version))
    git(skeleton, "commit", "--quiet", "--all", "-m", "another")
    done = export(skeleton)
    assert (done.returncode, done.stderr) == (1, f"export.py: {said}\n")
    assert git(skeleton, "branch", "--list", BRANCH) == ""


def test_not_a_kernel(tmp_path: Path) -> None:
    assert export(tmp_path).stderr == f"export.py: {tmp_path}: not a git repository with a commit\n"
    assert export(tmp_path / "gone").returncode == 1


# A kernel's whole source.


@pytest.fixture(scope="module", params=SERIES)
def linux(
    request: pytest.FixtureRequest, session: Session, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A clone of a repository with a kernel's source and the patches; the branch is checked out."""
    clone = tmp_path_factory.mktemp("intree") / "linux"
    exported(session, request.param, clone)
    git(clone, "checkout", "--quiet", BRANCH)
    return clone


def make(linux: Path, *words: str | Path) -> str:
    done = subprocess.run(
        [process.need("make", "make"), "-C", linux, *words],
        capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module", params=["m", "y"])
def prepared(request: pytest.FixtureRequest, linux: Path) -> Path:
    """The folder of a kernel that is configured with the drivers as modules, or built in."""
    output = linux.parent / f"build-{request.param}"
    output.mkdir()
    fragment = output / "intree.config"
    fragment.write_text(f"CONFIG_BLK_DEV_BLKNULL={request.param}\nCONFIG_BIOGEN={request.param}\n")
    make(linux, "-s", f"O={output}", "tinyconfig")
    fragments = [*minimal_configs(X86_64), ROOT / "selftests/config/distribution.config", fragment]
    subprocess.run(
        [linux / "scripts/kconfig/merge_config.sh", "-m", "-O", output, output / ".config",
         *fragments],
        check=True, capture_output=True, cwd=output,
    )  # fmt: skip
    make(linux, "-s", f"O={output}", "olddefconfig")
    config = (output / ".config").read_text().splitlines()
    assert {f"CONFIG_{name}={request.param}" for name in ("BLK_DEV_BLKNULL", "BIOGEN")} <= set(
        config
    )
    make(linux, "-s", "-j2", f"O={output}", "prepare")
    return output


@pytest.mark.long
def test_builds(linux: Path, prepared: Path) -> None:
    """There is no warning with W=1, as modules and built in."""
    said = make(linux, "-j2", f"O={prepared}", "W=1", *(f"{name}/" for name in FOLDERS))
    assert re.findall(r".*\b(?:warning|error):.*", said) == []
    for name in FOLDERS:
        assert {path.stem for path in (linux / name).glob("*.c")} <= {
            path.stem for path in (prepared / name).glob("*.o")
        }


@pytest.mark.long
def test_sparse(linux: Path, prepared: Path, session: Session) -> None:
    """sid's sparse can read the headers of these kernels."""
    at = root("sparse", ("sparse",), {"for": "sparse"}, "sid", session.cache, session.apt,
              lambda what, part: None)  # fmt: skip
    libraries = at / "usr/lib/x86_64-linux-gnu"
    check = f"{libraries}/ld-linux-x86-64.so.2 --library-path {libraries} {at}/usr/bin/sparse"
    planted = linux / FOLDERS[0] / "main.c"
    text = planted.read_text()
    planted.write_text(f"{text}int intree_planted;\n")
    try:
        words = [f"O={prepared}", "C=2", f"CHECK={check}", *(f"{name}/" for name in FOLDERS)]
        said = make(linux, *words)
    finally:
        planted.write_text(text)
    found = [
        line for line in re.findall(r".*\b(?:warning|error): .*", said) if "drivers/block" in line
    ]
    assert len(found) == 1 and "intree_planted" in found[0], said[-3000:]


@pytest.mark.long
def test_coccicheck(linux: Path) -> None:
    for name in FOLDERS:
        said = make(linux, "coccicheck", "MODE=report", f"M={name}", "J=2")
        assert re.findall(rf"^.*{name}/.*:\d+.*$", said, re.MULTILINE) == []


@pytest.mark.long
def test_checkpatch(linux: Path, tmp_path: Path) -> None:
    """checkpatch --strict has nothing to say of each patch, but for ALLOWED."""
    git(linux, "format-patch", "--quiet", "-o", str(tmp_path), f"{BRANCH}~7..{BRANCH}")
    patches = sorted(tmp_path.glob("*.patch"))
    assert len(patches) == 7
    found = []
    for patch in patches:
        done = subprocess.run(
            ["perl", linux / "scripts/checkpatch.pl", "--strict", "--terse", "--show-types",
             "--showfile", "--no-summary", patch],
            capture_output=True, text=True, check=False, cwd=linux,
        )  # fmt: skip
        for file, kind, what in re.findall(
            r"^(\S+?):\d+: \w+:(\w+): (.*)$", done.stdout, re.MULTILINE
        ):
            allowed = [kinds for top, kinds in ALLOWED.items() if file.startswith(top)]
            if not any(kind in kinds for kinds in allowed):
                found.append(f"{patch.name}: {file}: {kind}: {what}")
    assert found == []


@pytest.mark.long
def test_kernel_doc(linux: Path) -> None:
    files = [path for name in FOLDERS for path in sorted((linux / name).glob("*.[ch]"))]
    files.append(linux / "include/uapi/linux/biogen.h")
    tool = next(
        path
        for path in (linux / "tools/docs/kernel-doc", linux / "scripts/kernel-doc")
        if path.exists()
    )
    done = subprocess.run(
        [tool, "-none", "-Werror", *files], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
def test_kselftest(linux: Path) -> None:
    """run_tests and kselftest-list, on a machine without the modules: everything is skipped."""
    at = linux / "tools/testing/selftests"
    make(linux, "-s", "headers")
    words = ["TARGETS=blknull biogen", "FORCE_TARGETS=1"]
    said = make(at, *words, "run_tests")
    results = re.findall(r"^(ok|not ok) \d+ selftests: (\w+): (\S+)(.*)$", said, re.MULTILINE)
    assert results and all(result == "ok" and "# SKIP" in rest for result, _, _, rest in results), (
        said
    )
    installed = linux.parent / "installed"
    make(at, *words, "install", f"INSTALL_PATH={installed}")
    listed = subprocess.check_output([installed / "run_kselftest.sh", "-l"], text=True).split()
    assert sorted(listed) == sorted(f"{where}:{what}" for _, where, what, _ in results)
    # A user may not read the folders of the test.
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(installed, Path(name, "installed"))
        subprocess.run(["chmod", "-R", "a+rX", name], check=True)
        said = subprocess.check_output(
            ["sh", "-c", f"{name}/installed/run_kselftest.sh | cat"], text=True, cwd="/",
            **({"user": 65534} if os.geteuid() == 0 else {}),
        )  # fmt: skip
    assert said.count("1..0 # SKIP must be run as root\n") == len(results), said
    make(at, *words, "LONG=1", "install", f"INSTALL_PATH={installed}")
    longer = subprocess.check_output([installed / "run_kselftest.sh", "-l"], text=True).split()
    assert set(longer) - set(listed) == {
        "blknull:blknull_churn",
        "biogen:biogen_file",
        "biogen:biogen_io",
        "biogen:biogen_run",
    }
