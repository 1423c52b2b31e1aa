# SPDX-License-Identifier: GPL-2.0
"""The modules build for every supported kernel without a warning, also of sparse."""

import itertools
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers.cases import cases
from iopath.base.process import need
from iopath.base.sources import module_sources, source_root
from iopath.kernels.sources.debian import DebianKernel, headers_root
from iopath.measure.session import Session

KERNELS = os.environ.get("KERNEL", "5.10 6.1 6.12 7.2 7.3").replace("debian:", "").split()
MODULES = {path.parent.name for path in (source_root() / "kernel").glob("*/Kbuild")}


# Debian 12's sparse, 0.6.4, cannot read the headers of newer ones: __typeof_unqual__, and the
# assertion in MODULE_INFO.
SPARSE = [series for series in KERNELS if series in ("5.10", "6.1", "6.12")] or ["6.12"]


def quiet(what: str, part: float) -> None:
    pass


@pytest.mark.parametrize("series", KERNELS)
def test_build(session: Session, series: str) -> None:
    """There is no warning with W=1."""
    built = session.find(f"debian:{series}").prepare(session.cache, session.apt, quiet)
    assert built.warnings == []
    assert built.modules.keys() == MODULES


@pytest.mark.parametrize("series", KERNELS)
def test_32_bit(session: Session, series: str) -> None:
    """A 32-bit kernel is refused in one line, by the compiler, and DKMS leaves it out."""
    kernel = session.find(f"debian:{series}")
    assert isinstance(kernel, DebianKernel)
    root = headers_root(kernel, session.cache, session.apt, quiet)
    headers = root / f"usr/src/linux-headers-{kernel.release}/include/generated/uapi"
    assert (headers / "linux/version.h").exists()
    for defined, errors in (
        ([], ["iopath: this kernel is 32-bit, only 64-bit ones are supported"]),
        (["-DCONFIG_64BIT"], []),
    ):
        done = subprocess.run(
            [need("gcc", "gcc"), "-E", f"-I{headers}", *defined,
             source_root() / "kernel/compat/version.h"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert re.findall(r'error: #error "(.*)"', done.stderr) == errors, done.stderr
    assert 'BUILD_EXCLUSIVE_CONFIG="CONFIG_64BIT"' in (source_root() / "dkms.conf").read_text()


@pytest.mark.parametrize("line", ["CONFIG_CC_IS_GCC=y", "CONFIG_CC_IS_CLANG=y"])
def test_compiler(tmp_path: Path, line: str) -> None:
    """make and DKMS build modules with the compiler that built the kernel."""
    (tmp_path / ".config").write_text(f"CONFIG_64BIT=y\n{line}\n")
    (tmp_path / "Makefile").write_text("modules:\n\t@echo x LLVM=$(LLVM) x\n")
    make = ["make", "-s", "-C", source_root(), "modules", f"KDIR={tmp_path}"]
    script = (
        'kernel_source_dir=$1 dkms_tree=/var/lib/dkms; . "$2"; echo "${MAKE[0]}"; echo "$CLEAN"'
    )
    dkms = ["bash", "-euc", script, "bash", tmp_path, source_root() / "dkms.conf"]
    for command, number in ((make, 1), (dkms, 2)):
        said = subprocess.check_output(command, text=True)
        assert said.count(" LLVM=1 ") == (number if "CLANG" in line else 0), said


@pytest.mark.parametrize("series", cases(SPARSE, quick=SPARSE[-1:]))
def test_sparse(session: Session, series: str, tmp_path: Path) -> None:
    """sparse runs in the kernel's build root, with this machine's program."""
    kernel = session.find(f"debian:{series}")
    assert isinstance(kernel, DebianKernel)
    root = headers_root(kernel, session.cache, session.apt, quiet)
    for path in module_sources():
        target = tmp_path / path.relative_to(source_root())
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    # A fault that sparse must find, which shows that it has run.
    with (tmp_path / "kernel/blknull/main.c").open("a") as source:
        source.write("int iopath_planted;\n")
    done = subprocess.run(
        [need("bwrap", "bubblewrap"), "--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev",
         "--tmpfs", "/tmp", "--ro-bind", "/", "/tmp/host", "--bind", tmp_path, "/src",
         "--chdir", "/src", "--unshare-all", "--die-with-parent", "--setenv", "LC_ALL", "C",
         "make", "-C", f"/usr/src/linux-headers-{kernel.release}", "M=/src",
         # Debian's headers lack the script that C= runs first.
         "KBUILD_CHECKSRC=2", f"CHECK={_on_host(need('sparse', 'sparse'))}", "modules"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    found = set(re.findall(r"^/?(?:src/)?(.*?:) (?:warning|error): (.*)$", said, re.MULTILINE))
    planted = {text for _, text in found if "iopath_planted" in text}
    assert planted == {"symbol 'iopath_planted' was not declared. Should it be static?"}, said
    assert {(at, text) for at, text in found if text not in planted} == set()


# The machine code of the path of registered memory: no full barrier while the count is per CPU.
REGISTERED = (
    "biogen_read_reg",
    "biogen_write_reg",
    "biogen_read_iter_reg",
    "biogen_write_iter_reg",
)
DISPATCH = ("biogen_read", "biogen_write", "biogen_read_iter", "biogen_write_iter")
BARRIER = re.compile(r"^(?:lock |mfence|lfence|sfence|cpuid|xchg .*\()")
Code = dict[int, str]  # instructions by address


def disassembled(module: Path) -> dict[str, Code]:
    """The functions of a module for x86-64."""
    listing = subprocess.run(
        [need("objdump", "binutils"), "-d", "--no-show-raw-insn", module],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    functions: dict[str, Code] = {}
    code: Code = {}
    for line in listing.splitlines():
        if found := re.match(r"[0-9a-f]+ <([\w.]+)>:$", line):
            code = functions[found[1].partition(".")[0]] = {}
        elif found := re.match(r" *([0-9a-f]+):\t(.*?) *$", line):
            code[int(found[1], 16)] = found[2]
    return functions


def barriers(code: Code) -> list[str]:
    """The full barriers that can be reached without taking the branch for a percpu_ref whose count
    is one of all CPUs: the branch after a test of its two lowest bits."""
    places = sorted(code)
    after = dict(itertools.pairwise(places))
    found, seen, todo = [], set(), places[:1]
    before = {after[place]: place for place in after}
    while todo:
        place = todo.pop()
        if place in seen or place not in code:
            continue
        seen.add(place)
        text = code[place]
        if BARRIER.match(text):
            found.append(f"{place:x}: {text}")
        jump = re.match(r"(j\w+) +([0-9a-f]+)", text)
        tested = place in before and re.match(r"test +\$0x3,%", code[before[place]])
        if jump and not (tested and jump[1] == "jne"):
            todo.append(int(jump[2], 16))
        if not (jump and jump[1] == "jmp") and not text.startswith(("ret", "ud2", "int3")):
            todo += [after[place]] if place in after else []
    assert len(seen) > 5
    return found


@pytest.mark.parametrize("series", [one for one in KERNELS if one != "5.10"])
def test_no_barrier_on_the_registered_path(session: Session, series: str) -> None:
    built = session.find(f"debian:{series}").prepare(session.cache, session.apt, quiet)
    functions = disassembled(built.modules["biogen"])
    for name in (*REGISTERED, *DISPATCH):
        assert barriers(functions[name]) == [], name
    # The branch that is not taken, and bios that end later, have some.
    assert any(BARRIER.match(text) for text in functions["biogen_read_reg"].values())
    assert barriers(functions["biogen_io_end_later"]) != []
    called = [text for name in REGISTERED for text in functions[name].values()]
    assert not any("srcu" in text for text in called)


def test_planted_barrier() -> None:
    code = {0: "test   $0x3,%al", 2: "jne    20 <x+0x20>", 4: "nop", 5: "nop", 6: "nop", 7: "ret",
            0x20: "lock incq (%rax)", 0x24: "jmp    4 <x+0x4>"}  # fmt: skip
    assert barriers(code) == []
    assert barriers(code | {5: "mfence"}) == ["5: mfence"]
    assert barriers(code | {0: "test   $0x1,%al"}) == ["20: lock incq (%rax)"]


@pytest.mark.parametrize("series", KERNELS)
def test_exit_waits_for_tasks(session: Session, series: str) -> None:
    """A task that has dropped the last reference may still be in a module's code."""
    kernel = session.find(f"debian:{series}")
    assert isinstance(kernel, DebianKernel)
    built = kernel.prepare(session.cache, session.apt, quiet)
    root = headers_root(kernel, session.cache, session.apt, quiet)
    config = (root / f"usr/src/linux-headers-{kernel.release}/.config").read_text()
    wanted = "synchronize_rcu" + ("_tasks" if "CONFIG_TASKS_RCU=y" in config else "")
    for name, module in built.modules.items():
        used = subprocess.run(
            [need("nm", "binutils"), "--undefined-only", module],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert re.search(rf"\b{wanted}$", used, re.MULTILINE), name


def _on_host(program: str) -> str:
    """A program of this machine, which is at /tmp/host, with its own C library."""
    loader = Path("/lib64/ld-linux-x86-64.so.2").resolve()
    libraries = f"/tmp/host{loader.parent}"
    return f"/tmp/host{loader} --library-path {libraries} /tmp/host{Path(program).resolve()}"
