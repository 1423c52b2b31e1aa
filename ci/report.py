#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Measure the commits of a pull request, and tell the forge what each costs.

usage: report.py [--folder FOLDER] [OPTIONS of iopath series]

The job of a forge runs this in the checkout of a kernel. GitHub's and GitLab's variables say which
commits are measured. Written are a comment, which later runs replace, annotations of the lines that
made a function grow, a summary and outputs, and in FOLDER series.json, comment.md and, for GitLab,
codequality.json. The exit status is that of iopath series: 0, 1 if a rung grew by more than
--fail-above, or 125 if there is no verdict.

It needs nothing but Python's standard library and git. IOPATH names another iopath than that of
this checkout.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

MARKER = "<!-- iopath series -->"  # by which the comment is found again
IOPATH = os.environ.get("IOPATH") or Path(__file__).resolve().parents[1] / "build/bin/iopath"
VERDICTS = {0: "passed", 1: "grew"}
_ROWS = 20  # of the comment's table
_TIMEOUT = 60  # seconds that the forge has for an answer


class Line(NamedTuple):
    """A line of the change, and what is said of it."""

    path: str
    number: int
    text: str


class Forge:
    """Comments on a pull request by the forge's API: its *list* of comments, and a comment by its
    number behind *one*. *token* is a header, *change* the method that changes a comment."""

    def __init__(self, comments: str, one: str, token: tuple[str, str], change: str) -> None:
        self._comments = comments
        self._one = one
        self._token = token
        self._change = change

    def _ask(self, address: str, method: str = "GET", body: str | None = None) -> Any:  # noqa: ANN401
        data = None if body is None else json.dumps({"body": body}).encode()
        headers = {"Content-Type": "application/json", self._token[0]: self._token[1]}
        request = urllib.request.Request(address, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            return json.load(answer)

    def _known(self) -> Iterator[dict[str, Any]]:
        page = 1
        while found := self._ask(f"{self._comments}?per_page=100&page={page}"):
            yield from found
            page += 1

    def comment(self, text: str) -> None:
        """Write the comment, or replace the one that an earlier run wrote."""
        for known in self._known():
            if known["body"].startswith(MARKER):
                self._ask(f"{self._one}/{known['id']}", self._change, text)
                return
        self._ask(self._comments, "POST", text)


class GitHub:
    """What GitHub's runner says of the job, and takes from it."""

    def __init__(self) -> None:
        event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text())
        self._request = event.get("pull_request")
        if self._request:
            self.first, self.last = (self._request[end]["sha"] for end in ("base", "head"))
        else:
            self.first, self.last = event["before"], event["after"]

    def forge(self) -> Forge | None:
        token = os.environ.get("GITHUB_TOKEN")
        if not (self._request and token):
            return None
        address = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
        return Forge(
            f"{address}/{self._request['number']}/comments", f"{address}/comments",
            ("Authorization", f"Bearer {token}"), "PATCH",
        )  # fmt: skip

    def tell(self, lines: list[Line], text: str, outputs: dict[str, str], folder: Path) -> None:
        for line in lines:
            said = line.text.replace("%", "%25").replace("\n", "%0A")
            print(f"::warning file={line.path},line={line.number},title=iopath::{said}")
        _append("GITHUB_STEP_SUMMARY", text)
        _append("GITHUB_OUTPUT", "".join(f"{name}={value}\n" for name, value in outputs.items()))

    def warn(self, text: str) -> None:
        print(f"::warning title=iopath::{text}")


class GitLab:
    """What GitLab's runner says of the job, and takes from it."""

    def __init__(self) -> None:
        self.first = (
            os.environ.get("CI_MERGE_REQUEST_DIFF_BASE_SHA") or os.environ["CI_COMMIT_BEFORE_SHA"]
        )
        source = os.environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA")  # of a merged result
        self.last = source or os.environ["CI_COMMIT_SHA"]

    def forge(self) -> Forge | None:
        token, number = (os.environ.get(name) for name in ("IOPATH_TOKEN", "CI_MERGE_REQUEST_IID"))
        if not (token and number):
            return None
        project = f"{os.environ['CI_API_V4_URL']}/projects/{os.environ['CI_PROJECT_ID']}"
        notes = f"{project}/merge_requests/{number}/notes"
        return Forge(notes, notes, ("PRIVATE-TOKEN", token), "PUT")

    def tell(self, lines: list[Line], text: str, outputs: dict[str, str], folder: Path) -> None:
        found = [
            {
                "description": line.text,
                "check_name": "iopath",
                "fingerprint": hashlib.sha256("\0".join(map(str, line)).encode()).hexdigest(),
                "severity": "major",
                "location": {"path": line.path, "lines": {"begin": line.number}},
            }
            for line in lines
        ]
        (folder / "codequality.json").write_text(json.dumps(found, indent=1) + "\n")
        written = "".join(f"IOPATH_{name.upper()}={value}\n" for name, value in outputs.items())
        (folder / "outputs.env").write_text(written)

    def warn(self, text: str) -> None:
        print(f"iopath: {text}", file=sys.stderr)


def _append(variable: str, text: str) -> None:
    """Add to the file that the runner names."""
    if name := os.environ.get(variable):
        with Path(name).open("a") as file:
            file.write(text)


def changed(rung: dict[str, Any]) -> bool:
    return rung["verdict"] != "same" or bool(rung["costly"] or rung["shared"])


def grown(commit: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The functions that a commit made longer, and by how much in the rung where that is most."""
    most: dict[str, tuple[float, str]] = {}
    for rung in commit["rungs"]:
        for part in rung["functions"]:
            title = _title(rung)
            if part["difference"] > most.get(part["name"], (0.0, ""))[0] and changed(rung):
                most[part["name"]] = (part["difference"], title)
    for name, (difference, title) in most.items():
        yield name, f"{name} takes {difference:+,.2f} instructions per I/O in {title}"


def _title(rung: dict[str, Any]) -> str:
    words = [rung["rung"], "" if rung["op"] == "none" else rung["op"]]
    return " ".join(filter(None, words))


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], check=True, capture_output=True, text=True, errors="replace"
    ).stdout


def lines(commits: list[dict[str, Any]], first: str, last: str) -> list[Line]:
    """The first changed line of each function that grew and that the pull request changes; and of
    each file that a compiler refuses."""
    base = _git("merge-base", first, last).strip()
    hunks: dict[str, list[range]] = {}
    path = ""
    for line in _git("diff", "--unified=0", "--no-color", "--no-ext-diff", base, last).splitlines():
        if line.startswith("+++ "):
            path = line[6:]
        elif found := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            start, count = int(found[1]), int(found[2] or 1)
            hunks.setdefault(path, []).append(range(start, start + max(count, 1)))
    texts = {
        path: _git("show", f"{last}:{path}").splitlines()
        for path in hunks
        if path.endswith((".c", ".h"))
    }
    said: dict[Line, None] = {}
    for commit in commits:
        for name, text in grown(commit):
            for path, source in texts.items():
                if number := _changed_line(name, source, hunks[path]):
                    said[Line(path, number, f"{text} ({commit['commit']})")] = None
        if found := re.search(r"/src/(\S+?):(\d+):\d+: .*?(error: .*)", commit["error"] or ""):
            said[Line(found[1], int(found[2]), f"{found[3]} ({commit['commit']})")] = None
    return [*said]


def _changed_line(name: str, source: list[str], hunks: list[range]) -> int:
    """The first line of a function's definition that is in *hunks*; 0 if none is."""
    begins = re.compile(rf"[A-Za-z_].*?\b{re.escape(name)}\s*\((?!.*;\s*$)")
    for at, line in enumerate(source):
        if begins.match(line):
            end = next((i for i in range(at, len(source)) if source[i].startswith("}")), at)
            inside = range(at + 1, end + 2)
            if found := [n for hunk in hunks for n in hunk if n in inside]:
                return min(found)
    return 0


def comment(commits: list[dict[str, Any]], status: int, command: str) -> str:
    """The text for people, in Markdown."""
    measured = [one for one in commits if one["before"]]
    failed = [one for one in commits if one["error"]]
    changes = [one for one in measured if any(map(changed, one["rungs"]))]
    verb = "changes" if len(changes) == 1 else "change"
    verdict = f"{len(changes)} of {len(measured)} commits {verb} what an I/O costs"
    if failed:
        verdict += f"; {len(failed)} could not be measured"
    ends = {0: "", 1: " **More than is allowed.**", 125: " **There is no verdict.**"}
    text = [MARKER, f"### iopath: {verdict}.{ends.get(status, '')}", ""]
    rows = [*_rows(commits)]
    if rows:
        text += [
            "| commit | rung | path | total | functions |",
            "|---|---|--:|--:|---|",
            *rows[:_ROWS],
        ]
        if len(rows) > _ROWS:
            text.append(f"\n{len(rows) - _ROWS} more rows are in series.json.")
        text.append("")
    text += ["Measured, not timed: instructions per I/O in emulation. Repeat it with:", ""]
    return "\n".join([*text, f"    {command}", ""])


def _rows(commits: list[dict[str, Any]]) -> Iterator[str]:
    for one in commits:
        head = f"{one['commit']} {_escaped(one['subject'])}"
        if one["error"]:
            error = one["error"].partition(" (log: ")[0].replace("/src/", "")
            yield f"| {head} | | | | not measured: {_escaped(error)} |"
        for rung in filter(changed, one["rungs"] if one["before"] else ()):
            mark = "?" if rung["verdict"] == "unknown" else ""
            part = "" if rung["percent"] is None else f" ({rung['percent']:+.2f} %)"
            total = "" if rung["total"] is None else f"{rung['total']:+,.2f}"
            what = [f"{part['name']} {part['difference']:+,.2f}" for part in rung["functions"][:3]]
            what += [f"{name} {by:+,.0f}" for name, by in rung["costly"].items()]
            what += [line for shared in rung["shared"] for line in shared["lines"][:1]]
            path = f"{rung['difference']:+,.2f}{mark}{part}"
            yield f"| {head} | {_title(rung)} | {path} | {total} | {_escaped(', '.join(what))} |"


def _escaped(text: str) -> str:
    return re.sub(r"([|<>`*_\[\]\\])", r"\\\1", text)


def main(words: list[str]) -> int:
    folder = Path("iopath")
    if words[:1] == ["--folder"]:
        folder, words = Path(words[1]), words[2:]
    folder.mkdir(parents=True, exist_ok=True)
    job = GitHub() if "GITHUB_EVENT_PATH" in os.environ else GitLab()
    data = folder / "series.json"
    data.unlink(missing_ok=True)
    command = ["iopath", "series", f"{job.first[:12]}..{job.last[:12]}", *words]
    status = subprocess.run([IOPATH, *command[1:], "--json", data], check=False).returncode
    if not data.exists():
        return status or 125
    commits = json.loads(data.read_text())["commits"]
    text = comment(commits, status, shlex.join(command))
    (folder / "comment.md").write_text(text)
    verdict = VERDICTS.get(status, "unknown")
    outputs = {"verdict": verdict, "json": str(data.absolute())}
    job.tell(lines(commits, job.first, job.last), text, outputs, folder)
    try:
        if forge := job.forge():
            forge.comment(text)
    except (urllib.error.URLError, OSError) as error:
        # The token of a fork's pull request may not comment. The summary has the text.
        job.warn(f"the forge does not take the comment: {error}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
