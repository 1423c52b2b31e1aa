# SPDX-License-Identifier: GPL-2.0
"""The commands, one file each. A command's name is that of its file, and its one line of help is
the first line of the file's docstring. The file has

EXAMPLES            two command lines, which its help begins with
add_options(parser) adds its options
run(args, work)     makes typed values of the options, does the work, and returns the exit status

It is imported when the command is used.
"""
