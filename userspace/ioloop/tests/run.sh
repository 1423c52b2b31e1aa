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
		assert r["schema"] == 2 and r["program"] == "ioloop", "header"
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
compile memory "the test of memory builds"
"$dir/memory" >"$dir/out" 2>"$dir/err"
verdict $? "buffers lie in one page table"

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
expect 2 "needs --fixedbufs" "onebuf alone" --ioengine=io_uring \
	--onebuf --filename="$file"
expect 2 "needs --single_issuer" "defer_taskrun alone" --ioengine=io_uring \
	--defer_taskrun --filename="$file"
expect 2 "a name is empty" "empty name" --filename="$file:"
for option in name=x rwmixread=50 bssplit=4k bsrange=4k-8k loops=2 rate_iops=5 \
	      stonewall lat live=1 readwrite=read iodepth_batch=1 -rw=read; do
	expect 2 "no such option" "fio's --$option" "--$option" \
		--filename="$file"
done
expect 2 "one of sync vsync" "fio's psync" --ioengine=psync
expect 2 "one of read write randread randwrite$" "fio's randrw" --rw=randrw

# Files that do not do
expect 1 "cannot open it: No such" "missing file" --filename="$dir/none" \
	--number_ios=1 --size=1m
expect 1 "neither a device" "directory" --filename="$dir" --number_ios=1
expect 1 "but not biogen's" "character device" --filename=/dev/zero \
	--number_ios=1
expect 1 "needs a /dev/biogenN" "biogen on a file" --filename="$file" \
	--ioengine=biogen --number_ios=1
expect 1 "registermem needs a /dev/biogenN" "registered memory of a file" \
	--filename="$file" --registermem --number_ios=1
expect 2 "registermem" "registered memory of an engine that has none" \
	--filename="$file" --ioengine=mmap --registermem --number_ios=1
expect 1 "too few for --bs=4096 at --offset=4194304" "offset behind the end" --filename="$file" \
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
	for rw in read write randread randwrite; do
		json 'job["ios"] == 400 and job["bytes"] == 400 * 4096 and
		      len(job["rounds"]) == 2 and r["options"]["direct"]' \
			"$engine $rw" --ioengine="$engine" --rw="$rw" \
			--filename="$file" --number_ios=200 --rounds=2 --direct=1
	done
done
for engine in mmap buffered; do
	for rw in read write randread; do
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
json 'job["ios"] == 250' "an io_uring batch that is not full" --rw=randwrite \
	--ioengine=io_uring --filename="$file" --number_ios=250 --iodepth=100 \
	--direct=1
json 'job["ios"] == 100' "io_uring, registered" \
	--ioengine=io_uring --fixedbufs --registerfiles --filename="$file" \
	--number_ios=100 --direct=1
json 'job["ios"] == 100' "io_uring, one registered buffer" \
	--ioengine=io_uring --fixedbufs --onebuf --iodepth=8 \
	--filename="$file" --number_ios=100 --direct=1
json 'job["ios"] == 100' "io_uring with a thread" --ioengine=io_uring \
	--sqthread_poll --filename="$file" --number_ios=100
json 'job["ios"] == 100' "vsync with flags" --ioengine=vsync --dsync \
	--rw=write --filename="$file" --number_ios=100
json 'job["ios"] == 100' "vsync with segments, each in its pages" --direct=1 \
	--ioengine=vsync --segments=8 --bs=8k --mem_offset=512 \
	--filename="$file" --number_ios=100
expect 2 "must divide --bs" "three segments of a page" --ioengine=vsync \
	--segments=3 --filename="$file" --number_ios=1
expect 2 "is for --ioengine=vsync" "segments of sync" --segments=2 \
	--filename="$file" --number_ios=1
for engine in sync libaio io_uring mmap; do
	json 'job["ios"] == 100' "$engine, buffers inside of pages" \
		--ioengine=$engine --filename="$file" --number_ios=100 \
		--mem_offset=1024 --prioclass=2 --prio=3
done
expect 1 "read of 4096 bytes at offset 0: Invalid argument (errno 22)" \
	"a buffer that is not aligned" --filename="$file" --direct=1 \
	--mem_offset=1 --number_ios=1
json 'job["ios"] == 100' "io_uring, linked and registered" --ioengine=io_uring \
	--fixedbufs --onebuf --link --iodepth=4 --mem_offset=512 --dsync \
	--rw=write --direct=1 --filename="$file" --number_ios=100
# Without an end, the kernel gives each chain to io-wq, and the task waits 1,000 times.
python3 - "$ioloop" "$file" >"$dir/out" 2>"$dir/err" <<-'PYTHON'
	import resource, subprocess, sys
	subprocess.run([sys.argv[1], "--ioengine=io_uring", "--link", "--iodepth=4",
	                f"--filename={sys.argv[2]}", "--number_ios=4000"], check=True)
	waited = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw
	assert waited < 500, f"waited {waited} times in 1,000 batches"
PYTHON
verdict $? "the last request of a batch ends the chain"
json 'len(r["jobs"]) == 6 and len(r["devices"]) == 2 and
      sum(j["ios"] for j in r["jobs"]) == 600 and
      r["jobs"][5]["filename"].endswith("file") and
      [j["cpu"] for j in r["jobs"]] == [0] * 6' \
	"three jobs on each of two devices" --filename="$file:$file" \
	--numjobs=3 --number_ios=100 --cpus_allowed=0
cp "$file" "$dir/grows"
json 'job["ios"] == 100' "appends, each with an fsync" --ioengine=streams \
	--append --fsync=1 --rw=write --filename="$dir/grows" \
	--number_ios=50 --rounds=2
json 'job["ios"] == 300' "three streams" --ioengine=streams --streams=3 \
	--filename="$file" --number_ios=300
json 'len(r["jobs"]) == 1 and job["ios"] == 100' "two files, one ring" \
	--ioengine=io_uring --one_ring --iodepth=4 --filename="$file:$file" \
	--number_ios=100
expect 2 "needs two files" "one file, one ring" --ioengine=io_uring \
	--one_ring --filename="$file" --number_ios=1
expect 2 "needs --rw=write" "fsync of reads" --ioengine=streams --fsync=1 \
	--filename="$file" --number_ios=1
expect 2 "needs --streams=1" "two streams that append" --ioengine=streams \
	--append --streams=2 --rw=write --filename="$file" --number_ios=1
expect 2 "needs --ioengine=streams" "streams of sync" --streams=2 \
	--filename="$file" --number_ios=1
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
	"two hundred threads and a time" --thread --numjobs=200 \
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

# How much
json 'r["options"]["direct"] is False and r["options"]["iodepth"] == 1 and
      r["options"]["invalidate"] and job["ios"] == 1024' \
	"defaults are those of fio: one pass through the page cache" \
	--filename="$file" --ioengine=libaio
in_time 'job["ios"] > 1024' "a time, not a pass" --filename="$file"
json 'r["stopped_by"] == "count" and job["ios"] == 1024' \
	"a pass that is shorter than the time" --filename="$file" --runtime=1h
for word in bs=4K bs=4kb bs=4096B runtime=3600000msec thread=1 direct=1 direct \
	    size=1m output_format=json; do
	run --filename="$file" --number_ios=10 --output-format=json "--$word"
	[ ! -s "$dir/err" ] &&
		grep -q '"ios": 10, "bytes": 40960, "errors": 0' "$dir/out"
	verdict $? "--$word"
done
expect 2 "did you mean --iodepth" "two letters swapped" --iodpeth=4
expect 2 "did you mean --output_format" "a letter left out" --output-forma
expect 2 "no such option; --help" "nothing like it" --xyzzy=1
expect 2 "reads no job files" "a job file" job.fio
# What people read
run --filename="$file" --numjobs=2 --thread --number_ios=10000 \
	--output="$dir/report"
[ "$status" = 0 ] && [ ! -s "$dir/out" ] && [ ! -s "$dir/err" ] &&
	grep -q "^ioengine=sync, rw=read, bs=4k, iodepth=1, direct=0;" \
		"$dir/report" && grep -q " IOPS .* us/I/O " "$dir/report" &&
	grep -Eq "^total .*[0-9][kM] " "$dir/report"
verdict $? "a line for each job, and one for all"

# The same job in fio
cd "$dir" || exit 1
# calls PROGRAM ARGS...: which system calls do the I/O of this line, and how.
# Neither what the dynamic loader reads nor /proc/stat is whole blocks.
calls() {
	rm -f trace trace.*
	strace -ff -qq -o trace \
		-e trace=openat,open,pread64,pwrite64,preadv2,io_submit "$@" \
		>/dev/null 2>>err
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

number=0
while read -r -a line; do
	number=$((number + 1))
	line+=(--filename="$file" --size=1m --bs=32k)
	calls fio --name=x --output=traced "${line[@]/=sync/=psync}" >fio.calls
	places fio.places
	calls "$ioloop" --output=traced "${line[@]}" >ours.calls
	places ours.places
	diff fio.calls ours.calls >>err && [ -s ours.calls ] &&
		diff fio.places ours.places >>err && [ -s ours.places ]
	verdict $? "job $number is fio's: the same system calls and places"
done <<'EOF'
--ioengine=sync --rw=read
--ioengine=sync --rw=write --direct=1
--ioengine=libaio --iodepth=4 --rw=write
--ioengine=libaio --iodepth=16 --rw=read --direct=1
EOF
[ $number = 4 ]
verdict $? "these were four jobs"

# batches PROGRAM OPTIONS...: how many I/Os go down at a time, of eight batches
batches() {
	calls "$@" --filename="$file" --size=256k --direct=1 \
		--ioengine=libaio --iodepth=8 --output=traced >/dev/null
	grep -o 'io_submit([^,]*, [0-9]*' trace | grep -o '[0-9]*$' |
		tail -n 8 | tr '\n' ' '
}
[ "$(batches fio --name=x --iodepth_batch_submit=8 \
	     --iodepth_batch_complete_min=8)" = "8 8 8 8 8 8 8 8 " ] &&
	[ "$(batches "$ioloop")" = "8 8 8 8 8 8 8 8 " ]
verdict $? "batches are those of fio with its options for them"
rm -f fio.* ours.* traced trace trace.*
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
for option in ioengine rw pattern output-format; do
	run "--$option=none"
	names=$(sed 's/.*must be one of //; s/ calibrate$//' "$dir/err")
	complete "--$option" = >"$dir/out"
	[ "$(cat "$dir/out")" = "$names" ]
	verdict $? "completion knows the values of --$option"
done
true >"$dir/err"
[ "$(complete --ioengine = li)" = libaio ] &&
	[ "$(complete --off)" = --offset= ] && [ ! -s "$dir/err" ]
verdict $? "completion of what has been begun"

# Latencies
json 'job["ios"] == 100 and job["bytes"] == 100 << 16 and
      len(job["pieces"]) == 4 and
      all(p["count"] == 100 for p in job["pieces"]) and
      job["latency"]["max_ns"] == job["pieces"][3]["max_ns"] and
      0 < job["latency"]["percentiles_ns"]["50"] <=
      job["latency"]["percentiles_ns"]["99.99"] <=
      job["latency"]["max_ns"] and job["latency_overhead_ns"] > 0' \
	"an I/O in four pieces" --ioengine=libaio --split=4 --bs=64k \
	--filename="$file" --number_ios=100 --rw=randwrite
expect 2 "must divide" "pieces that are not equal" --ioengine=libaio \
	--split=3 --filename="$file" --number_ios=1
json 'job["ios"] == 250' "libaio without io_getevents" --ioengine=libaio \
	--userspace_reap --filename="$file" --number_ios=250

# Control and what is measured beside
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
if [ "$(id -u)" = 0 ]; then
	json 'job["ios"] == 100' "real-time priority" --rtprio=1 \
		--filename="$file" --number_ios=100
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

expect 2 "does not go with --hugepages" "scattered huge pages" --scatter \
	--hugepages --filename="$file"
expect 2 "must divide --rounds=6" "a round in no layout" --layouts=4 --rounds=6 \
	--number_ios=1 --filename="$file"
expect 2 "needs --layouts" "a first layout of one" --first_layout=1 \
	--filename="$file"
expect 2 "does not go with --thread" "layouts of threads" --layouts=2 --rounds=2 \
	--thread --number_ios=1 --filename="$file"
json 'job["ios"] == 60 and len(job["rounds"]) == 6 and
      job["end_ns"] > job["start_ns"]' "rounds in three layouts" \
	--layouts=3 --rounds=6 --number_ios=10 --filename="$file"
expect 1 "No such file" "an error in a layout" --layouts=2 --rounds=2 \
	--number_ios=1 --filename=/no
# Numbers of pages are shown to CAP_SYS_ADMIN, bit 21.
if (((0x$(awk '/^CapEff/ { print $2 }' /proc/self/status) >> 21) & 1)); then
	compile scatter "the test of scattered pages builds"
	"$dir/scatter" >"$dir/out" 2>"$dir/err"
	verdict $? "no two neighbours are adjacent"
	status=0
	for _ in {1..20}; do
		[ $status = 0 ] && run --thread --numjobs=8 --filename="$file" \
			--scatter --bs=1m --number_ios=1 --rounds=1
	done
	verdict $status "threads that scatter buffers while others lock memory"
	json 'job["ios"] == 100' "scattered buffers" --scatter --bs=64k \
		--filename="$file" --number_ios=100
else
	skip "scattered buffers" "needs CAP_SYS_ADMIN"
	expect 1 "scatter: Operation not permitted" "page numbers not shown" \
		--scatter --filename="$file"
fi

# blank: the file has no byte that a buffer has
blank() {
	head -c 4M /dev/zero | tr '\0' '\377' >"$file"
}

# written SIZE OFFSET: the file has the pages of buffers there, and only there
written() {
	python3 - "$file" "$1" "$2" 2>"$dir/err" <<-'PYTHON'
	import sys
	size, at = int(sys.argv[2]), int(sys.argv[3])
	d = open(sys.argv[1], "rb").read()
	page = b"\x5a" + bytes(4095)
	assert d[at:at + size] == page * (size // 4096), "not written"
	assert not (d[:at] + d[at + size:]).strip(b"\xff"), "written outside"
	PYTHON
}
for engine in sync vsync libaio io_uring buffered; do
	blank
	run --filename="$file" --ioengine="$engine" \
		--direct="$(direct "$engine")" --rw=write --offset=1m \
		--size=64k --number_ios=1000 --bs=8k
	written 65536 1048576
	verdict $? "$engine writes all of its area and nothing else"
	blank
	run --filename="$file" --ioengine="$engine" \
		--direct="$(direct "$engine")" --rw=randwrite \
		--offset=1m --size=64k --number_ios=1000 --bs=8k
	written 65536 1048576
	verdict $? "$engine writes its area at random and nothing else"
	blank
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
	# Each layout is a thread with its own files. All but layout 0 take files and pages.
	strace -qf -o "$dir/strace" -e trace=clone,clone3,unshare,pipe2,eventfd2 \
		"$ioloop" --layouts=4 --rounds=4 --number_ios=1 --filename="$file" >"$dir/out" 2>"$dir/err" &&
		python3 - "$dir/strace" 2>"$dir/err" <<-'PYTHON'
		import sys
		calls = [line.split(None, 1) for line in open(sys.argv[1])]
		took = {pid for pid, call in calls if call.startswith(("pipe2", "eventfd2"))}
		clones = sum(call.startswith("clone") for _, call in calls)
		alone = sum(call.startswith("unshare(CLONE_FILES") for _, call in calls)
		assert (clones, alone, len(took)) == (4, 4, 3), (clones, alone, took)
		PYTHON
	verdict $? "layouts differ"
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

if unshare -m mount -t tmpfs none /sys/kernel 2>"$dir/err"; then
	unshare -m sh -es "$ioloop" "$file" >"$dir/shrunk" 2>"$dir/err" <<-'SH'
		slab=/sys/kernel/slab
		mount -t tmpfs none /sys/kernel
		mkdir -p $slab/bio-1 $slab/dentry
		touch $slab/bio-1/shrink $slab/dentry/shrink
		"$1" --layouts=2 --rounds=2 --number_ios=1 --filename="$2" >/dev/null
		cat $slab/bio-1/shrink $slab/dentry/shrink
	SH
	[ "$(cat "$dir/shrunk")" = 1 ]
	verdict $? "a layout shrinks the slab caches of bios"
else
	skip "slab caches" "no mount namespace here"
fi

# Block devices
if [ "$(id -u)" = 0 ] && [ -e /dev/loop-control ] &&
   dev=$(losetup -f --show --direct-io=on "$file" 2>"$dir/err"); then
	loops+=("$dev")
	json 'r["devices"][0]["logical_block_size"] == 512 and
	      r["devices"][0]["size"] == 4 << 20' "loop device" \
		--filename="$dev" --number_ios=100 --rw=randwrite
	expect 1 "in multiples of 512" "block size below the device's" \
		--filename="$dev" --bs=256 --number_ios=1 --direct=1
	if grep -q 0 "/sys/block/${dev##*/}/queue/io_poll"; then
		for engine in vsync io_uring; do
			expect 1 "does not poll" "$engine: device without polls" \
				--filename="$dev" --ioengine=$engine --hipri \
				--number_ios=1 --direct=1
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
		rw=randwrite
		[ "$engine" != splice ] || rw="read"
		for more in "" "--numjobs=3 --thread"; do
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
				--ioengine=$engine --filename="$target" \
				--number_ios=300 \
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
