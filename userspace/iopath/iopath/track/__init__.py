# SPDX-License-Identifier: GPL-2.0
"""The watch of kernels, its store and its site."""
