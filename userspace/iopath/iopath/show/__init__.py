# SPDX-License-Identifier: GPL-2.0
"""Results and comparisons for people: terminal, Markdown, page, charts."""
