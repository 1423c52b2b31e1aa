# SPDX-License-Identifier: GPL-2.0
"""The operations that are measured."""

OPS = ("read", "write")
OF_RUNG = (*OPS, "none")  # a rung may do no I/O
