# SPDX-License-Identifier: GPL-2.0
"""The types of a result. They know nothing of how it was made."""
