#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# One kind of disk and of engine each of biogen_io, and what ends a run of the
# generator. All of the tests take some minutes: "make LONG=1 run_tests".

cd "$(dirname "$0")" || exit 1
./biogen_io -v brd_sync -v timer_uring -v bad_vector
status=$?
[ $status -eq 0 ] || exit $status
exec ./biogen_run -v brd -t waits -t signal -t close -t error
