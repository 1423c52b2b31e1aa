# SPDX-License-Identifier: GPL-2.0
"""The jobs of forges, in ci/: their steps are run with the variables and files of a runner, and
talk to a server that answers as the forge does."""

import http.server
import importlib.util
import json
import os
import re
import subprocess
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from helpers.examples import STACKS, a_record, a_result
from helpers.planted import FUNCTION, PLACE, commit, git, plant
from helpers.repositories import kernel_repository
from iopath.base.arch import X86_64
from iopath.base.sources import source_root
from iopath.compare import compare
from iopath.measure.session import Session
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import ExactResult
from iopath.studies import series
from iopath.studies.series import SeriesCommit

guest = pytest.mark.guest

CI = source_root() / "ci"
ACTION = yaml.safe_load((CI / "action.yml").read_text())
OPTIONS = "--rung 'dio.pread' --op read --fail-above 0"
TOKEN = "a token"

# The pull requests: their commits in the repository of planted commits, the status, and what is
# said of them.
REQUESTS = [
    ("HEAD~3", "HEAD~2", 0, "0 of 1 commits change"),
    ("HEAD~2", "HEAD~1", 1, "1 of 1 commits changes"),
    ("HEAD~1", "HEAD", 125, "1 could not be measured"),
]


class Server(http.server.ThreadingHTTPServer):
    """A forge with the comments of one pull request. It has pages of two, and refuses others'
    tokens."""

    def __init__(self, changes: str, header: tuple[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.changes = changes  # the method that changes a comment
        self.header = header
        self.comments = [{"id": number, "body": f"a remark {number}"} for number in range(3)]
        self.refuses = False

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def ours(self) -> list[str]:
        return [one["body"] for one in self.comments if "a remark" not in one["body"]]


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def _answer(self, status: int, found: object) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    def _handle(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        sent = json.loads(self.rfile.read(size)) if size else {}
        name, value = self.server.header
        path, _, query = self.path.partition("?")
        if self.headers.get(name) != value or (self.server.refuses and self.command != "GET"):
            self._answer(403, {"message": "Resource not accessible by integration"})
        elif self.command == "GET" and path in (
            "/repos/o/linux/issues/7/comments", "/projects/9/merge_requests/7/notes",
        ):  # fmt: skip
            page = int(re.search(r"\bpage=(\d+)", query)[1])
            self._answer(200, self.server.comments[2 * page - 2 : 2 * page])
        elif self.command == "POST":
            self.server.comments.append({"id": 100, **sent})
            self._answer(201, self.server.comments[-1])
        elif self.command == self.server.changes and (
            found := re.fullmatch(
                r"/(?:repos/o/linux/issues/comments|projects/9/merge_requests/7/notes)/(\d+)", path
            )
        ):
            (one,) = (one for one in self.server.comments if one["id"] == int(found[1]))
            one |= sent
            self._answer(200, one)
        else:
            self._answer(404, {"message": "Not Found"})

    do_GET = do_POST = do_PATCH = do_PUT = _handle

    def log_message(self, *args: object) -> None:
        pass


Serve = Callable[[str, tuple[str, str]], Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    started: list[Server] = []

    def start(changes: str, header: tuple[str, str]) -> Server:
        server = Server(changes, header)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def steps(tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The scripts of the action's steps, and their variables, with what a runner fills in."""
    known = {
        "github.token": TOKEN, "inputs.token": TOKEN, "inputs.mirror": "",
        "inputs.options": OPTIONS, "runner.temp": str(tmp_path / "runner"),
    }  # fmt: skip

    def filled(text: str) -> str:
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], text)

    for step in ACTION["runs"]["steps"]:
        if "run" in step:
            yield step["run"], {name: filled(one) for name, one in step.get("env", {}).items()}


def script(text: str, variables: Mapping[str, str], folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text], cwd=folder, text=True,
        env={**os.environ, **variables}, capture_output=True, check=False, timeout=3600,
    )  # fmt: skip


@pytest.fixture
def linux(session: Session, tmp_path: Path) -> Path:
    """A runner's checkout of the repository with planted commits."""
    git(tmp_path, "clone", "--quiet", "--shared", str(kernel_repository(session, X86_64)), "linux")
    return tmp_path / "linux"


class Runner:
    """GitHub's runner for the pull requests of a repository: a server, files and variables."""

    def __init__(self, linux: Path, folder: Path, serve: Serve, more: Mapping[str, str]) -> None:
        self._linux = linux
        self._folder = folder
        self._serve = serve
        self._more = more
        (folder / "runner").mkdir()

    def request(self, first: str, last: str, status: int, said: str, *, install: bool) -> Server:
        """Run the steps of a pull request twice: it has one comment. The exit status, the outputs,
        the summary and the annotations are those of the series."""
        linux, folder = self._linux, self._folder
        server = self._serve("PATCH", ("Authorization", f"Bearer {TOKEN}"))
        ends = {
            name: git(linux, "rev-parse", one) for name, one in (("base", first), ("head", last))
        }
        event = {
            "pull_request": {"number": 7, **{name: {"sha": one} for name, one in ends.items()}}
        }
        (folder / "event.json").write_text(json.dumps(event))
        for attempt in range(2):
            done, text, outputs = self.steps(server, f"{last}-{attempt}", install=install)
            assert done.returncode == status, done.stderr
            assert [text] == server.ours
            assert said in text
            assert outputs["verdict"] == {0: "passed", 1: "grew"}.get(status, "unknown")
            commits = json.loads(Path(outputs["json"]).read_text())["commits"]
            assert [one["commit"] for one in commits] == [one[:12] for one in ends.values()]
            _check_annotations(linux, last, status, done.stdout, text)
        return server

    def steps(
        self, server: Server, name: str, *, install: bool = False
    ) -> tuple[subprocess.CompletedProcess, str, dict[str, str]]:
        """Run the action's steps: how the last one ended, the summary and the outputs."""
        folder = self._folder
        files = {one: folder / f"{name}-{one}" for one in ("OUTPUT", "STEP_SUMMARY")}
        variables = {
            "GITHUB_EVENT_PATH": str(folder / "event.json"), "GITHUB_REPOSITORY": "o/linux",
            "GITHUB_API_URL": server.address, "GITHUB_WORKSPACE": str(self._linux),
            "GITHUB_ACTION_PATH": str(CI), "RUNNER_TEMP": str(folder / "runner"),
            "HOME": str(folder), **{f"GITHUB_{one}": str(path) for one, path in files.items()},
        }  # fmt: skip
        for text, own in [*steps(folder)][0 if install else -1 :]:
            done = script(text, variables | own | self._more, self._linux)
        outputs = dict(line.split("=") for line in files["OUTPUT"].read_text().splitlines())
        return done, files["STEP_SUMMARY"].read_text(), outputs


def _check_annotations(linux: Path, last: str, status: int, printed: str, text: str) -> None:
    """The line that grew is annotated, and the one that does not compile."""
    annotations = [line for line in printed.splitlines() if line.startswith("::")]
    if status == 1:
        (annotation,) = annotations
        place = re.match(rf"::warning file={PLACE},line=(\d+),title=iopath::", annotation)
        source = git(linux, "show", f"{last}:{PLACE}").splitlines()
        assert "nop" in source[int(place[1]) - 1]
        assert f"{FUNCTION} takes +5.00 instructions per I/O in dio.pread read" in annotation
        assert "| dio.pread read | +5.00 (+0." in text
    elif status == 125:
        assert [one.partition(",")[0] for one in annotations] == ["::warning file=block/bdev.c"]
        assert "not measured: does not build: block/bdev.c:" in text
    else:
        assert annotations == []


@guest
@pytest.mark.long
def test_pull_requests_measured(
    session: Session, linux: Path, tmp_path: Path, serve: Serve
) -> None:
    """The steps install iopath and measure each pull request."""
    runner = Runner(linux, tmp_path, serve, {"IOPATH_CACHE": str(session.cache.root)})
    for request in REQUESTS:
        runner.request(*request, install=True)


@guest
@pytest.mark.long
def test_a_merge_request_measured(session: Session, linux: Path, serve: Serve) -> None:
    _merge_request(linux, serve, {"IOPATH_CACHE": str(session.cache.root)}, first=1)


# A stand-in for iopath series: it writes a result that was made before, and has its status.
SERIES = """#!/bin/sh
[ "$1" = series ] || exit 0
for word; do case $word in *.json) file=$word ;; *..*) range=${word##*@} ;; esac; done
cat "$(dirname "$0")/$range.json" >"$file"
exit "$(cat "$(dirname "$0")/$range.status")"
"""


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A repository with the planted commits in a small part of a kernel."""
    linux = tmp_path / "linux"
    (linux / "block").mkdir(parents=True)
    git(linux, "init", "--quiet")
    (linux / PLACE).write_text(f"void {FUNCTION}(int a)\n{{\n\tint b;\n\n\tuse(b);\n}}\n")
    commit(linux, PLACE, "the source")
    for name in ("bio.c", "bdev.c"):
        (linux / "block" / name).write_text("/* a comment */\n")
        if name == "bio.c":
            commit(linux, f"block/{name}", "a comment")
            plant(linux)
            commit(linux, PLACE, "five instructions more")
    (linux / "block/bdev.c").write_text("int broken(\n")
    commit(linux, "block/bdev.c", "a syntax error")
    return linux


@pytest.fixture
def known(planted: Path, tmp_path: Path) -> dict[str, str]:
    """The results of the pull requests, and the variables with which they are found."""

    def measured(name: str, more: int) -> ExactResult:
        path = ("loop [user]", "do_syscall_64", FUNCTION)
        stacks = [*STACKS, (path, "block core", 20.0 + more)]
        return result.parse(a_result([a_record(name, "dio.pread", "read", 4096, stacks)]))

    folder = tmp_path / "known"
    folder.mkdir()
    (folder / "iopath").write_text(SERIES)
    (folder / "iopath").chmod(0o755)
    error = "does not build: /src/block/bdev.c:1:12: error: expected declaration (log: /x)"
    for first, last, status, _ in REQUESTS:
        one, two = (git(planted, "rev-parse", name)[:12] for name in (first, last))
        subjects = [git(planted, "log", "-1", "--format=%s", name) for name in (one, two)]
        before, after = measured(one, 0), measured(two, 5 if status == 1 else 0)
        whole = compare.join([(one, before), (two, after)])
        head = SeriesCommit(one, subjects[0], result=before)
        entry = SeriesCommit(
            two, subjects[1], "", one, after, compare.compare(whole, Layers()), whole
        )
        if status == 125:
            entry = SeriesCommit(two, subjects[1], error)
        (folder / f"{one}..{two}.json").write_text(series.dump([head, entry]))
        (folder / f"{one}..{two}.status").write_text(str(status))
    return {"IOPATH": str(folder / "iopath")}


def test_pull_requests_of_github(
    planted: Path, known: Mapping[str, str], tmp_path: Path, serve: Serve
) -> None:
    """One comment for each, also when its job runs again. The token of a fork may only read."""
    runner = Runner(planted, tmp_path, serve, known)
    for request in REQUESTS:
        server = runner.request(*request, install=False)
    server.refuses, before = True, server.ours
    done, text, _ = runner.steps(server, "fork")
    assert done.returncode == 125
    assert "the forge does not take the comment: HTTP Error 403" in done.stdout
    assert server.ours == before == [text]


def test_a_merge_request_of_gitlab(planted: Path, known: Mapping[str, str], serve: Serve) -> None:
    _merge_request(planted, serve, known, first=4)


def _merge_request(linux: Path, serve: Serve, more: Mapping[str, str], first: int) -> None:
    """The same by the notes of a merge request, and a code quality report; by the lines of the
    script from the *first* on."""
    spec, job = yaml.safe_load_all((CI / "gitlab.yml").read_text())
    assert [*spec["spec"]["inputs"]] == ["iopath", "options", "image", "stage"]
    job = job["iopath"]
    server = serve("PUT", ("PRIVATE-TOKEN", TOKEN))
    (linux / ".iopath").mkdir()
    (linux / ".iopath/source").symlink_to(source_root())
    runner = {
        "CI_API_V4_URL": server.address, "CI_PROJECT_ID": "9", "CI_MERGE_REQUEST_IID": "7",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(linux, "rev-parse", "HEAD~2"),
        "CI_COMMIT_SHA": git(linux, "rev-parse", "HEAD~1"), "IOPATH_TOKEN": TOKEN,
        "OPTIONS": OPTIONS, **more,
    }  # fmt: skip
    for _ in range(2):
        done = script("\n".join(job["script"][first:]), runner, linux)
        assert done.returncode == 1, done.stderr
        (text,) = server.ours
        assert "1 of 1 commits changes" in text
    reports = job["artifacts"]["reports"]
    (issue,) = json.loads((linux / reports["codequality"]).read_text())
    assert issue["location"]["path"] == PLACE
    assert (linux / reports["dotenv"]).read_text().startswith("IOPATH_VERDICT=grew\n")


@pytest.mark.parametrize(("first", "last", "status", "_"), REQUESTS)
def test_tap(
    planted: Path, known: Mapping[str, str], first: str, last: str, status: int, _: str
) -> None:
    """A commit is a test, which fails, passes or is skipped; and so does the program."""
    one, two = (git(planted, "rev-parse", name)[:12] for name in (first, last))
    done = subprocess.run(
        [CI / "tap.py", f"{one}..{two}", "--fail-above", "0"], env={**os.environ, **known},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    name = f"1 iopath: {two} {git(planted, 'log', '-1', '--format=%s', two)}"
    line = {
        0: f"ok {name}", 1: f"not ok {name}",
        125: f"ok {name} # SKIP does not build: /src/block/bdev.c:1:12: error: expected declaration"
        " (log: /x)",
    }[status]  # fmt: skip
    assert done.stdout.splitlines()[:3] == ["TAP version 13", "1..1", line]
    assert done.returncode == {0: 0, 1: 1, 125: 4}[status]
    assert ("# dio.pread read +5.00\n" in done.stdout) == (status == 1)


LAVA = yaml.safe_load((CI / "lava.yaml").read_text())


def _lava(linux: Path, tmp_path: Path, more: Mapping[str, str]) -> list[str]:
    """The steps of the definition for a lab, but for those that install iopath: the results that
    the lab's program was given."""
    folder = tmp_path / "lab"
    folder.mkdir(exist_ok=True)
    for name in ("ci", "build", "userspace"):
        (folder / name).symlink_to(source_root() / name)
    (folder / "bin").mkdir()
    (folder / "bin/lava-test-case").write_text('#!/bin/sh\necho "$*" >>results\n')
    (folder / "bin/lava-test-case").chmod(0o755)
    start, branch = (git(linux, "rev-parse", name)[:12] for name in ("HEAD~2", "HEAD~1"))
    given = {"LINUX": str(linux), "START": start, "BRANCH": branch, **more}
    path = f"{folder}/bin:{os.environ['PATH']}"
    script = "\n".join(["set -e", *LAVA["run"]["steps"][2:]])
    done = subprocess.run(
        ["sh", "-c", script], env={**os.environ, **LAVA["params"], **given, "PATH": path},
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (folder / "iopath.tap").read_text() in done.stdout
    assert tomllib.loads((folder / "iopath.toml").read_text())["origin"] == "iopath"
    return [*(folder / "results").read_text().splitlines(), branch]


def test_a_lab(planted: Path, known: Mapping[str, str], tmp_path: Path) -> None:
    line, commit = _lava(planted, tmp_path, known)
    assert line == f"{commit} --result fail"


@guest
@pytest.mark.long
def test_a_lab_measured(session: Session, linux: Path, tmp_path: Path) -> None:
    """Its file has a checkout and a build of both commits, and their figures."""
    branch = git(linux, "rev-parse", "--abbrev-ref", "HEAD")
    git(linux, "reset", "--quiet", "--hard", "HEAD~1")
    start = git(linux, "rev-parse", "HEAD~1")
    more = {"IOPATH_CACHE": str(session.cache.root), "START": start, "BRANCH": branch}
    line, _ = _lava(linux, tmp_path, more)
    assert line.endswith("--result fail")
    found = json.loads((tmp_path / "lab/kcidb.json").read_text())
    one, two = (
        test["number"]["value"] for test in found["tests"] if test["path"].count("read") > 1
    )
    assert two - one == pytest.approx(5, abs=0.01)


def test_lines_of_functions_that_grew() -> None:
    """A definition, and no prototype or caller, if the change touches it."""
    spec = importlib.util.spec_from_file_location("report", CI / "report.py")
    report = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(report)
    source = [
        "void grew(int a);", "static noinline void", "other(void)", "{", "\tgrew(1);", "}", "",
        "void grew(int a)", "{", "\tint b;", "\tuse(b);", "}",
    ]  # fmt: skip
    assert report._changed_line("grew", source, [range(1, 2), range(5, 6), range(11, 12)]) == 11
    assert report._changed_line("grew", source, [range(1, 8)]) == 0
    assert report._changed_line("missing", source, [range(1, 12)]) == 0
