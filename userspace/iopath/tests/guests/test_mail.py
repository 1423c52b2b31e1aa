# SPDX-License-Identifier: GPL-2.0
"""A series of patches that came by mail: what each costs, and the reply."""

import json
import re
import resource
import shutil
from pathlib import Path

import pytest

from helpers.command import Command
from helpers.mailed import mails, mbox
from helpers.planted import PLACE, commit, git, nops, plant
from helpers.repositories import (
    DEFERRED,
    SELDOM,
    SEVEN,
    kernel_repository,
    plant_deferred,
    plant_error,
    plant_seldom,
)
from iopath.base.arch import X86_64
from iopath.measure.session import Session

guest = pytest.mark.guest

SIZE = 65536
SPLIT = 4  # requests of an I/O of SIZE
RUNG = ("--rung", "mq.pread", "--op", "read", "--bs", "64k", "--cpus", "2")

_COUNTER = """\
static atomic_t planted_counter __aligned(64);

"""


def _shared(tree: Path) -> None:
    plant(tree, "\tatomic_inc(&planted_counter);\n", _COUNTER, "bio_endio", "block/bio.c")
    commit(tree, "block/bio.c", "block: count the bios that end")


def _split(tree: Path) -> None:
    """Requests have at most 16 KiB."""
    place = "block/blk-settings.c"
    text = (tree / place).read_text()
    limit = "\tlim->max_sectors = round_down("
    assert text.count(limit) == 1
    at = text.index(";\n", text.index(limit)) + 2
    smaller = f"\tlim->max_sectors = min(lim->max_sectors, {SIZE // SPLIT // 512});\n"
    (tree / place).write_text(f"{text[:at]}{smaller}{text[at:]}")
    commit(tree, place, "block: requests of 16 KiB")


@pytest.fixture
def linux(session: Session, tmp_path: Path) -> Path:
    """A clone with eight commits, of which the sixth does not build and the last is a revert. The
    mails are for the repository that it was cloned from, whose builds are kept."""
    tree = tmp_path / "linux"
    git(tmp_path, "clone", "--quiet", "--shared", str(kernel_repository(session, X86_64)), "linux")
    git(tree, "checkout", "--quiet", "HEAD~3")
    with (tree / "block/bio.c").open("a") as file:
        file.write("/* another comment */\n")
    commit(tree, "block/bio.c", "block: a comment")
    plant(tree, nops(SEVEN))
    seven = commit(tree, PLACE, "block: seven nops")
    plant_seldom(tree, "block: 3,000 nops on each 64th bio")
    _shared(tree)
    # The parts of an I/O do not pass there.
    plant_deferred(tree, "block: call_rcu() for each I/O", "submit_bio")
    plant_error(tree, "block: a syntax error")
    _split(tree)
    git(tree, "revert", "--no-edit", seven)
    return tree


@guest
@pytest.mark.long
def test_a_series_by_mail(session: Session, linux: Path, tmp_path: Path) -> None:
    """Each patch has its figure, and the comment none. The patches after the one that does not
    build are measured without it. The second time, all is known."""
    found = mails(linux, "HEAD~8..", "-v2", "--cover-letter")
    file = mbox(tmp_path / "series.mbox", found[::-1])
    base = kernel_repository(session, X86_64)
    untouched = git(base, "status", "--porcelain"), git(base, "rev-parse", "HEAD")
    out, reply = tmp_path / "series.json", tmp_path / "reply"
    words = ("series", "--from-mail", file, "--onto", f"git:{base}@HEAD~3", *RUNG)
    command = Command(session.cache.root, tmp_path)
    done = command.run(*words, "--json", out, "--reply", reply, timeout=7200)
    assert done.returncode == 125, done.stderr
    assert (git(base, "status", "--porcelain"), git(base, "rev-parse", "HEAD")) == untouched
    commits = json.loads(out.read_text())["commits"]
    assert [bool(one["error"]) for one in commits] == [at == 6 for at in range(9)]
    assert "block/bdev.c:" in commits[6]["error"]
    assert commits[6]["error"].endswith("the patches after it are measured without it")
    rungs = [one["rungs"][0] for one in commits if one["rungs"]]
    assert len(rungs) == 7
    comment, seven, seldom, shared, deferred, split, revert = rungs
    assert (comment["verdict"], comment["difference"]) == ("same", 0.0)
    assert seven["difference"] == pytest.approx(SEVEN, abs=0.01)
    assert seldom["total"] == pytest.approx(SELDOM, rel=0.01)
    assert deferred["total"] == pytest.approx(DEFERRED, rel=0.01)
    assert (shared["difference"], shared["costly"]) == (pytest.approx(1, abs=0.01), {"locked": 1.0})
    assert any("planted_counter" in line for one in shared["shared"] for line in one["lines"])
    assert split["difference"] > 1000
    # Each part of a bio that is split passes there.
    assert revert["difference"] == pytest.approx(-SEVEN * SPLIT, rel=0.01)

    text = reply.read_text()
    lines = text.splitlines()
    assert len(lines) <= 25, text
    assert max(map(len, lines)) <= 72, text
    assert re.match(r"Subject: Re: \[PATCH v2 0/8\] .*\nIn-Reply-To: <\S+>\nReferences: <", text)
    assert "Measured, not timed: instructions per I/O in emulation. Repeat it with:" in lines
    quoted = [line for line in lines if line.startswith("> ")]
    assert quoted == [
        f"> [PATCH v2 {number}/8] {subject}"
        for number, subject in (
            (2, "block: seven nops"),
            (3, "block: 3,000 nops on each 64th bio"),
            (4, "block: count the bios that end"),
            (5, "block: call_rcu() for each I/O"),
            (6, "block: a syntax error"),
            (7, "block: requests of 16 KiB"),
            (8, 'Revert "block: seven nops"'),
        )
    ]
    said = {line[12:15]: lines[at + 1] for at, line in enumerate(lines) if line in quoted}
    assert said["2/8"].startswith("mq.pread read: path +7.00 (")
    assert said["2/8"].endswith("submit_bio_noacct +7.00")
    # A round has 128 bios, so each has the nops of two.
    assert said["3/8"].startswith("mq.pread read: path +49.88 (")
    assert said["5/8"].startswith("mq.pread read: total +")
    assert "planted_callback" in text
    assert "planted_counter" in text
    assert said["6/8"].startswith("does not build: block/bdev.c:")
    assert said["8/8"].startswith("mq.pread read: path -28.00 (")

    # The builds that failed are known, too.
    shutil.rmtree(session.cache.root / "mailed")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    again = command.run(*words, "--reply", "-", timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert again.returncode == 125
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 60
    assert again.stdout == text
    assert "compiling" not in again.stderr


def test_patches_that_do_not_apply(empty: Command, tmp_path: Path) -> None:
    """Nothing is built, and the reply says so."""
    for name in ("linux", "other"):
        (tmp_path / name).mkdir()
        git(tmp_path / name, "init", "--quiet")
        for file in ("Kbuild", "Kconfig", "Makefile"):
            (tmp_path / name / file).write_text(f"# {name}\n")
        git(tmp_path / name, "add", ".")
        git(tmp_path / name, "commit", "--quiet", "--message", "base")
    (tmp_path / "other/Kbuild").write_text("# changed\n")
    commit(tmp_path / "other", "Kbuild", "block: a change")
    file = mbox(tmp_path / "mbox", mails(tmp_path / "other", "HEAD~1.."))
    onto = f"git:{tmp_path}/linux@HEAD"
    done = empty.run("series", "--from-mail", file, "--onto", onto, "--reply", "-")
    assert done.returncode == 125
    assert "> [PATCH] block: a change\ndoes not apply: patch failed: Kbuild:1\n" in done.stdout
    failed = "iopath: no patch could be measured: 1: does not apply: patch failed: Kbuild:1"
    assert done.stderr.splitlines()[-1] == failed


@guest
@pytest.mark.long
def test_nothing_changed(session: Session, linux: Path, tmp_path: Path) -> None:
    """There is a reply only with --always."""
    file = mbox(tmp_path / "one.mbox", mails(linux, "HEAD~8..HEAD~7"))
    onto = f"git:{kernel_repository(session, X86_64)}@HEAD~3"
    words = ("series", "--from-mail", file, "--onto", onto, *RUNG, "--reply", "-")
    command = Command(session.cache.root, tmp_path)
    done = command.run(*words, timeout=3600)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    done = command.run(*words, "--always", timeout=600)
    assert "\n\nNo patch changes anything.\n\n" in done.stdout
