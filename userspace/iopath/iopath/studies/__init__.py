# SPDX-License-Identifier: GPL-2.0
"""Questions of many measurements: bisect, series, features."""
