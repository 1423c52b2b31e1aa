#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run iopath with workers that Slurm starts, as many as there is work for:

python3 slurm.py compare debian:6.1 debian:7.2

It needs `pip install dask-jobqueue` beside `iopath[cluster]`.
"""

import subprocess
import sys

from dask_jobqueue import SLURMCluster

with SLURMCluster(
    cores=8,  # of a job, each of which gets
    processes=8,  # a worker
    memory="24 GiB",
    walltime="04:00:00",
    # The workers of a node share a cache, which is on a disk of the node.
    job_script_prologue=["export IOPATH_CACHE=/var/tmp/iopath-$USER"],
    local_directory="/var/tmp",
) as cluster:
    cluster.adapt(minimum_jobs=1, maximum_jobs=8)
    cluster.wait_for_workers(1)  # until Slurm has a place for the first job
    words = ["iopath", *sys.argv[1:], "--scheduler", cluster.scheduler_address]
    sys.exit(subprocess.run(words, check=False).returncode)
