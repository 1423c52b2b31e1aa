# SPDX-License-Identifier: GPL-2.0
"""What is measured: rungs, their runs, features, and the tables of those built in."""
