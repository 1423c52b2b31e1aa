# SPDX-License-Identifier: GPL-2.0
"""What each patch of a series costs that came by mail.

Each patch is applied to those before it that apply. If one does not build, and others after it do
not build with it, these are measured without it, if that is possible.
"""

from collections.abc import Callable
from dataclasses import replace

from iopath.base.errors import NotMeasured, UsageError
from iopath.kernels import gitrepo, kbuild, mail
from iopath.kernels.mail import Mail, Series
from iopath.measure.session import Session
from iopath.results.layers import Layers
from iopath.rungs.runs import Settings
from iopath.studies import series
from iopath.studies.series import SeriesCommit

_BROKEN, _REJECTED = "does not build", "does not apply"
_HINDERED = _BROKEN, _REJECTED

# By the number of the patch; 0 is the commit that they are applied to.
Patches = dict[int, SeriesCommit]


def measure(
    session: Session,
    thread: Series,
    onto: str,
    settings: Settings,
    layers: Layers,
    say: Callable[[str], None],
    found: Patches,
) -> None:
    """Measure the patches of a *thread* on the kernel *onto*, a commit. *found* also has what was
    measured if this is interrupted. Raises NotMeasured if no patch could be measured."""

    def once(left_out: list[int], entries: Patches) -> Patches:
        patches = [one for one in thread.patches if one.number not in left_out]
        _measure(session, patches, onto, settings, layers, say, entries)
        return entries

    left_out: list[int] = []
    last = once(left_out, found)
    while without := _hindrance(last):
        say(f"{without}/{len(thread.patches)} does not build: trying the next ones without it")
        last = once([*left_out, without], {})
        if not any(
            found[number].error.startswith(_BROKEN) and not one.error.startswith(_HINDERED)
            for number, one in last.items()
        ):
            break
        left_out.append(without)
        label = f"{without}/{len(thread.patches)}"
        later = {number: one for number, one in last.items() if number > without}
        found |= {
            number: replace(one, error=f"needs {label}") if one.error.startswith(_REJECTED) else one
            for number, one in later.items()
        }  # fmt: skip
        broken = found[without]
        text = f"{kbuild.without_log(broken.error)}; the patches after it are measured without it"
        found[without] = replace(broken, error=text)
    if not any(number and not one.error for number, one in found.items()):
        errors = [f"{number or 'the base'}: {one.error}" for number, one in found.items()]
        raise NotMeasured(f"no patch could be measured: {'; '.join(errors)}")


def _measure(
    session: Session, patches: list[Mail], onto: str, settings: Settings, layers: Layers,
    say: Callable[[str], None], found: Patches,
) -> None:  # fmt: skip
    """Measure patches, each after those before it that apply."""
    commit_of = session.commit(onto)
    if commit_of is None or ".." in onto:
        raise UsageError(f"--onto {onto}: not a commit: it must be one of a repository")
    base, revision = commit_of
    start = base.commit(revision)
    made, applied = mail.apply(session.cache, base, start, patches)
    numbers = {start: 0} | {one.commit: one.mail.number for one in applied if one.commit}
    names = [gitrepo.name(made.path, commit, onto) for commit in numbers]
    entries: list[SeriesCommit] = []
    try:
        if len(names) > 1:
            series.measure(session, names, settings, layers, say, entries)
    except NotMeasured:  # measure() says so if no pass measures any
        pass
    finally:
        short = {name[:12]: number for name, number in numbers.items()}
        found |= {short[one.commit]: one for one in entries}
        for one in applied:
            if one.error:
                found[one.mail.number] = SeriesCommit("", one.mail.title, one.error)
        for number in sorted(found):  # in order
            found[number] = found.pop(number)


def _hindrance(found: Patches) -> int:
    """The first patch that does not build and is followed by others that do not; 0 if none is."""
    broken = [number for number, one in found.items() if one.error.startswith(_BROKEN)]
    return broken[0] if len(broken) > 1 else 0
