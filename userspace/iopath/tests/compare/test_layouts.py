# SPDX-License-Identifier: GPL-2.0
"""What of a layout decides a figure."""

import subprocess
from pathlib import Path

import pytest

from helpers.compiled import compiled
from helpers.pairs import PLAIN, compared, shown, two
from iopath.base.sources import source_root
from iopath.compare.layouts import of_layout

LAYOUTS = 16

# What layout.c leaves behind: open files, pages that were taken, those that are free again, and how
# far down the stack goes on.
PROGRAM = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t room;
static char freed[100], *pages, *base;

static void *map(void *at, size_t size, int how, int flags, int fd, off_t offset)
{
    room = size / 4096;
    return pages = mmap(at, size, how, flags, fd, offset);
}

static int drop(char *page, size_t size, int advice)
{
    freed[(page - pages) / 4096] = 1;
    return madvise(page, size, advice);
}

#define mmap map
#define madvise drop
#include "layout.c"

static void look(struct job *job, struct shared *shared)
{
    int files = 0, nr_freed = 0, kept = 0;
    unsigned char there[100];

    for (int fd = 3; fd < 1000; fd++)
        files += fcntl(fd, F_GETFD) >= 0;
    for (int i = 0; i < 100; i++)
        nr_freed += freed[i];
    if (pages)
        mincore(pages, room * 4096, there);
    for (size_t i = 0; i < room; i++)
        kept += there[i] & 1;
    printf("%d %d %d %td\\n", files, kept + nr_freed, nr_freed,
           base - (char *)__builtin_frame_address(0));
    fflush(stdout);
}

int main(void)
{
    base = __builtin_frame_address(0);
    for (int number = 0; number < 16; number++) {
        if (!fork()) {
            layout_call(number, look, NULL, NULL);
            exit(0);
        }
        wait(NULL);
    }
    return 0;
}
"""


def test_layouts_are_those_of_ioloop(tmp_path: Path) -> None:
    source = source_root() / "userspace/ioloop"
    program = compiled(tmp_path, PROGRAM.replace('"layout.c"', f'"{source}/layout.c"'))
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    found = [[int(word) for word in line.split()] for line in said.splitlines()]
    assert [line[:3] for line in found] == [[*of_layout(n).values()] for n in range(LAYOUTS)]
    depths = [line[3] - found[0][3] for line in found]
    assert depths[0] == 0
    assert len({*depths}) > LAYOUTS / 2
    assert 1024 < max(depths) <= 2048


@pytest.mark.parametrize(
    ("longer", "said"),
    [
        (lambda layout: layout["files are open"] >= 10, "+70.00 where 11 or more files are open"),
        (lambda layout: layout["pages are free"] < 5, "+70.00 where 4 or fewer pages are free"),
        (lambda layout: layout["pages are taken"] in (1, 9, 13, 16, 19), ""),
        (lambda layout: layout["files are open"] >= 15, ""),  # two layouts may be chance
    ],
)
def test_what_decides_is_said(longer: object, said: str) -> None:
    """The row says which layouts take more, in the table and where the change is."""
    whole = two(PLAIN)
    own = whole["results"][0]["boots"][0]
    parts = [of_layout(number) for number in range(LAYOUTS)]
    varied = [own + 70.0 * longer(part) for part in parts]
    for record, values in zip(whole["results"], ([own] * LAYOUTS, varied), strict=True):
        for name in [name for name in record if name.endswith("boots")]:
            record[name] = record[name][:2]
        record["counts"] = {name: boots[:2] for name, boots in record["counts"].items()}
        record["layouts"] = [values, values[:4]]
        record["command"].append(f"--layouts={LAYOUTS}")
    (text,) = compared(whole).rungs[0].differences["new"].findings
    assert text.partition(": ")[2] == said
    lines = [line for line in shown(whole) if "layouts" in line]
    assert len(lines) == 2
    assert all(line.endswith(said) for line in lines)
    # Which layouts they are is not known if one has no value.
    del whole["results"][1]["layouts"][0][15]
    (text,) = compared(whole).rungs[0].differences["new"].findings
    assert "where" not in text
