# SPDX-License-Identifier: GPL-2.0
"""The command series, where it refuses."""

from pathlib import Path

from helpers.command import Command

MAIL = """From: A <a@example.org>
Subject: [PATCH] x
Message-Id: <1@example.org>
Date: Thu, 26 Nov 2026 10:00:00 +0000

---
diff --git a/a b/a
--- a/a
+++ b/a
@@ -1 +1 @@
-a
+b
"""


def test_mails_are_applied_to_a_commit(listed: Command, tmp_path: Path) -> None:
    (tmp_path / "mail").write_text(MAIL)
    said = listed.fails(
        "series", "--from-mail", tmp_path / "mail", "--onto", "debian:6.1", status=2
    )
    assert said == "iopath: --onto debian:6.1: not a commit: it must be one of a repository"
