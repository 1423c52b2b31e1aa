# SPDX-License-Identifier: GPL-2.0
"""The operations that are measured."""

OPS = ("read", "write")
