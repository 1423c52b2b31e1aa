# SPDX-License-Identifier: GPL-2.0
"""Programs that are counted: what they do is known."""

import subprocess
from pathlib import Path

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


def compiled(folder: Path, source: str, compiler: str = "gcc") -> Path:
    """A static program."""
    (folder / "program.c").write_text(source)
    subprocess.run(
        [compiler, "-O1", "-static", "-o", folder / "program", folder / "program.c"], check=True
    )
    return folder / "program"
