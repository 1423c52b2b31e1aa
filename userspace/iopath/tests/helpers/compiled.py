# SPDX-License-Identifier: GPL-2.0
"""Programs that are counted: what they do is known."""

import subprocess
from pathlib import Path

from iopath.base.programs import SUITE
from iopath.kernels.root import root, sandbox
from iopath.measure.session import Session

READS = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
static char data[4096] __attribute__((aligned(4096)));
int main(void)
{
    int fd = open("/dev/blknull0", O_RDONLY | O_DIRECT);

    for (int i = 0; i < 1000; i++)
        if (pread(fd, data, sizeof(data), 0) != sizeof(data))
            return 1;
    return 0;
}
"""

BPF = """
#define SEC(name) __attribute__((section(name), used))
#define TWENTY ".rept 20; r1 += 1; .endr"
char terms[] SEC("license") = "GPL";
static unsigned long long seen;
"""

# Records of a log: with an fsync() for each, or a system call for each of their parts.
LOG = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static char part[16];
int main(int argc, char **argv)
{
    FILE *log = fopen(argv[1], "w");

    if (!log || argc != 2)
        return 1;
#ifdef UNBUFFERED
    setvbuf(log, NULL, _IONBF, 0);
#endif
    for (int i = 0; i < 100; i++) {
        for (int n = 0; n < 16; n++)
            if (fwrite(part, sizeof(part), 1, log) != 1)
                return 2;
        if (fflush(log))
            return 3;
#ifdef SYNC
        if (fsync(fileno(log)))
            return 4;
#endif
    }
    return 0;
}
"""


def compiled(folder: Path, source: str, compiler: str = "gcc") -> Path:
    """A static program."""
    (folder / "program.c").write_text(source)
    subprocess.run(
        [compiler, "-O1", "-static", "-o", folder / "program", folder / "program.c"], check=True
    )
    return folder / "program"


def compiled_bpf(session: Session, folder: Path, name: str, source: str) -> Path:
    """An object of eBPF. Clang is in a root file system of its own."""
    at = root(
        "Clang", ["clang"], {"for": "eBPF"}, SUITE, session.cache, session.apt,
        lambda what, part: None,
    )  # fmt: skip
    (folder / f"{name}.c").write_text(BPF + source)
    words = ("--target=bpf", "-O2", "-g", "-c", f"/build/{name}.c", "-o", f"/build/{name}.o")
    subprocess.run([*sandbox(at, "--bind", folder, "/build"), "clang", *words], check=True)
    return folder / f"{name}.o"
