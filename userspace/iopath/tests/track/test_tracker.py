# SPDX-License-Identifier: GPL-2.0
"""iopath track: its file, what it keeps, the steps that it finds, and its site."""

import copy
import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import counted
import kcidb_io.schema
import pytest
from browser import Browser
from command import Command, write_index
from examples import BOOTS, STACKS, a_record, a_result
from planted import commit, git, history
from rich.console import Console
from shared_lines import a_boot, a_line, merged
from tracking import (
    ASKED,
    FILE,
    LONGER,
    Planted,
    a_point,
    a_tracker,
    config,
    index_of,
    keep,
    site,
    wanted,
    write_file,
)

from iopath.base.cache import Cache
from iopath.base.errors import UsageError
from iopath.base.progress import Reporter
from iopath.commands import track
from iopath.kernels.apt import Package
from iopath.measure.session import Session
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import Result
from iopath.rungs.runs import Settings
from iopath.show import texts
from iopath.track import kcidb, store
from iopath.track import site as tracksite
from iopath.track.index import Index
from iopath.track.report import SiteReport
from iopath.track.store import Point
from iopath.track.tracker import News

__all__ = ["history", "site"]


RUNGS = 'rungs = ["syscall", "dio.pread"]'


# The file.


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


def test_bad_command_lines(empty: Command, tmp_path: Path) -> None:
    file = write_file(tmp_path)
    assert "no-such.toml: No such file" in empty.fails("track", tmp_path / "no-such.toml", status=2)
    assert "git:linux: there is no such folder" in empty.fails("track", file, status=2)
    assert not file.with_suffix("").exists()
    assert "it is not a folder" in empty.fails("track", file, "--output", file, status=2)
    assert "no such folder" in empty.fails("track", file, "--csv", "/no/such/file", status=2)
    assert "no such folder" in empty.fails("track", file, "--mail", "/no/such/file", status=2)


def test_files_are_results(tmp_path: Path) -> None:
    """compare reads them; the same result gives the same bytes; each function has a line."""
    point = a_point(1)
    keep(tmp_path, [point])
    path = tmp_path / point.path
    text = path.read_text()
    keep(tmp_path, [point])
    assert path.read_text() == text
    whole = result.load(path)
    assert whole.names == [point.title]
    assert len(whole.results) == 3
    read, data = store.read(path)
    assert read == point
    assert list(data) == sorted(data)
    lines = text.splitlines()
    assert sum('"name": "vfs_read"' in line for line in lines) == 2
    assert len(text) < 3 * len(json.dumps(data))
    json.loads(text)


def test_a_debian_kernel_has_the_date_of_its_banner(tmp_path: Path) -> None:
    made = a_result([a_record("k", "syscall", "none", 0)])
    made["kernels"][0]["banner"] = "Linux version 6.1 #1 SMP Debian 6.1.192-2 (2026-11-15)"
    point = a_point(1, title="6.1.192-2", position="6.1.192-2", date="", commit="")
    store.write(tmp_path, point, result.make(made))
    assert store.read(tmp_path / point.path)[0].date == "2026-11-15"


def test_what_is_asked_again() -> None:
    known = a_point(1)

    def asked(**fields: Any) -> Point:  # noqa: ANN401
        return a_point(1, asked={**ASKED, **fields})

    assert known.is_answered_by(known)
    assert asked(rungs=["syscall"], boots=1, missing="gone").is_answered_by(known)
    several = ({"cpus": 2}, {"build": "x"}, {"block_sizes": [512]})
    for more in ({"rungs": ["null"]}, {"boots": 5}, *several):
        assert not asked(**more).is_answered_by(known)
    failed = a_point(1, error="does not boot")
    assert known.is_answered_by(failed)
    for other in ({"rungs": ["syscall"]}, {"missing": "headers"}):
        assert not asked(**other).is_answered_by(failed)


def test_a_foreign_file(tmp_path: Path) -> None:
    """A foreign file is named, and nothing is guessed."""
    keep(tmp_path, [a_point(1)])
    (tmp_path / "results/block/other.json").write_text("{}")
    index = Index(tmp_path)
    with pytest.raises(Exception, match=r"other\.json is not a file of iopath track: remove it"):
        index.refresh()


# Steps.


def dump(folder: Path) -> list[tuple]:
    """Everything in an index except the times of files."""
    with sqlite3.connect(folder / "index.sqlite") as database:
        tables = ("kernel", "figure", "pair", "change")
        return [sorted(database.execute(f"select * from {table}")) for table in tables]


def test_planted_step(tmp_path: Path) -> None:
    """A step of five instructions is at its commit, names its function and has its page."""
    points = [a_point(number) for number in range(5)]
    points[2] = a_point(2, error="does not build")
    keep(tmp_path, points, planted=3)
    index = index_of(tmp_path)
    (step,) = index.steps()
    assert (step.before, step.after) == (points[1], points[3])
    (change,) = step.changes
    assert (change.title, change.text) == ("dio.pread read", "+5.00 (+0.83 %)")
    assert (change.verdict, change.functions) == ("longer", "vfs_read +5.00")
    page = (tmp_path / step.page).read_text()
    assert "dio.pread read +5.00 (+0.8 %)" in page
    assert [path.name for path in (tmp_path / "steps/block").iterdir()] == [step.page.name]
    shown = tracksite.points(config(tmp_path), index)["watches"][0]
    assert [one["title"] for one in shown["points"]] == [p.title for p in points if not p.error]
    assert shown["steps"][0]["page"] == str(step.page)
    assert [one["error"] for one in shown["failed"]] == ["does not build"]


def test_planted_shared_line(tmp_path: Path) -> None:
    """A commit that only adds a shared line is a step, which names it."""
    line = a_line("bios_submitted", locked=True, by="submit_bio")
    for number in range(2):
        record = a_record("k", "dio.pread", "read", 4096)
        boots = [a_boot([line] if number else [])] * BOOTS
        record |= {"cpus": 2, "sharing": merged(boots, "dio.pread")}
        store.write(tmp_path, a_point(number), result.make(a_result([record])))
    (step,) = index_of(tmp_path).steps()
    (change,) = step.changes
    assert (change.title, change.difference, change.verdict) == ("dio.pread read", 0, "same")
    shared = "CPUs share files: writes +1.00, locked +1.00: new bios_submitted: submit_bio"
    assert change.functions == shared


def test_index_is_made_again(tmp_path: Path) -> None:
    """An index that followed the files is the same as one made from all of them."""
    points = [a_point(number) for number in range(6)]
    keep(tmp_path, points[:2])
    index_of(tmp_path).close()
    keep(tmp_path, [points[5]])
    (tmp_path / points[0].path).unlink()
    index_of(tmp_path).close()
    keep(tmp_path, points[1:], planted=2)
    index_of(tmp_path).close()
    followed = dump(tmp_path)
    pages = sorted((tmp_path / "steps").rglob("*.html"))
    assert len(pages) == 1
    (tmp_path / "index.sqlite").unlink()
    pages[0].unlink()
    index_of(tmp_path).close()
    assert dump(tmp_path) == followed
    assert sorted((tmp_path / "steps").rglob("*.html")) == pages
    (tmp_path / "index.sqlite").write_bytes(b"nonsense" * 1000)
    index_of(tmp_path).close()
    assert dump(tmp_path) == followed


def test_few_boots_are_marked(tmp_path: Path) -> None:
    """With one boot the noise is not known: any difference is a step, with a mark."""
    for number in range(3):
        records = [a_record("k", "dio.pread", "read", 4096, LONGER if number == 2 else STACKS)]
        for record in records:
            record["boots"] = record["boots"][:1]
        store.write(tmp_path, a_point(number), result.make(a_result(records)))
    (step,) = index_of(tmp_path).steps()
    assert (step.after.title, step.changes[0].text) == (a_point(2).title, "+5.00 (+0.83 %)?")


def test_measured_differently(tmp_path: Path) -> None:
    """Results of another QEMU are not compared; the text says why."""
    keep(tmp_path, [a_point(0)])
    made = a_result([a_record("k", "dio.pread", "read", 4096, LONGER)])
    made["qemu"]["version"] = "8.0"
    store.write(tmp_path, a_point(1), result.make(made))
    (step,) = index_of(tmp_path).steps()
    assert step.changes == []
    assert "qemu: version '7.2' and '8.0'" in step.differing[0]


def test_commits_of_a_branch(history: Path, tmp_path: Path) -> None:
    """The first parents from START on: chosen commits stay chosen when the branch grows."""
    session = Session(Cache(tmp_path / "cache"), Reporter(Console(), quiet=True))
    main = git(history, "rev-parse", "--abbrev-ref", "HEAD")
    start = git(history, "rev-list", "--max-parents=0", "HEAD")
    text = FILE.replace("linux@v6.12..for-next", f"{history}@{start}..{main}")

    def subjects(more: str = "") -> list[str]:
        return [one.detail for one in wanted(a_tracker(session, tmp_path, text + more))]

    assert subjects() == [f"commit {number}" for number in range(7)]
    assert subjects("every = 4") == ["commit 0", "commit 4"]
    other = wanted(a_tracker(session, tmp_path, text + 'arch = "arm64"'))
    assert {one.arch for one in other} == {"aarch64"}
    git(history, "checkout", "--quiet", "-b", "topic", "HEAD~2")
    (history / "other").write_text("x")
    commit(history, "other", "on the branch")
    git(history, "checkout", "--quiet", main)
    git(history, "merge", "--quiet", "--no-ff", "-m", "the merge", "topic")
    assert subjects("every = 4") == ["commit 0", "commit 4"]
    assert subjects()[-2:] == ["commit 6", "the merge"]
    assert subjects("merges = true") == ["commit 0", "the merge"]
    positions = [int(one.position) for one in wanted(a_tracker(session, tmp_path, text))]
    assert positions == list(range(positions[0], positions[0] + 8))


PROGRAM = FILE.replace(RUNGS, 'program = { command = ["dd", "bs=4k"], device = "mq" }')


class Reads(Planted):
    """A session in which a program's read takes five instructions more on the commits of
    *longer*."""

    def results(self, names: Sequence[str], settings: Settings) -> dict[str, Result]:
        assert settings.program
        assert settings.program.command == ["dd", "bs=4k"]
        self.calls.append([name.rpartition("@")[2] for name in names])
        found: dict[str, Result] = {}
        for name in names:
            read = 105 if name.rpartition("@")[2] in self.longer else 100
            found[name] = counted.a_program({name: [counted.a_boot(read)] * settings.boots})
        return found


def test_a_program_is_tracked(history: Path, tmp_path: Path) -> None:
    """Its whole and its system calls have charts, steps and objects of KCIDB; the idle task has
    none. Another command line is measured again."""
    main = git(history, "rev-parse", "--abbrev-ref", "HEAD")
    start = git(history, "rev-list", "--max-parents=0", "HEAD")
    text = PROGRAM.replace("linux@v6.12..for-next", f"{history}@{start}..{main}")
    session = Reads(tmp_path)
    tracker = a_tracker(session, tmp_path, text)
    points = wanted(tracker)
    session.longer = {point.commit for point in points[4:]}
    (step,) = tracker.run().steps
    assert (step.before.detail, step.after.detail) == ("commit 3", "commit 4")
    assert {change.title: change.difference for change in step.changes}["read"] == 5.0
    shown = json.loads((tmp_path / "site/points.json").read_text())["watches"][0]
    assert {rung["title"] for rung in shown["rungs"]} == {"the whole", "read"}
    session.calls.clear()
    assert a_tracker(session, tmp_path, text).run().measured == []
    other = wanted(a_tracker(session, tmp_path, text.replace("bs=4k", "bs=8k")))
    assert other[0].is_answered_by(other[0])
    assert not other[0].is_answered_by(points[0])
    tests = kcidb.export(config(tmp_path, text), index_of(tmp_path / "site"))["tests"]
    assert {test["path"] for test in tests} == {"iopath.program.the_whole", "iopath.program.read"}
    assert {test["number"]["unit"] for test in tests} == {"instructions each time"}


DEBIAN = """
rungs = ["syscall", "dio.pread"]
[[watch]]
name = "debian"
kernels = ["debian:5.10", "debian:6.1", "debian:7.2-rt"]
"""


def test_releases_of_debian(recorded: list[Package], tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    write_index(cache.root, recorded)
    session = Session(cache, Reporter(Console(), quiet=True))
    newest = wanted(a_tracker(session, tmp_path, DEBIAN))
    assert [one.line for one in newest] == ["bullseye", "bookworm", "trixie-rt"]
    every = wanted(a_tracker(session, tmp_path, DEBIAN + 'releases = "all"'))
    assert {one.title for one in every} > {one.title for one in newest}
    assert len({one.path for one in every}) == len(every)
    assert every == sorted(every, key=lambda one: one.order)


def test_nothing_new_takes_no_network(
    listed: Command, recorded: list[Package], tmp_path: Path
) -> None:
    """If all kernels are known, or the mirror lacks one, the command only writes a site. A failed
    download is not recorded as a kernel's error."""
    session = Session(Cache(listed.cache), Reporter(Console(), quiet=True))
    text = DEBIAN + 'releases = "all"'
    tracker = a_tracker(session, tmp_path, text)
    every = wanted(tracker)
    missing = [one for one in every if one.asked["missing"]]
    usable = [one for one in every if not one.asked["missing"]]
    assert missing
    keep(tmp_path / "site", usable, planted=len(usable) - 1)
    file = write_file(tmp_path, text)
    done = listed.run("track", file, "--output", tmp_path / "site", "--quiet")
    assert done.returncode == 0
    assert "1 new step." in done.stdout
    assert done.stdout.count("Not measured: ") == len(missing)
    assert "is no longer on the mirror." in " ".join(done.stdout.split())
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "site").rglob("*.*")}
    again = listed.run("track", file, "--output", tmp_path / "site", "--quiet")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    changed = {path.name for path, when in kept.items() if path.stat().st_mtime_ns != when}
    assert changed <= {"steps.json", "index.sqlite"}
    listed.left_nothing()
    (tmp_path / "site" / usable[0].path).unlink()
    failed = listed.run("track", file, "--output", tmp_path / "site", "--quiet")
    assert failed.returncode == 125
    assert "iopath: nothing could be measured: " in failed.stderr
    assert f"{usable[0].title}: " in failed.stderr
    assert not (tmp_path / "site" / usable[0].path).exists()


# Texts and other formats.


def test_views_of_a_site(site: Path) -> None:
    """Its points as JSON, its steps, and the figures and stacks of the kernels of each watch."""
    shown = SiteReport(site, config(site), index_of(site))
    assert shown.json() == (site / tracksite.POINTS).read_text()
    assert "results/block" not in shown.html()
    rows = [line for line in shown.markdown().splitlines() if "| block 000000000005 |" in line]
    assert [" ".join(row.split(" | ")[2:]) for row in rows] == [
        "dio.pread read +5.00 (+0.83 %) vfs_read +5.00 |"
    ]  # fmt: skip
    path = {
        one.kernel: one.value
        for one in shown.figures()
        if (one.title, one.metric) == ("dio.pread read 4 KiB", "instructions")
    }
    assert len(path) == 11
    assert path["block 000000000005"] - path["block 000000000004"] == pytest.approx(5)
    assert {one.kernel for one in shown.stacks()} == {*path}


def test_mail(tmp_path: Path) -> None:
    points = [a_point(number) for number in range(3)]
    keep(tmp_path, points, planted=2)
    index = index_of(tmp_path)
    failed = a_point(3, error="does not boot")
    news = News(index.steps(), points[2:], [failed])
    text = "\n".join(track._text(news, config(tmp_path), Path("site")))
    assert text.splitlines() == [
        "The path: 1 new step.",
        "",
        "block: 000000000001 to 000000000002 (2026-11-01)",
        "    subject 2",
        "    dio.pread read: +5.00 (+0.83 %): vfs_read +5.00",
        "    site/steps/block/000000000001..000000000002.html",
        "",
        "Measured: block 000000000002.",
        "",
        "Not measured: block 000000000003: does not boot.",
    ]
    assert list(track._text(News([], points, []), config(tmp_path), Path("site"))) == []


def test_kcidb(tmp_path: Path) -> None:
    """KCIDB's own library accepts it, and it has each figure."""
    keep(tmp_path, [a_point(0), a_point(1, error="does not build")])
    text = 'url = "https://example.org/io"\n' + FILE.replace("git:linux", "git:https://h/linux.git")
    index = index_of(tmp_path)
    found = kcidb.export(config(tmp_path, text), index)
    kcidb_io.schema.V5_3.validate(found)
    assert kcidb_io.schema.V5_3.is_valid(found)
    broken = copy.deepcopy(found)
    broken["tests"][0]["number"]["value"] = "many"
    assert not kcidb_io.schema.V5_3.is_valid(broken)
    assert [build["status"] for build in found["builds"]] == ["PASS", "ERROR"]
    paths = {test["path"]: test["number"]["value"] for test in found["tests"]}
    assert sorted(paths) == [
        "iopath.dio.pread.read.4096", "iopath.dio.pread.write.4096", "iopath.syscall",
    ]  # fmt: skip
    figures = index.figures(a_point(0))
    assert paths["iopath.dio.pread.read.4096"] == figures["dio.pread", "read", 4096][0]
    builds = {build["id"]: build["checkout_id"] for build in found["builds"]}
    assert {test["build_id"] for test in found["tests"]} < set(builds)
    assert set(builds.values()) == {one["id"] for one in found["checkouts"]}
    assert found["checkouts"][0]["git_repository_branch"] == "for-next"


# The site in a browser.

MANY = 1000


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    chromium.window(1400)
    chromium.media()
    chromium.errors.clear()
    yield chromium
    assert chromium.errors == []


def show(browser: Browser, site: Path, address: str = "") -> None:
    browser.call("Page.navigate", url="about:blank")
    browser.wait("location.href === 'about:blank'")
    browser.call("Page.navigate", url=f"{(site / 'index.html').as_uri()}#{address}")
    browser.wait("document.readyState === 'complete' && location.protocol === 'file:'")
    browser.settle()


def text_of(browser: Browser, selector: str) -> str:
    return browser.run(f"document.querySelector({json.dumps(selector)}).innerText")


def test_site_shows_the_step(browser: Browser, site: Path) -> None:
    """The planted step is marked in the chart, listed, and leads to its functions."""
    show(browser, site)
    assert "block: 8 kernels from 000000000000 to 000000000007" in text_of(browser, "#about")
    assert browser.run("document.querySelectorAll('#plot .step').length") == 1
    label = browser.run("document.querySelector('#plot .step').ariaLabel")
    assert label == "000000000005: +5.00 (+0.83 %)"
    written = browser.run("document.querySelector('#plot .label').textContent")
    assert written == "00000000 +5.00 vfs_read"
    step = " ".join(text_of(browser, "#steps li").split())
    assert "000000000004 to 000000000005" in step
    assert "dio.pread read: +5.00 (+0.83 %): vfs_read +5.00" in step
    assert text_of(browser, "#answer") == (
        "000000000007 (2026-11-01) against 000000000006: mean same; no step."
    )
    assert text_of(browser, "#extremes") == (
        "Largest increase: dio.pread read +5.00 (+0.83 %) in 000000000005: vfs_read +5.00."
    )
    rows = browser.run(
        "[...document.querySelectorAll('#matrix tbody tr')].map((row) => row.innerText)"
    )
    assert [" ".join(row.split()) for row in rows] == [
        "syscall 43.43 43.43 43.43 43.43 43.43",
        "dio.pread read 601.93 601.93 606.93 +0.8 % 606.93 606.93",
        "dio.pread write 601.93 601.93 601.93 601.93 601.93",
    ]
    mean = " ".join(text_of(browser, "#matrix tfoot").split())  # the root of the product
    assert mean.startswith("mean of 2 rungs 601.93 same 601.93 same 604.42 +0.4 % 604.42 same")
    assert not browser.run("document.getElementById('unknown').checkVisibility()")
    assert "does not boot" in browser.run("document.querySelector('#failed').textContent")
    for link in ("#steps a", "#plot .step", "#matrix td a", "#extremes a"):
        show(browser, site)
        browser.run(
            f"document.querySelector({json.dumps(link)})"
            ".dispatchEvent(new MouseEvent('click', {bubbles: true}))"
        )
        browser.wait("location.pathname.endsWith('000000000004..000000000005.html')")
        browser.wait("document.readyState === 'complete'")
        assert "+5.00" in text_of(browser, "#about")


def test_every_link_of_the_site_leads_to_a_file(browser: Browser, site: Path) -> None:
    for watch in ("block", "debian"):
        show(browser, site, f"watch={watch}")
        links = browser.run(
            "[...document.querySelectorAll('a')].map((one) => one.getAttribute('href'))"
            ".filter((one) => !one.startsWith('#'))"
        )
        assert len(links) > 4
        for link in links:
            name = re.sub(r"%([0-9A-F]{2})", lambda hit: chr(int(hit[1], 16)), link.split("#")[0])
            assert (site / name).is_file(), link
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)", (site / "index.html").read_text())


def test_keys(browser: Browser, site: Path) -> None:
    show(browser, site, "rung=dio.pread/read/4096")
    browser.run("document.getElementById('plot').focus()")
    browser.press("n")
    told = text_of(browser, "#told")
    assert "000000000005: " in told
    assert "vfs_read +5.00" in told
    browser.press("ArrowRight")
    assert "000000000006: " in text_of(browser, "#told")
    browser.press("p")
    browser.press("+")
    words = browser.run("location.hash")
    assert "from=" in words
    assert browser.run("document.querySelectorAll('#plot circle:not(.ring)').length") == 4
    browser.press("0")
    assert browser.run("document.querySelectorAll('#plot circle:not(.ring)').length") == 8
    assert "from=" not in browser.run("location.hash")
    browser.press("Enter")
    browser.wait("location.pathname.endsWith('000000000004..000000000005.html')")


def test_lines_and_pairs(browser: Browser, site: Path) -> None:
    """Lines can be hidden; two kernels are side by side; steps are filtered."""
    show(browser, site, "watch=debian&rung=dio.pread/read/4096")
    assert browser.run("document.querySelectorAll('#plot circle:not(.ring)').length") == 3
    browser.run("document.querySelector('#lines input').click()")
    assert browser.run("document.querySelectorAll('#plot circle:not(.ring)').length") == 1
    assert browser.run("location.hash").endswith("hide=bookworm")
    rows = browser.run(
        "[...document.querySelectorAll('#beside tbody tr')].map((row) => row.innerText)"
    )
    assert [row.split("\t")[-1] for row in rows] == ["same", "+5.00 (+0.83 %)", "same"]
    assert "iopath compare results/debian/6.1.190-1.json" in text_of(browser, "#command")
    show(browser, site, "watch=debian&one=6.1.192-2")
    assert browser.run("document.querySelector('#command a').getAttribute('href')").startswith(
        "steps/debian/6.1.192-2..6.12.117-1.html"
    )
    show(browser, site, "find=no_such_function")
    assert text_of(browser, "#more-steps") == "No step matches."


def test_gap(browser: Browser, tmp_path: Path) -> None:
    """The line is dashed where QEMU changed, and the command there takes the result of both. Counts
    of two versions are not subtracted."""
    points = [a_point(number) for number in range(3)]
    keep(tmp_path, points[:2])
    made = a_result([a_record(name, "dio.pread", "read", 4096) for name in ("k", "l")])
    made["qemu"]["version"] = "8.0"
    both = result.make(made)
    store.write(tmp_path, points[2], result.alone(both, "l"))
    pair = store.pair(points[1], points[2])
    store.write_pair(tmp_path, pair, both)
    tracksite.write(tmp_path, config(tmp_path), index_of(tmp_path))
    show(browser, tmp_path, f"rung=dio.pread/read/4096&one={points[1].title}")
    paths = [
        re.sub(
            "[^A-Z]", "", browser.run(f"document.querySelector('#plot {way}').getAttribute('d')")
        )
        for way in (".l0 path", "path.broken")
    ]
    assert paths == ["MHVM", "MHV"]
    assert f"iopath compare {pair.path} --html" in text_of(browser, "#command")
    assert (tmp_path / pair.path).is_file()
    assert "QEMU 7.2 to 8.0" in text_of(browser, "#notes")
    show(browser, tmp_path, f"one={points[0].title}")
    assert "the two cannot be compared" in text_of(browser, "#command")
    assert text_of(browser, "#beside tbody td.change") == "-"


def test_the_newest_kernel_is_first(browser: Browser, tmp_path: Path) -> None:
    """The answer is what the newest kernel changed. A question mark is explained."""
    keep(tmp_path, [a_point(number) for number in range(3)], planted=2)
    for path in store.points(tmp_path):
        data = json.loads(path.read_text())
        for record in data["results"]:
            record["boots"], record["rounds"] = record["boots"][:1], 9
        path.write_text(json.dumps(data))
    tracksite.write(tmp_path, config(tmp_path), index_of(tmp_path))
    show(browser, tmp_path)
    assert " ".join(text_of(browser, "#answer").split()) == (
        "000000000002 (2026-11-01) against 000000000001: mean +0.4 %; the largest steps:"
        " dio.pread read +5.00 (+0.83 %)?: vfs_read +5.00."
    )
    assert "+0.8\u00a0%?" in text_of(browser, "#matrix tbody")
    assert text_of(browser, "#unknown") == texts.UNKNOWN


def test_points_are_enough_for_the_page(browser: Browser, site: Path) -> None:
    """It has all figures, and no link to what does not lie beside it."""
    browser.open(tracksite.alone(json.loads((site / tracksite.POINTS).read_text())))
    browser.settle()
    alone = text_of(browser, "#matrix")
    links = "[...document.querySelectorAll('a')].map((one) => one.getAttribute('href') ?? '')"
    assert all(link.startswith("#") for link in browser.run(links))
    show(browser, site)
    assert text_of(browser, "#matrix") == alone
    assert not all(link.startswith("#") for link in browser.run(links))


def test_a_chart_is_drawn_again_in_another_window(browser: Browser, site: Path) -> None:
    """Its text keeps its size."""
    show(browser, site)
    browser.window(390)
    browser.wait("document.querySelector('#plot svg').viewBox.baseVal.width < 390")


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_anyone_can_use_it(browser: Browser, site: Path, width: int, scheme: str) -> None:
    """It fits the width, and axe finds nothing wrong, contrast included."""
    browser.window(width)
    browser.media(scheme=scheme)
    for watch in ("block", "debian"):
        show(browser, site, f"watch={watch}")
        assert browser.run("document.documentElement.scrollWidth") <= width
        browser.open_details()
        assert browser.inaccessible() == []


def test_many_points(browser: Browser, tmp_path: Path) -> None:
    keep(tmp_path, [a_point(number) for number in range(MANY)], MANY // 2, stacks=None)
    index = index_of(tmp_path)
    tracksite.write(tmp_path, config(tmp_path), index)
    index.refresh()
    index.compare(Layers(), lambda text: None)
    tracksite.write(tmp_path, config(tmp_path), index)
    show(browser, tmp_path, "rung=dio.pread/read/4096")
    assert f"{MANY} kernels" in text_of(browser, "#about")
    assert browser.run("document.querySelectorAll('#plot .step').length") == 1
    assert browser.run("document.querySelectorAll('#matrix thead th').length") == 6
    browser.run("document.querySelector('#more-rows button').click()")
    assert browser.run("document.querySelectorAll('#matrix thead th').length") == MANY + 1
    for _ in range(5):
        browser.run("zoom(0.5)")
    browser.run("document.querySelector('#choice [name=out]').click()")
    assert "from=" in browser.run("location.hash")
