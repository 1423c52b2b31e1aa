#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of ioloop on this machine, on regular files and loop devices. Prints
# TAP. What needs root is reported as skipped without.
#
# run.sh [DIR]: where there is room for the files, on a file system that knows
# O_DIRECT; default: $TMPDIR or /var/tmp

set -u
shopt -s extglob
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d -p "${1:-${TMPDIR:-/var/tmp}}" ioloop-test.XXXXXX) || exit 1
count=0
failed=0
loops=()

cleanup() {
	local dev

	for dev in "${loops[@]}"; do
		losetup -d "$dev"
	done
	rm -rf "$dir"
}
trap cleanup EXIT

# verdict STATUS NAME: one line of TAP; what the test printed explains a failure
verdict() {
	count=$((count + 1))
	if [ "$1" = 0 ]; then
		echo "ok $count - $2"
		return
	fi
	failed=$((failed + 1))
	echo "not ok $count - $2"
	sed 's/^/# /' "$dir/out" "$dir/err"
}

skip() {
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}

# run ARGS...: ioloop, with its output, messages and status kept
run() {
	"$ioloop" "$@" >"$dir/out" 2>"$dir/err"
	status=$?
}

# expect STATUS MESSAGE NAME ARGS...: it must end like that, with one line
expect() {
	local want=$1 message=$2 name=$3 ok=1

	shift 3
	run "$@"
	[ "$status" = "$want" ] && grep -q -e "$message" "$dir/err" &&
		[ "$(wc -l <"$dir/err")" = 1 ] && ok=0
	[ "$ok" = 0 ] || echo "status $status, wanted $want: $message" \
		>>"$dir/err"
	verdict "$ok" "$name"
}

# json EXPRESSION NAME ARGS...: it succeeds, and the expression holds for r
json() {
	local expression=$1 name=$2

	shift 2
	run "$@" --output-format=json
	[ "$status" = 0 ] && [ ! -s "$dir/err" ] &&
		python3 - "$dir/out" "$expression" 2>>"$dir/err" <<-'PYTHON'
		import json, sys
		r = json.load(open(sys.argv[1]))
		job = r["jobs"][0]
		assert r["schema"] == 1 and r["program"] == "ioloop", "header"
		assert r["ok"], "not ok"
		for j in r["jobs"]:
		    assert j["ios"] == sum(x["ios"] for x in j["rounds"]), "ios"
		    assert j["ns"] == sum(x["ns"] for x in j["rounds"]), "ns"
		assert eval("(" + sys.argv[2] + ")"), sys.argv[2]
	PYTHON
	verdict $? "$name"
}

# report EXPRESSION: it holds for r, the report in $dir/out
report() {
	[ "$status" = 0 ] && python3 - "$dir/out" "$1" 2>>"$dir/err" <<-'PYTHON'
		import json, sys
		r = json.load(open(sys.argv[1]))
		o, job = r["options"], r["jobs"][0]
		assert r["ok"] and eval("(" + sys.argv[2] + ")"), sys.argv[2]
	PYTHON
}

# in_time EXPRESSION NAME ARGS...: it holds after some time, which is longer the
# slower the machine is
in_time() {
	local expression=$1 name=$2 runtime good

	shift 2
	for runtime in 300ms 3s 30s 300s; do
		run "$@" --time_based --runtime=$runtime --output-format=json
		report "r['stopped_by'] == 'runtime' and ($expression)"
		good=$?
		[ $good = 0 ] && break
	done
	verdict $good "$name"
}

# begun PID: wait until it has a job, a process or a thread, or has ended. Then it
# knows how large its files are, and takes its signals.
begun() {
	local tries tasks

	for ((tries = 0; tries < 12000; tries++)); do
		tasks=("/proc/$1/task/"*)
		if [ ${#tasks[@]} -gt 1 ] || pgrep -P "$1" >/dev/null ||
		   ! grep -qs "^State:.[^Z]" "/proc/$1/status"; then
			return
		fi
		sleep 0.05
	done
}

# direct ENGINE: 1 if it can bypass the page cache, which is what it is for
direct() {
	case $1 in
	mmap | buffered | splice) echo 0 ;;
	*) echo 1 ;;
	esac
}

build() {
	if ! make -s -C "$here" O="$dir/$1" "${@:2}" >"$dir/log" 2>&1; then
		sed 's/^/# /' "$dir/log"
		echo "Bail out! cannot build $1"
		exit 1
	fi
}

echo "TAP version 13"
build plain
build sanitized SANITIZE=address,undefined

# compile PROGRAM NAME: a program of this folder that calls ioloop's functions
compile() {
	gcc -std=gnu11 -g -O1 -D_GNU_SOURCE \
		-fsanitize=address,undefined -fno-sanitize-recover=all \
		-pthread -o "$dir/$1" "$here/tests/$1.c" \
		"$dir"/sanitized/ioloop-objects/!(main).o \
		"$dir"/sanitized/ioloop-objects/engines/*.o \
		>"$dir/out" 2>"$dir/err"
	verdict $? "$2"
}

compile fuzz_options "the fuzzer builds"
"$dir/fuzz_options" 200000 1 >"$dir/out" 2>"$dir/err"
verdict $? "options: 200000 random command lines"
compile plan "the test of plans builds"
"$dir/plan" >"$dir/out" 2>"$dir/err"
verdict $? "only what stays in the page cache is filled by the warm-up"

file=$dir/file
dd if=/dev/urandom of="$file" bs=64k count=64 status=none
ioloop=$dir/plain/ioloop

# Usage
expect 2 "sync needs a file" "no file"
expect 2 "no such option" "unknown option" --foo=1
expect 2 "needs a value" "no value" --bs
expect 2 "from 1 to 1073741824" "bs=0" --bs=0
expect 2 "from 1 to 1073741824" "bs too large" --bs=2g
expect 2 "from 1 to 1073741824" "bs with a wrong unit" --bs=4q
expect 2 "one of sync" "unknown engine" --ioengine=posixaio
expect 2 "one of read write" "unknown rw" --rw=trim
expect 2 "0 or 1" "direct=2" --direct=2
expect 2 "from 0 to 65535" "region too large" --region=65536
expect 2 "must be processors" "CPU list" --cpus_allowed=1-0 --ioengine=null
expect 2 "needs --number_ios" "rounds without a count" --rounds=2 \
	--ioengine=null
expect 2 "needs --number_ios" "calibrate without a count" --calibrate
expect 2 "from 1 to 1 for sync" "sync has no depth" --iodepth=2 --filename="$file"
expect 2 "from 1 to 32768 for io_uring" "io_uring that is too deep" \
	--iodepth=40000 --ioengine=io_uring --filename="$file"
expect 2 "uses none" "null has no file" --ioengine=null --filename="$file"
expect 2 "is for --ioengine=vsync io_uring" "an option of another engine" \
	--hipri --filename="$file"
expect 2 "must be 0 for mmap" "mmap is not direct" --ioengine=mmap \
	--direct=1 --filename="$file"
expect 2 "splice cannot write" "splice only reads" --ioengine=splice \
	--rw=write --filename="$file"
expect 2 "needs --thread" "an open file that processes share" --share_file \
	--numjobs=2 --filename="$file"
expect 2 "needs --single_issuer" "defer_taskrun alone" --ioengine=io_uring \
	--defer_taskrun --filename="$file"
expect 2 "a name is empty" "empty name" --filename="$file:"
expect 2 "such as 4k-64k" "a range the wrong way round" --bsrange=64k-4k \
	--filename="$file"
expect 2 "at most 4096 times" "a range too wide" --bsrange=1-5000 \
	--filename="$file"
expect 2 "that make 100 percent" "shares below 100" --bssplit=4k/10:8k/50 \
	--filename="$file"
expect 2 "that make 100 percent" "shares above 100" --bssplit=4k/60:8k/50 \
	--filename="$file"
expect 2 "does not go with --bsrange" "a range and shares" --bsrange=4k-8k \
	--bssplit=4k --filename="$file"
expect 2 "needs I/Os of one size" "pieces of several sizes" --split=2 \
	--ioengine=libaio --bsrange=4k-8k --filename="$file"
expect 2 "is for --ioengine=sync" "biogen has one size" --bsrange=4k-8k \
	--ioengine=biogen --filename="$file"

# Files that do not do
expect 1 "No such file" "missing file" --filename="$dir/none" --number_ios=1
expect 1 "neither a device" "directory" --filename="$dir" --number_ios=1
expect 1 "but not biogen's" "character device" --filename=/dev/zero \
	--number_ios=1
expect 1 "needs a /dev/biogenN" "biogen on a file" --filename="$file" \
	--ioengine=biogen --number_ios=1
expect 1 "registermem needs a /dev/biogenN" "registered memory of a file" \
	--filename="$file" --registermem --number_ios=1
expect 2 "registermem" "registered memory of an engine that has none" \
	--filename="$file" --ioengine=mmap --registermem --number_ios=1
expect 1 "too few for an I/O of 4096" "offset behind the end" --filename="$file" \
	--offset=4m --number_ios=1
expect 1 "too few for --size" "size too large" --filename="$file" \
	--size=5m --number_ios=1
expect 1 "No such file" "output in no folder" --ioengine=null \
	--number_ios=1 --output="$dir/none/x"
expect 1 "No space left" "output on a full device" --ioengine=null \
	--number_ios=1 --output=/dev/full
expect 1 "read of 1000 bytes at offset 0: Invalid argument (errno 22)" \
	"I/O that is not aligned" --filename="$file" --bs=1000 --number_ios=1 --direct=1
expect 1 "there is no processor 4095, there are 0" "processor that is not there" --ioengine=null \
	--number_ios=1 --cpus_allowed=4095

# Engines, and what they report
json 'job["ios"] == 100 and not r["devices"]' "null" --ioengine=null \
	--number_ios=100
json 'job["ios"] == 100 and job["bytes"] == 0' "syscall" --ioengine=syscall \
	--number_ios=100
json 'len(job["rounds"]) == 3 and r["expected_instructions"] == 10000' \
	"calibrate" --calibrate --number_ios=1000 --rounds=3
for engine in sync vsync libaio io_uring; do
	for rw in read write rw randread randwrite randrw; do
		json 'job["ios"] == 400 and job["bytes"] == 400 * 4096 and
		      len(job["rounds"]) == 2 and r["options"]["direct"]' \
			"$engine $rw" --ioengine="$engine" --rw="$rw" \
			--filename="$file" --number_ios=200 --rounds=2 --direct=1
	done
done
for engine in mmap buffered; do
	for rw in read write randrw; do
		json 'job["ios"] == 2000 and not r["options"]["direct"]' \
			"$engine $rw" --ioengine="$engine" --rw="$rw" \
			--filename="$file" --number_ios=1000 --rounds=2
	done
	json 'job["ios"] == 400' "$engine, cold" --ioengine="$engine" \
		--invalidate --filename="$file" --number_ios=200 --rounds=2
done
json 'job["ios"] == 400' "splice" --ioengine=splice --filename="$file" \
	--number_ios=200 --rounds=2 --bs=64k
json 'job["ios"] == 250' "a batch that is not full" --ioengine=libaio \
	--filename="$file" --number_ios=250 --iodepth=100
json 'job["ios"] == 250' "an io_uring batch that is not full" --rw=randrw \
	--ioengine=io_uring --filename="$file" --number_ios=250 --iodepth=100 \
	--direct=1
json 'job["flags"] == ["fixedbufs", "registerfiles"]' "io_uring, registered" \
	--ioengine=io_uring --fixedbufs --registerfiles --filename="$file" \
	--number_ios=100 --direct=1
json '"hipri" not in job["flags"] or job["ios"] == 100' \
	"io_uring, polled if possible" --ioengine=io_uring --hipri --optional \
	--filename="$file" --number_ios=100 --direct=1
json 'job["ios"] == 100 and job["flags"] == ["sqthread_poll"]' \
	"io_uring with a thread" --ioengine=io_uring --sqthread_poll \
	--filename="$file" --number_ios=100
json 'job["ios"] == 100' "vsync with flags" --ioengine=vsync --nowait \
	--dsync --optional --rw=write --filename="$file" --number_ios=100
json 'len(r["jobs"]) == 6 and len(r["devices"]) == 2 and
      sum(j["ios"] for j in r["jobs"]) == 600 and
      r["jobs"][5]["filename"].endswith("file") and
      [j["cpu"] for j in r["jobs"]] == [0] * 6' \
	"three jobs on each of two devices" --filename="$file:$file" \
	--numjobs=3 --number_ios=100 --cpus_allowed=0
for engine in sync libaio io_uring mmap splice; do
	json 'len(r["jobs"]) == 40 and
	      all(j["ios"] == 200 and j["locked"] == r["jobs"][0]["locked"]
		  for j in r["jobs"])' "$engine, forty threads" --thread \
		--numjobs=40 --ioengine=$engine --filename="$file" \
		--number_ios=100 --rounds=2
done
json 'len(r["jobs"]) == 6 and all(j["ios"] == 200 for j in r["jobs"])' \
	"threads that share the open file of each device" --thread \
	--share_file --numjobs=3 --filename="$file:$file" --number_ios=100 \
	--rounds=2
in_time 'len(r["jobs"]) == 200 and
	 all(j["start_ns"] and j["ios"] for j in r["jobs"])' \
	"two hundred threads and a time" --thread --numjobs=200 --lat \
	--filename="$file"
json 'len(r["jobs"]) == 200 and all(j["ios"] == 10 for j in r["jobs"])' \
	"two hundred processes" --numjobs=200 --filename="$file" \
	--number_ios=10
cp "$file" "$dir/a:b"
json 'job["filename"].endswith("a:b")' "a colon in a name" \
	--filename="$dir/a\\:b" --number_ios=10
cp "$file" "$dir/"$'q"\xff\n'
json 'job["ios"] == 10' "a name that is hard to write" \
	--filename="$dir/"$'q"\xff\n' --number_ios=10
json '6e8 <= job["end_ns"] - job["start_ns"] - job["ns"]' \
	"a sleep after each round, which no round has in it" --drain=200ms \
	--filename="$file" --number_ios=10 --rounds=3
in_time 'job["ios"] == sum(x["ios"] for x in job["rounds"]) > 0' "runtime" \
	--filename="$file"

# Sizes
for engine in sync vsync libaio io_uring mmap buffered splice; do
	rw=randrw
	[ "$engine" != splice ] || rw=randread
	json '4096 * 600 < job["bytes"] < 65536 * 600 and job["ios"] == 600 and
	      job["bytes"] % 4096 == 0 and
	      38000 < job["bytes"] / 600 < 46000' \
		"$engine, three sizes" --bssplit=4k/10:64k/50:16k --rw=$rw \
		--ioengine="$engine" --filename="$file" --number_ios=300 \
		--rounds=2 --direct="$(direct "$engine")"
	json '30000 < job["bytes"] / 600 < 40000 and
	      job["bytes"] % 512 == 0' \
		"$engine, a range of sizes" --bsrange=512-64k --ioengine=$engine \
		--filename="$file" --number_ios=300 --rounds=2 --size=1m \
		--direct="$(direct "$engine")"
done
json 'job["bytes"] == 300 * 8192' "a range of one size" --bsrange=8k-8k \
	--pattern=fixed --filename="$file" --number_ios=300

# Lines of fio
json 'r["options"]["direct"] is False and r["options"]["iodepth"] == 1 and
      r["options"]["invalidate"] and job["ios"] == 1024' \
	"defaults are those of fio: one pass through the page cache" \
	--filename="$file" --ioengine=libaio
in_time 'job["ios"] > 1024' "a time, not a pass" --filename="$file"
json 'r["stopped_by"] == "count" and job["ios"] == 1024' \
	"a pass that is shorter than the time" --filename="$file" --runtime=1h
json 'job["ios"] == 25600 and r["options"]["ioengine"] == "null"' \
	"null has a size, too" --ioengine=null --size=100M
json '3.5e6 < job["bytes"] < 4.9e6' "a pass of several sizes" \
	--filename="$file" --bssplit=4k/50:16k/50 --rw=randread
words=(ioengine=psync ioengine=pvsync2 blocksize=4K bs=4kb bs=4096B bs=0x1000
       readwrite=read readwrite=readwrite buffered=0 timeout=1h runtime=3600000msec
       thread=1 direct=1 direct norandommap gtod_reduce=1 stonewall eta=never
       group_reporting randrepeat=0 iodepth_batch_submit=1 allow_mounted_write=0
       iodepth_batch_complete=1 iodepth_batch_complete_max=1)
for word in "${words[@]}"; do
	run --filename="$file" --number_ios=10 "--$word" --output-format=json
	[ ! -s "$dir/err" ] &&
		grep -q '"ios": 10, "bytes": 40960, "errors": 0' "$dir/out"
	verdict $? "fio's --$word"
done
run -name=x -filename "$file" -size 1m -direct 1 -thread -iodepth=1 \
	-readwrite=readwrite -rwmixwrite=30 --output-format=json
report 'o["name"] == "x" and o["direct"] and o["thread"] and
	o["rw"] == "rw" and o["rwmixread"] == 70 and job["ios"] == 256'
verdict $? "one dash, and values behind blanks"
seeds=$(for i in 1 2; do
	"$ioloop" --ioengine=null --number_ios="$i" --randrepeat=0 \
		--output-format=json | grep -o '"randseed": [0-9]*'
done)
[ "$(echo "$seeds" | sort -u | grep -c seed)" = 2 ]
verdict $? "randrepeat=0 is another seed each time"
expect 2 "did you mean --iodepth" "two letters swapped" --iodpeth=4
expect 2 "did you mean --group_reporting" "a letter left out" --group-reportin
expect 2 "did you mean --readwrite" "a near match of another spelling" --readwrit=x
expect 2 "no such option; --help" "nothing like it" --xyzzy=1
expect 2 "reads no job files" "a job file" job.fio
expect 2 "is a second job after 'a'" "two jobs" --name=a --name=b
expect 2 "must be --iodepth=8" "a batch that is not the depth" --iodepth=8 \
	--iodepth_batch_submit=2 --ioengine=libaio --filename="$file"
expect 2 "must be 1" "a map of blocks" --norandommap=0 --filename="$file"
expect 2 "must be one of split" "CPUs that are shared" \
	--cpus_allowed_policy=shared --filename="$file"
expect 2 "must be one of always never auto" "eta" --eta=sometimes
expect 2 "must be from 1 to 99" "no reads" --rwmixwrite=100
expect 2 "must be 0 or 1" "buffered=2" --buffered=2
expect 2 "does not go with --gtod_reduce" "latencies without a clock" --lat \
	--gtod_reduce=1 --filename="$file"
expect 2 "at most 256 without --filename" "too many files" --name=a \
	--numjobs=257
expect 2 "must be at least --bs" "a size below a block" --ioengine=null \
	--size=1k

# What people read
run --name=job --filename="$file" --numjobs=2 --thread --number_ios=10000 \
	--group_reporting --lat --output="$dir/report"
[ "$status" = 0 ] && [ ! -s "$dir/out" ] && [ ! -s "$dir/err" ] &&
	grep -q "^job: ioengine=sync, rw=read, bs=4k, iodepth=1, direct=0;" \
		"$dir/report" && grep -q " IOPS .* us/I/O " "$dir/report" &&
	grep -Eq "^total .*[0-9][kM] " "$dir/report" &&
	[ "$(grep -c "latency us: mean" "$dir/report")" = 1 ] &&
	! grep -q "^ *[01] " "$dir/report"
verdict $? "a name, and all jobs in one line"

# Files that fio makes
expect 1 "cannot create it: No such" "a file in no folder" \
	--filename="$dir/none/x" --size=1m
expect 1 "cannot open it: No such" "a device that is not there" \
	--filename=/dev/none --size=1m
cd "$dir" || exit 1
run --name=made/up --size=100k --numjobs=2 --output-format=json
report 'len(r["jobs"]) == 2 and all(j["ios"] == 25 for j in r["jobs"]) and
	job["filename"] == "made_up.0.0"' &&
	[ "$(stat -c %s made_up.0.0 made_up.1.0 | tr '\n' ' ')" = \
	  "102400 102400 " ] && [ "$(wc -l <err)" = 2 ] &&
	[ "$(tr -d '\0' <made_up.0.0 | wc -c)" -gt 100000 ]
verdict $? "files that are not there are made"
rm -f made_up.*

# calls PROGRAM ARGS...: which system calls do the I/O of this line, and how.
# Neither what the dynamic loader reads nor /proc/stat is whole blocks.
calls() {
	rm -f trace trace.*
	strace -ff -qq -o trace \
		-e trace=openat,open,pread64,pwrite64,preadv2,io_submit "$@" \
		--output=traced >/dev/null 2>>err
	awk '{ n = split($0, word, ", ") }
		!/^pread64/ || word[n - 1] % 4096 == 0' trace.* >trace
	grep -o 'pread64\|pwrite64\|preadv2\|io_submit\|"[^"/]*", [^)]*O_DIRECT' \
		trace | sed 's/.*O_DIRECT/O_DIRECT/' | sort -u
}

# places FILE: which blocks the last line of calls() read and wrote
places() {
	python3 - trace >"$1" <<-'PYTHON'
	import re, sys
	trace = open(sys.argv[1]).read()
	ios = re.findall(r"p(read|write)64\(.*, (\d+), (\d+)\) = ", trace)
	ios += [(op.lower(), size, at) for op, size, at in re.findall(
	    r"CMD_P(READ|WRITE),.*?aio_nbytes=(\d+), aio_offset=(\d+)", trace)]
	print(*sorted({f"{op} {int(size)} {int(at)}" for op, size, at in ios}), sep="\n")
	PYTHON
}

# same_places: fio.places and ours.places are the same or, where directions or
# places are drawn, blocks of the same size in the same part of the file
same_places() {
	case ${line[*]} in
	*=null*) ;;
	*rw=read* | *rw=write*)
		grep -q "[0-9]" ours.places && diff fio.places ours.places ;;
	*) python3 - ;;
	esac <<-'PYTHON'
	def blocks(name):
	    ios = [line.split() for line in open(name).read().splitlines()]
	    for op, size, at in ios:
	        assert int(at) % int(size) == 0, (op, size, at)
	        assert int(at) + int(size) <= 1 << 20, (op, size, at)
	    return {size for _, size, _ in ios}, {op for op, _, _ in ios}
	fio, ours = blocks("fio.places"), blocks("ours.places")
	assert fio == ours, (fio, ours)
	PYTHON
}

# The command line of fio's HOWTO, and jobs of its examples as command lines
# (fio-*.fio, null.fio, tiobench-example.fio), each as it is, until Ctrl-C.
# Then a shorter one, which fio runs as well: both do as many I/Os of as many
# bytes by the same system calls at the same places.
truncate -s 10G fio-{rand,seq}-{reads,read,write,RW}
truncate -s 64m random-writers.{0,1,2,3}.0
truncate -s 512m f{1,4}.{0,1,2,3}.0
number=0
while read -r -a line; do
	number=$((number + 1))
	# Every job does an I/O, however slow the disk is
	for seconds in 0.1 1 10 100; do
		"$ioloop" "${line[@]}" --output-format=json >out 2>err &
		pid=$!
		begun $pid
		sleep $seconds
		kill -INT $pid 2>>err
		wait $pid
		status=$?
		report "'${line[0]}' == '--name=' + o['name'] and
			all(j['ios'] for j in r['jobs'])"
		good=$?
		[ $good = 0 ] && break
	done
	verdict "$good" "line $number of fio runs"

	short=("${line[@]}" --size=1m --time_based=0 --runtime=1h
	       --output-format=json)
	run "${short[@]}"
	fio "${short[@]}" --output=fio.json >>err 2>&1 &&
		report '(lambda fio, null: sorted(
			(j["ios"], null or j["bytes"]) for j in r["jobs"]
		) == sorted(
			(sum(j[d]["total_ios"] for d in ("read", "write")),
			 null or sum(j[d]["io_bytes"] for d in ("read", "write")))
			for j in fio["jobs"]
		) and job["ios"])(json.load(open("fio.json")),
				  o["ioengine"] == "null")'
	verdict $? "line $number of fio means as many I/Os and bytes"
	calls fio "${short[@]}" >fio.calls
	places fio.places
	calls "$ioloop" "${short[@]}" >ours.calls
	places ours.places
	diff fio.calls ours.calls >>err &&
		{ [ -s ours.calls ] || [[ ${line[*]} == *null* ]]; }
	verdict $? "line $number of fio means the same system calls"
	same_places >>err 2>&1
	verdict $? "line $number of fio means the same places"
done <<'EOF'
--name=random-writers --ioengine=libaio --iodepth=4 --rw=randwrite --bs=32k --direct=0 --size=64m --numjobs=4
--name=fio-rand-read --filename=fio-rand-read --rw=randread --bs=4K --direct=0 --numjobs=1 --time_based --runtime=900 --size=10G --ioengine=libaio --iodepth=16
--name=fio-rand-write --filename=fio-rand-write --rw=randwrite --bs=4K --direct=0 --numjobs=4 --time_based --runtime=900 --size=10G --ioengine=libaio --iodepth=16
--name=fio-rand-RW --filename=fio-rand-RW --rw=randrw --rwmixread=60 --rwmixwrite=40 --bs=4K --direct=0 --numjobs=4 --time_based --runtime=900 --size=10G --ioengine=libaio --iodepth=16
--name=fio-seq-reads --filename=fio-seq-reads --rw=read --bs=256K --direct=1 --numjobs=1 --time_based --runtime=900 --size=10G --ioengine=libaio --iodepth=16
--name=fio-seq-write --filename=fio-seq-write --rw=write --bs=256K --direct=0 --numjobs=1 --time_based --runtime=900 --size=10G --ioengine=libaio --iodepth=16
--name=fio-seq-RW --filename=fio-seq-RW --rw=rw --rwmixread=60 --rwmixwrite=40 --bs=256K --direct=0 --numjobs=4 --time_based --runtime=900 --size=10G --ioengine=libaio --iodepth=16
--name=null --bs=4k --gtod_reduce=1 --ioengine=null --size=100g --rw=randread --norandommap
--name=f1 --direct=1 --size=512m --bsrange=4k-4k --timeout=60 --numjobs=4 --rw=write
--name=f4 --direct=1 --size=512m --bsrange=4k-4k --timeout=60 --numjobs=4 --stonewall --rw=randread
EOF
[ $number = 10 ]
verdict $? "these were ten lines of fio"

# batches PROGRAM: how many I/Os go down at a time, of eight batches of eight
batches() {
	calls "$1" --name=x --filename="$file" --size=256k --direct=1 \
		--ioengine=libaio --iodepth=8 --iodepth_batch_submit=8 \
		--iodepth_batch_complete_min=8 >/dev/null
	grep -o 'io_submit([^,]*, [0-9]*' trace | grep -o '[0-9]*$' |
		tail -n 8 | tr '\n' ' '
}
[ "$(batches fio)" = "8 8 8 8 8 8 8 8 " ] &&
	[ "$(batches "$ioloop")" = "8 8 8 8 8 8 8 8 " ]
verdict $? "batches are those of fio with its options for them"
rm -f fio-* random-writers.* f[14].* fio.* ours.* traced trace trace.*
cd "$OLDPWD" || exit 1

run --ioengine=null --number_ios=5 --output="$dir/report" \
	--output-format=json --rounds=50
"$ioloop" --ioengine=null --number_ios=5 --output="$dir/report" \
	--output-format=json 2>"$dir/err" &&
	python3 -m json.tool "$dir/report" >"$dir/out" 2>>"$dir/err"
verdict $? "a shorter report replaces a longer one"

"$ioloop" --help >"$dir/out" 2>"$dir/err" && [ ! -s "$dir/err" ] &&
	[ "$(wc -l <"$dir/out")" -le 24 ] && ! grep -q '.\{81\}' "$dir/out"
verdict $? "the help fits a screen"

# Every option is in the report, so that is where their names are
"$ioloop" --ioengine=null --number_ios=1 --output-format=json >"$dir/report"
python3 - "$dir/report" "$here/ioloop.bash-completion" \
	"$here/../../Documentation/man/ioloop.1" >"$dir/out" 2>"$dir/err" <<-'PY'
	import json, re, sys
	names = json.load(open(sys.argv[1]))["options"]
	completion, man = (open(f).read().replace("-", "_")
			   for f in sys.argv[2:])
	for name in names:
	    assert re.search(rf"\b__{name}\b", completion), "completion: " + name
	    assert re.search(rf"Fl _{name}\b", man), "man page: " + name
PY
verdict $? "the man page and the completion know every option"

# complete WORD...: what is offered for the last one, as bash splits words
complete() {
	bash -c 'source "$1"; shift; compopt() { :; }
		 COMP_WORDS=(ioloop "$@"); COMP_CWORD=$#
		 _ioloop ioloop "${*: -1}" "${COMP_WORDS[-2]}"
		 echo "${COMPREPLY[*]}"' \
		bash "$here/ioloop.bash-completion" "$@" 2>>"$dir/err"
}
for option in ioengine rw pattern cpus_allowed_policy output-format; do
	run "--$option=none"
	names=$(sed 's/.*must be one of //; s/ calibrate$//' "$dir/err")
	complete "--$option" = >"$dir/out"
	[ "$(cat "$dir/out")" = "$names" ]
	verdict $? "completion knows the values of --$option"
done
true >"$dir/err"
[ "$(complete --ioengine = li)" = libaio ] &&
	[ "$(complete --bss)" = --bssplit= ] && [ ! -s "$dir/err" ]
verdict $? "completion of what has been begun"

# Latencies
for engine in sync vsync libaio io_uring mmap buffered splice; do
	json 'job["latency"]["count"] == 600 and not job["pieces"] and
	      0 < job["latency"]["percentiles_ns"]["50"] <=
	      job["latency"]["percentiles_ns"]["99.99"] <=
	      job["latency"]["max_ns"] and job["latency_overhead_ns"] > 0' \
		"$engine with latencies" --lat --ioengine="$engine" \
		--filename="$file" --number_ios=300 --rounds=2 \
		--direct="$(direct "$engine")"
done
json 'job["ios"] == 100 and job["bytes"] == 100 << 16 and
      len(job["pieces"]) == 4 and
      all(p["count"] == 100 for p in job["pieces"]) and
      job["latency"]["max_ns"] == job["pieces"][3]["max_ns"]' \
	"an I/O in four pieces" --ioengine=libaio --split=4 --bs=64k \
	--filename="$file" --number_ios=100 --rw=randrw
expect 2 "must divide" "pieces that are not equal" --ioengine=libaio \
	--split=3 --filename="$file" --number_ios=1
json 'job["ios"] == 250' "libaio without io_getevents" --ioengine=libaio \
	--userspace_reap --filename="$file" --number_ios=250

# Control and what is measured beside
json 'job["ios"] == 2 * 1024' "two passes" --loops=2 --filename="$file"
expect 2 "neither --number_ios nor" "passes and a count" --loops=2 \
	--number_ios=5 --filename="$file"
json 'job["ns"] >= 2e9' "a rate" --rate_iops=50 --number_ios=100 \
	--filename="$file"
# The last slice of 98 I/Os need not have been waited for
in_time '98 < job["ios"] <= job["ns"] / 1e6 + 98' "a rate in a time" \
	--rate_iops=1000 --filename="$file" --ioengine=io_uring --iodepth=7
expect 2 "does not go with calibrate" "a rate without I/O" --rate_iops=5 \
	--calibrate --number_ios=5
json 'len(job["pmu"]) == 7 and
      all(("counted_percent" in p) != ("reason" in p)
	  for p in job["pmu"].values())' "counters or why not" --pmu \
	--filename="$file" --number_ios=100 --rounds=2
in_time 'job["end_ns"] - job["start_ns"] >= job["ns"] and
	 r["idle_percent"] is not None and 0 <= r["idle_percent"] <= 100 and
	 job["user_ns"] + job["system_ns"] > 0' "processor time" \
	--filename="$file" --direct=0
expect 2 "not CTL,ACK" "one FIFO of two" --perf_control=x --ioengine=null
expect 1 "perf_control: No such file" "no perf" --perf_control=/x,/y \
	--filename="$file" --number_ios=1
expect 2 "from 0 to 99" "priority too high" --rtprio=100 --ioengine=null
expect 1 "no such node, there are 0" "node that is not there" --numa_node=1023 \
	--ioengine=null --number_ios=1
if [ "$(id -u)" = 0 ]; then
	json 'job["ios"] == 100' "real-time priority, node 0" --rtprio=1 \
		--numa_node=0 --filename="$file" --number_ios=100
else
	skip "real-time priority" "needs root"
fi
if [ "$(cat /proc/sys/vm/nr_hugepages)" -gt 1 ]; then
	json 'job["ios"] == 100' "huge pages" --hugepages \
		--filename="$file" --number_ios=100
else
	expect 1 "2 of 2 MiB are needed and [01] are free" \
		"huge pages that are not there" --hugepages --numjobs=2 \
		--filename="$file" --number_ios=100
fi

# written SIZE OFFSET: the file has 0x5a there, and only there
written() {
	python3 - "$file" "$1" "$2" 2>"$dir/err" <<-'PYTHON'
	import sys
	size, at = int(sys.argv[2]), int(sys.argv[3])
	d = open(sys.argv[1], "rb").read()
	assert d[at:at + size] == b"\x5a" * size, "not written"
	assert not any(d[:at]) and not any(d[at + size:]), "written outside"
	PYTHON
}
for engine in sync vsync libaio io_uring buffered; do
	dd if=/dev/zero of="$file" bs=64k count=64 status=none
	run --filename="$file" --ioengine="$engine" \
		--direct="$(direct "$engine")" --rw=write --offset=1m \
		--size=64k --number_ios=1000 --bs=8k
	written 65536 1048576
	verdict $? "$engine writes all of its area and nothing else"
	dd if=/dev/zero of="$file" bs=64k count=64 status=none
	run --filename="$file" --ioengine="$engine" \
		--direct="$(direct "$engine")" --rw=randwrite \
		--offset=1m --size=64k --number_ios=1000 --bs=8k
	written 65536 1048576
	verdict $? "$engine writes its area at random and nothing else"
	dd if=/dev/zero of="$file" bs=64k count=64 status=none
	run --filename="$file" --ioengine="$engine" \
		--direct="$(direct "$engine")" --rw=randwrite \
		--offset=1m --size=64k --number_ios=2000 --bsrange=4k-24k
	written 65536 1048576
	verdict $? "$engine writes blocks of all sizes and nothing else"
	dd if=/dev/zero of="$file" bs=64k count=64 status=none
	run --filename="$file" --ioengine="$engine" \
		--direct="$(direct "$engine")" --rw=write --offset=64k \
		--pattern=fixed --number_ios=100
	written 4096 65536
	verdict $? "$engine writes one place and nothing else"
done

# Ends in the middle

for engine in sync libaio io_uring mmap splice; do
	"$ioloop" --filename="$file" --ioengine="$engine" --time_based --runtime=600s \
		--output-format=json >"$dir/out" 2>"$dir/err" &
	pid=$!
	begun $pid
	kill -INT $pid
	wait $pid && grep -q '"stopped_by": "signal"' "$dir/out" &&
		[ ! -s "$dir/err" ]
	verdict $? "$engine: Ctrl-C ends it with a report"
done
"$ioloop" --filename="$file" --numjobs=20 --thread --time_based --runtime=600s \
	--output-format=json >"$dir/out" 2>"$dir/err" &
pid=$!
begun $pid
kill -INT $pid
wait $pid && grep -q '"stopped_by": "signal"' "$dir/out" && [ ! -s "$dir/err" ]
verdict $? "threads: Ctrl-C ends them with a report"
for engine in sync vsync libaio io_uring buffered mmap splice; do
	dd if=/dev/zero of="$file" bs=64k count=64 status=none
	"$ioloop" --filename="$file" --ioengine="$engine" --time_based --runtime=600s \
		--output-format=json --invalidate=0 >"$dir/out" 2>"$dir/err" &
	pid=$!
	begun $pid
	truncate -s 1m "$file"
	wait $pid
	[ $? = 1 ] && grep -q '"ok": false' "$dir/out" &&
		grep -Eq "at offset [0-9]+: (only 0 bytes|Input/output error)" \
			"$dir/err"
	verdict $? "$engine: a file that shrinks is an error"
done
dd if=/dev/zero of="$file" bs=64k count=64 status=none
"$ioloop" --filename="$file" --time_based --runtime=600s >"$dir/out" 2>"$dir/err" &
pid=$!
begun $pid
kill -KILL "$(pgrep -P $pid)"
wait $pid
[ $? = 1 ] && grep -q "job 0" "$dir/err"
verdict $? "a job that is killed is an error"

# inject CALL:HOW STATUS MESSAGE NAME ARGS...: the kernel answers like that
inject() {
	local how=$1 want=$2 message=$3 name=$4

	shift 4
	strace -f -qq -o "$dir/trace" -e trace="${how%%:*}" -e inject="$how" \
		"$ioloop" --filename="$file" --number_ios=300 --warmup_ios=0 \
		--direct=1 \
		--output-format=json "$@" >"$dir/out" 2>"$dir/err"
	status=$?
	if [ "$want" = 0 ]; then
		message='"ios": 300, "bytes": 1228800, "errors": 0'
		grep -q INJECTED "$dir/trace" && [ ! -s "$dir/err" ] &&
			grep -q -e "$message" "$dir/out" && [ $status = 0 ]
	else
		grep -q INJECTED "$dir/trace" && [ $status = 1 ] &&
			grep -q -e "$message" "$dir/err" &&
			grep -q '"ok": false' "$dir/out"
	fi
	verdict $? "$name"
}
if strace -qq -o /dev/null true 2>"$dir/err"; then
	dd if=/dev/zero of="$file" bs=64k count=64 status=none
	every=when=3+7
	inject pread64:error=EINTR:$every 0 "" "sync: EINTR"
	inject preadv2:error=EINTR:$every 0 "" "vsync: EINTR" \
		--ioengine=vsync
	inject preadv2:error=EAGAIN:$every 0 "" "vsync: EAGAIN" --nowait \
		--ioengine=vsync
	inject preadv2:error=EAGAIN:when=5 1 "Resource temporarily" \
		"vsync: EAGAIN that is not ours" --ioengine=vsync
	for error in EINTR EAGAIN; do
		inject io_submit:error=$error:$every 0 "" \
			"libaio: $error from io_submit" --ioengine=libaio \
			--iodepth=10
		inject io_uring_enter:error=$error:$every 0 "" \
			"io_uring: $error" --ioengine=io_uring --iodepth=10
	done
	inject io_getevents:error=EINTR:$every 0 "" \
		"libaio: EINTR from io_getevents" --ioengine=libaio --iodepth=10
	inject splice:error=EINTR:$every 0 "" "splice: EINTR" \
		--ioengine=splice --direct=0
	inject pwrite64:retval=1000:when=7 1 \
		"write of 4096 bytes at offset [0-9]*: only 1000 bytes" \
		"sync: a short write" --rw=write
	inject pread64:error=EIO:when=9 1 "at offset [0-9]*: Input/output" \
		"sync: EIO"
	inject io_submit:error=EIO:when=3 1 "io_submit.*Input/output" \
		"libaio: EIO from io_submit" --ioengine=libaio --iodepth=10
	inject io_getevents:error=EINVAL:when=3 1 "io_getevents: Invalid" \
		"libaio: EINVAL from io_getevents" --ioengine=libaio --iodepth=10
	inject io_uring_enter:error=EIO:when=3 1 "io_uring_enter: Input" \
		"io_uring: EIO" --ioengine=io_uring --iodepth=10
else
	skip "errors of system calls" "strace does not work here"
fi

# Block devices
if [ "$(id -u)" = 0 ] && [ -e /dev/loop-control ] &&
   dev=$(losetup -f --show --direct-io=on "$file" 2>"$dir/err"); then
	loops+=("$dev")
	json 'r["devices"][0]["logical_block_size"] == 512 and
	      r["devices"][0]["size"] == 4 << 20' "loop device" \
		--filename="$dev" --number_ios=100 --rw=randrw
	expect 1 "in multiples of 512" "block size below the device's" \
		--filename="$dev" --bs=256 --number_ios=1 --direct=1
	if grep -q 0 "/sys/block/${dev##*/}/queue/io_poll"; then
		for engine in vsync io_uring; do
			expect 1 "does not poll" "$engine: device without polls" \
				--filename="$dev" --ioengine=$engine --hipri \
				--number_ios=1 --direct=1
			json 'job["flags"] == []' "$engine: optional polls" \
				--filename="$dev" --ioengine=$engine --hipri \
				--optional --number_ios=1 --direct=1
		done
	else
		skip "a device without polls" "loop devices poll here"
	fi
	# A device that gets smaller while it is used
	"$ioloop" --filename="$dev" --runtime=600s --direct=0 --invalidate \
		--number_ios=1024 --rounds=100000 \
		--output-format=json >"$dir/out" 2>"$dir/err" &
	pid=$!
	begun $pid
	truncate -s 1m "$file"
	losetup -c "$dev"
	wait $pid
	[ $? = 1 ] && grep -q '"ok": false' "$dir/out" &&
		grep -Eq "at offset [1-4][0-9]{6}: (only 0 bytes|Input/output)" \
			"$dir/err"
	verdict $? "a device that shrinks is an error"
	truncate -s 4m "$file"
	losetup -c "$dev"
	mkdir "$dir/mnt"
	if mkfs.ext4 -q "$dev" && mount "$dev" "$dir/mnt"; then
		expect 1 "is mounted or otherwise in use" "mounted device" \
			--filename="$dev" --rw=write --number_ios=1
		json 'job["ios"] == 1' "mounted device, reading" \
			--filename="$dev" --number_ios=1
		json 'job["ios"] == 1' "mounted device, allowed" \
			--filename="$dev" --rw=write --number_ios=1 \
			--warmup_ios=1 --pattern=fixed --allow-mounted
		umount "$dir/mnt"
	else
		skip "mounted device" "no ext4 here"
	fi
	if dev=$(losetup -f -r --show "$file"); then
		loops+=("$dev")
		expect 1 "is read-only" "device that is read-only" \
			--filename="$dev" --rw=write --number_ios=1
	fi
else
	skip "block devices" "needs root and loop devices"
fi

# The same under the sanitizers and valgrind
dd if=/dev/urandom of="$file" bs=64k count=64 status=none
targets=("$file")
if [ "$(id -u)" = 0 ] && [ -e /dev/loop-control ] &&
   dev=$(losetup -f --show "$file" 2>"$dir/err"); then
	loops+=("$dev")
	targets+=("$dev")
else
	skip "sanitizers and valgrind on a loop device" "needs loop devices"
fi
ioloop=$dir/sanitized/ioloop
for target in "${targets[@]}"; do
	for engine in sync vsync libaio io_uring mmap buffered splice; do
		rw=randrw
		[ "$engine" != splice ] || rw="read"
		for more in "" --lat "--bsrange=4k-64k --numjobs=3 --thread"; do
			# shellcheck disable=SC2086 # the options are split
			json 'job["ios"] == 600' \
				"$engine $more with sanitizers, ${target##*/}" \
				--rw=$rw --ioengine=$engine --number_ios=300 \
				--filename="$target" --rounds=2 \
				--direct="$(direct $engine)" $more
		done
	done
done
run --filename="$file" --bs=1000 --number_ios=1 --ioengine=libaio --direct=1
[ "$status" = 1 ] && ! grep -q Sanitizer "$dir/err"
verdict $? "an error with sanitizers"
run --filename="$file" --number_ios=100 --rounds=3 --numjobs=2
verdict "$status" "a table with sanitizers"
if command -v valgrind >/dev/null; then
	for target in "${targets[@]}"; do
		for engine in sync vsync libaio io_uring mmap buffered splice; do
			valgrind -q --error-exitcode=99 --leak-check=full \
				--trace-children=yes "$dir/plain/ioloop" \
				--ioengine=$engine --filename="$target" --lat \
				--bssplit=4k/50:16k/50 --number_ios=300 \
				--direct="$(direct $engine)" --rounds=2 \
				>"$dir/out" 2>"$dir/err" &&
				[ ! -s "$dir/err" ]
			verdict $? "$engine under valgrind, ${target##*/}"
		done
	done
	valgrind -q --error-exitcode=99 --leak-check=full \
		"$dir/plain/ioloop" --filename="$file" --numjobs=5 --thread \
		--number_ios=300 >"$dir/out" 2>"$dir/err" && [ ! -s "$dir/err" ]
	verdict $? "threads under valgrind"
else
	skip "valgrind" "not installed"
fi

echo "1..$count"
[ "$failed" = 0 ]
