# SPDX-License-Identifier: GPL-2.0
"""What the tests share. pytest finds it: see "pythonpath" in pyproject.toml."""
