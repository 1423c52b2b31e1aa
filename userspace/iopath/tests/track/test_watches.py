# SPDX-License-Identifier: GPL-2.0
"""iopath track: its file."""

from pathlib import Path

import pytest

from helpers.tracking import FILE, config
from iopath.base.errors import UsageError

RUNGS = 'rungs = ["syscall", "dio.pread"]'


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("rungs", "rings"), "the top: unknown key 'rings'"),
        (("dio.pread", "dio.preed"), "rungs: unknown rung 'dio.preed': did you mean 'dio.pread'?"),
        (('rungs = ["syscall", "dio.pread"]', "rungs = []"), "rungs must be a list of names of"),
        (('"The path"', "3"), "title must be a string"),
        (('"The path"', '"x"\nboots = 0'), "boots must be a number from 1 on"),
        (('"The path"', '"x"\ncpus = 9'), "cpus must be a number of CPUs from 1 to 8"),
        (('"The path"', '"x"\nurl = "ftp://x"'), "url must be an address that begins with https"),
        (('"The path"', '"x"\nblock_sizes = [513]'), "block_sizes must be a list of multiples of"),
        (('"The path"', '"x"\nops = ["trim"]'), "ops must be a list of 'read' and 'write'"),
        (('name = "block"', ""), "a watch has no name: set name to a string"),
        (('name = "block"', 'name = "a b"'), "invalid name 'a b': use a-z, 0-9"),
        (('name = "block"', 'name = "block"\nevery = 0'), "every must be a number from 1 on"),
        (('name = "block"', 'name = "block"\nsuite = "woody"'), "suite must be one of bullseye"),
        (('name = "block"', 'name = "block"\nreleases = "all"'), "releases is for kernels of Deb"),
        (('name = "block"', 'name = "block"\nkconfig = ["x"]'), "invalid option 'x': must be like"),
        (('name = "block"', 'name = "block"\narch = "arm"'), "arch must be one of amd64, arm64"),
        (("v6.12..for-next", "v6.12"), "it must be git:PATH@START..BRANCH"),
        (("v6.12..for-next", "v6.12...x"), "it must be git:PATH@START..BRANCH"),
        (("git:linux@v6.12..for-next", "tree:linux"), "cannot be watched: it must be debian:SER"),
        (('["git:linux@v6.12..for-next"]', "[]"), "kernels must be a list of kernels, each once"),
        (('-next"]', '-next", "debian:6.1"]'), "a branch is watched alone"),
        (('["git:linux@v6.12..for-next"]', '["debian:6.1"]\nevery = 2'), "every is for commits"),
        (('kernels = ["git:linux@v6.12..for-next"]', ""), "no kernels: e.g. kernels = ["),
        (("[[watch]]", "[watch]"), "watch must be tables: write [[watch]]"),
        (('[[watch]]\nname = "block"\nkernels = ["git:linux@v6.12..for-next"]', ""),
         "nothing to watch: add a table [[watch]] with name and kernels"),
        (("title", "=title"), "is not TOML"),
        (("rungs = [", "program = {}\nrungs = ["), "rungs is for rungs: leave it out with [progr"),
        ((RUNGS, "program = {}"), "program: no command: e.g. command"),
        ((RUNGS, 'program = { device = "sda" }'), "device must be one"),
        ((RUNGS, "program = { package = 1 }"), "package must be the name of a package, or a list"),
    ],
)  # fmt: skip
def test_mistakes(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    assert change[0] in FILE
    with pytest.raises(UsageError) as found:
        config(tmp_path, FILE.replace(*change))
    assert message in str(found.value)
    assert "\n" not in str(found.value)


def test_two_watches_of_one_name(tmp_path: Path) -> None:
    twice = FILE + FILE[FILE.index("[[watch]]") :]
    with pytest.raises(UsageError, match=r"two tables \[\[watch\]\] have the name 'block'"):
        config(tmp_path, twice)


def test_rungs_of_a_file(tmp_path: Path) -> None:
    """Its rungs are measured alone, or those that are named, as by --rungs and --rung."""
    (tmp_path / "found.toml").write_text(
        "".join(f'[[rung]]\nname = "search.{n}"\nparts = ["dio", "pread"]\n\n' for n in (1, 2))
    )
    alone = config(tmp_path, FILE.replace(RUNGS, 'rung_file = "found.toml"'))
    assert [rung.name for rung in alone.rungs] == ["search.1", "search.2"]
    named = f'rung_file = "found.toml"\n{RUNGS.replace("syscall", "search.1")}'
    some = config(tmp_path, FILE.replace(RUNGS, named))
    assert [rung.name for rung in some.rungs] == ["dio.pread", "search.1"]
    with pytest.raises(UsageError, match=r"none\.toml: No such file"):
        config(tmp_path, FILE.replace(RUNGS, 'rung_file = "none.toml"'))
