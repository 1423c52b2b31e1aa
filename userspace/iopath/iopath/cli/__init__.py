# SPDX-License-Identifier: GPL-2.0
"""What commands have in common: the parser, options, and the files that they write."""
