# SPDX-License-Identifier: GPL-2.0
"""What a program is asked to do that a guest cannot do, or not soon: said before it runs."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from iopath.base.errors import UsageError
from iopath.rungs.builtin import DEVICES

_TEXT = 1 << 20  # bytes of a file that is looked at
_PER_SECOND = 1_000_000_000  # instructions: the guest's clock
_EMULATED = 18_000_000  # instructions in a second of real time, counted: 10 s took 9 min 24 s
_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "m": 60.0, "h": 3600.0, "d": 86400.0}
_OTHER = re.compile(r"[sv]d[a-z]\d*|nvme\d+n\d+(?:p\d+)?")


def check(
    words: Sequence[str], given: Mapping[str, bytes], device: str, mount: str, limit: int,
    warn: Callable[[str], None],
) -> None:  # fmt: skip
    """Look at the *words* of a command line and the files that it is *given*. Raises UsageError if
    a disk is named that the guest has not; warns of a time that takes long to emulate, and refuses
    one that takes more than *limit* instructions."""
    texts = [" ".join(words)]
    texts += [data.decode(errors="replace") for data in given.values() if len(data) <= _TEXT]
    if not mount:
        _disks(texts, device)
    if PurePosixPath(words[0]).name == "fio":
        _time(texts, limit, warn)


def _disks(texts: Sequence[str], device: str) -> None:
    names = {name: PurePosixPath(rung.target or "").name for name, rung in DEVICES.items()}
    for disk in dict.fromkeys(one for text in texts for one in re.findall(r"/dev/(\w+)", text)):
        others = [name for name, of in names.items() if of == disk]
        if device not in others and (others or _OTHER.fullmatch(disk)):
            has = f"the guest has /dev/{names[device]}"
            raise UsageError(
                f"/dev/{disk}: {has}: add --device {others[0]}" if others
                else f"/dev/{disk}: {has}, or another --device ({', '.join(names)})"
            )  # fmt: skip


def _time(texts: Sequence[str], limit: int, warn: Callable[[str], None]) -> None:
    """A job of fio that ends by time."""
    seconds = max((found for text in texts for found in _seconds(text)), default=0.0)
    if not seconds or not any(re.search(r"\btime_based\b(?!=0)", text) for text in texts):
        return
    count = seconds * _PER_SECOND
    minutes = count / _EMULATED / 60
    said = (
        f"fio: runtime={seconds:g} with time_based executes {count:,.0f} instructions, which takes"
        f" about {minutes:,.0f} min of emulation: number_ios=N without time_based ends it by count"
    )
    if count > limit:
        raise UsageError(f"{said}; --max-instructions allows {limit:,}")
    warn(said)


def _seconds(text: str) -> Iterator[float]:
    for number, unit in re.findall(r"\b(?:runtime|timeout|ramp_time)[= ](\d+)([a-z]*)", text):
        yield float(number) * _UNITS.get(unit, 1.0)
