# SPDX-License-Identifier: GPL-2.0
"""Modules and programs are read as nm and modinfo read them."""

import subprocess
from pathlib import Path

import pytest

from iopath.base.arch import AARCH64, X86_64, Arch
from iopath.base.errors import IopathError
from iopath.base.process import need
from iopath.base.programs import cross_compiler, guest_program
from iopath.kernels.elf import (
    HEADER,
    ModuleFunction,
    bpf_programs,
    functions,
    modinfo,
    program_functions,
    without_debug,
)

SOURCE = """
#define INFO(name, text) static const char name[] \\
    __attribute__((section(".modinfo"), used, aligned(1))) = text
INFO(depends, "depends=blknull,crc32c_generic");
INFO(version, "version=1.2 = three");
INFO(alias, "alias=x");
int data = 1;
int nothing;
static __attribute__((used, noinline)) int quiet(int x) { return x + data; }
__attribute__((weak)) int weak(int x) { return x; }
int loud(int x) { return quiet(x) + 1; }
extern int elsewhere(void);
__attribute__((weak)) extern int nowhere(void);
__attribute__((section(".init.text"))) int once(void) { return elsewhere() + !!nowhere; }
__attribute__((section(".text.unlikely"))) int cold(void) { return 3; }
"""


@pytest.fixture(params=[X86_64, AARCH64], ids=lambda arch: arch.name)
def module(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    arch: Arch = request.param
    (tmp_path / "module.c").write_text(SOURCE)
    command = [cross_compiler(arch), "-O2", "-fno-pic", "-c", "module.c", "-o", "module.ko"]
    subprocess.run(command, cwd=tmp_path, check=True)
    return tmp_path / "module.ko"


def test_without_debug(module: Path) -> None:
    """What is left is as strip leaves it, and the functions and .modinfo are the same. A signature
    is behind the file."""
    arch = AARCH64 if HEADER.unpack_from(module.read_bytes())[4] == AARCH64.elf else X86_64
    (with_debug := module.with_name("debug.ko")).write_bytes(b"")
    command = [cross_compiler(arch), "-g", "-O2", "-fno-pic", "-c", "module.c", "-o", with_debug]
    subprocess.run(command, cwd=module.parent, check=True)
    whole = with_debug.read_bytes() + b"signature" * 100
    least = without_debug(whole)
    assert len(least) < len(whole) - 900
    assert functions(least) == functions(module.read_bytes())
    assert modinfo(least) == modinfo(module.read_bytes())
    for name, data in {"whole.ko": whole, "least.ko": least}.items():
        module.with_name(name).write_bytes(data)

    def read(name: str, *options: str) -> str:
        command = [need("readelf", "binutils"), *options, module.with_name(name)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert not done.stderr
        return done.stdout.replace(name, "")

    for options in ("-s", "-x.text", "-x.modinfo", "-x.init.text"):
        assert read("least.ko", options) == read("whole.ko", options)
    # Where the relocations are in the file is not the same.
    least, whole = (
        [part.partition(" at offset ") for part in read(name, "-r").split("\n\n")]
        for name in ("least.ko", "whole.ko")
    )
    kept = [part for part in whole if ".debug" not in part[0]]
    assert [part[0] for part in least] == [part[0] for part in kept]
    assert [part[2].split("\n")[1:] for part in least] == [part[2].split("\n")[1:] for part in kept]


@pytest.mark.parametrize("arch", [X86_64, AARCH64], ids=lambda arch: arch.name)
def test_without_types(arch: Arch, tmp_path: Path) -> None:
    """BTF is kept where it is needed: the module's, and what it takes from the kernel."""
    types = [
        f'asm(".pushsection {name}; .fill 500, 1, {byte}; .popsection");\n'
        for name, byte in ((".BTF", 65), (".BTF.base", 66))
    ]
    (tmp_path / "module.c").write_text(SOURCE + "".join(types))
    command = [cross_compiler(arch), "-O2", "-fno-pic", "-c", "module.c", "-o", "module.ko"]
    subprocess.run(command, cwd=tmp_path, check=True)
    whole = (tmp_path / "module.ko").read_bytes()
    kept, least = without_debug(whole, types=True), without_debug(whole)
    assert b"A" * 500 in kept
    assert b"B" * 500 in kept
    assert b"AA" not in least
    assert b"BB" not in least
    assert functions(least) == functions(kept) == functions(whole)


def test_functions(module: Path) -> None:
    lines = subprocess.run(
        [need("nm", "binutils"), "--format=sysv", "--defined-only", module],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    rows = [[field.strip() for field in line.split("|")] for line in lines if line.count("|") == 6]
    wanted = [
        ModuleFunction(row[6], int(row[1], 16), row[0])
        for row in rows
        if row[2] in tuple("tTwW") and not row[6].startswith(".init") and row[0][0] != "$"
    ]
    found = functions(module.read_bytes())
    assert [*found] == wanted
    assert {one.name for one in found} == {"cold", "loud", "quiet", "weak"}


def test_modinfo(module: Path) -> None:
    found = modinfo(module.read_bytes())
    assert (found["depends"], found["version"]) == ("blknull,crc32c_generic", "1.2 = three")


@pytest.mark.parametrize("data", [b"", b"x" * 100, b"\x7fELF\x01\x01" + bytes(100)])
def test_what_is_no_module(data: bytes) -> None:
    with pytest.raises(IopathError, match="is not a little-endian 64-bit ELF file"):
        modinfo(data)


@pytest.mark.parametrize("arch", [X86_64, AARCH64], ids=lambda arch: arch.name)
def test_functions_of_a_program(arch: Arch) -> None:
    program = guest_program("ioloop", arch)
    lines = subprocess.run(
        [need("nm", "binutils"), program], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    wanted = {line for line in lines if line.split()[-2] in "tTWi"}
    found = program_functions(program.read_bytes()).splitlines()
    assert wanted - {*found} == {line for line in wanted if line.endswith(" data_start")}
    assert {line for line in {*found} - wanted if line.split()[2][0] != "$"} == set()
    assert any(line.endswith(" T main") for line in found)


def test_an_object_of_another_machine_is_none_of_ebpf(module: Path) -> None:
    for data in (module.read_bytes(), b"text"):
        with pytest.raises(IopathError, match="no object of eBPF with a program: build it with"):
            bpf_programs(data)
