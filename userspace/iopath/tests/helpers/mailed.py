# SPDX-License-Identifier: GPL-2.0
"""Mails of a series, as git and mail programs make them."""

import email
import email.policy
import mailbox
from collections.abc import Sequence
from email.message import EmailMessage
from pathlib import Path

from helpers.planted import git


def mails(repository: Path, commits: str, *words: str) -> list[bytes]:
    """The mails that git format-patch makes of a range, each in the thread of the first."""
    folder = repository.parent / "patches"
    folder.mkdir(exist_ok=True)
    options = ("--thread=shallow", "--quiet", "-o", str(folder))
    git(repository, "format-patch", *options, *words, commits)
    found = [path.read_bytes() for path in sorted(folder.iterdir())]
    for path in folder.iterdir():
        path.unlink()
    return found


def encoded(mail: bytes, how: str) -> bytes:
    """A mail with its text in another encoding: "base64" or "quoted-printable"."""
    found = email.message_from_bytes(mail, policy=email.policy.default)
    text = found.get_payload(decode=True).decode()
    del found["Content-Transfer-Encoding"], found["Content-Type"], found["MIME-Version"]
    found.set_content(text.replace("\n", "\r\n"), cte=how)
    return found.as_bytes(unixfrom=True)


def answer(mail: bytes, text: str) -> bytes:
    """A reply to a mail, which quotes all of it."""
    found = email.message_from_bytes(mail, policy=email.policy.default)
    reply = EmailMessage()
    reply["From"] = "A reader <reader@example.org>"
    reply["Date"] = found["Date"]
    reply["Subject"] = f"Re: {found['Subject']}"
    reply["Message-ID"] = "<an-answer@example.org>"
    reply["In-Reply-To"] = found["Message-ID"]
    quoted = "".join(f"> {line}\n" for line in found.get_payload().splitlines())
    reply.set_content(f"{text}\n\n{quoted}")
    return reply.as_bytes()


def mbox(path: Path, found: Sequence[bytes]) -> Path:
    """Write a file of mails in this order."""
    file = mailbox.mbox(path)
    for mail in found:
        file.add(mail)
    file.close()
    return path
