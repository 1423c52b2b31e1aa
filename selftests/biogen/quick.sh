#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The files of biogen without what takes seconds; one kind of disk and of engine
# each of biogen_io, and what ends a run of the generator. All of the tests take
# some minutes: "make LONG=1 run_tests".

cd "$(dirname "$0")" || exit 1
./biogen_file -T dirtied_in_flight -T node_races -T load_races || exit
./biogen_io -v brd_sync -v timer_uring -v bad_vector || exit
exec ./biogen_run -V slow -t waits -t signal -t close -t error
