#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Run every part of the tests and end with one line, "N passed, N failed".
#
#	T=quick		what to run before each commit
#	T=PART		only the parts whose names contain PART
#	T=PART/TEST	of a part that pytest runs, only the tests that TEST (pytest -k) selects
#	T=TEST		TEST is not a part: the selftests whose names contain it
#	KERNEL="6.1"	only with the kernels of these series; of the selftests also debug,
#			debug-7.2 and kcsan
#	ALL=1		everything, on all kernels
#	AGAIN=1		also guests that count instructions and were run before
#
# With none of KERNEL=, ALL= and T=, tests that are marked as long are left out.
# A part is a name and a command. The command prints TAP, or what pytest
# prints; it fails if its exit status says so, and if it ran no test at all.
set -u
cd "$(dirname "$0")/.." || exit 2

# Many tests start iopath. Its modules are compiled once, whatever the environment says, and beside
# the sources, which stay clean.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$PWD/build/pycache

venv=$PWD/build/venv/bin
pytest=("$venv/python" -m pytest -c userspace/iopath/pyproject.toml --rootdir . -p no:cacheprovider
	--durations=10 --durations-min=5)
want=${T-}
pick=()
[[ $want != */* ]] || pick=(-k "${want#*/}")
want=${want%%/*}

short=' and not long'
[[ -z ${T-}${KERNEL-}${ALL-} ]] || short=

KERNELS='debug 7.3 5.10 6.12-arm64'
[[ -z $short ]] && KERNELS+=' 6.1 6.12 7.2'
[[ -z ${ALL-} ]] || KERNELS+=' debug-7.2 kcsan 6.12-arm64-64k'

names=()
declare -A commands
part() {
	local name=$1
	shift
	[[ $name == *"$want"* ]] || return 0
	names+=("$name")
	commands[$name]=${*@Q}
}

pathcount_on() {
	local vmlinuz keep=(--keep)
	[[ -z ${AGAIN-} ]] || keep=()
	vmlinuz=$("$venv/python" selftests/vmlinuz.py "$1") || return
	"$venv/python" userspace/pathcount/tests/test_pathcount.py --kernel "$vmlinuz" "${keep[@]}"
}

# The selftests of each kernel are a part, except if T= names tests that not every kernel has.
selftests() {
	local kernel
	local command=("${pytest[@]}" userspace/iopath/tests/guests/test_selftests.py)

	if [[ ${#pick[@]} -gt 0 ]]; then
		part selftests "${command[@]}" -m guest "${pick[@]}"
		return
	fi
	for kernel in ${KERNEL:-$KERNELS}; do
		part "selftests-${kernel#debian:}" env KERNEL="$kernel" "${command[@]}" -m "guest$short"
	done
	[[ -n $short ]] ||
		part selftests-mutants "${pytest[@]}" userspace/iopath/tests/guests/test_mutants.py
}

# The longest parts come first. Where nothing is cached, those are the ones that build kernels.
parts() {
	local tests=userspace/iopath/tests/guests

	[[ -n ${T-}${KERNEL-} ]] ||
		part prepare "$venv/python" selftests/prepare.py debian:{6.1,7.2,7.3,5.10,6.12,6.12-arm64}
	part iopath "${pytest[@]}" -m "not guest$short" userspace/iopath/tests "${pick[@]}"
	part planted "${pytest[@]}" -m "guest$short" $tests/test_{planted,request_changes,git,layouts,mail,forges,track}.py "${pick[@]}"
	part style "${pytest[@]}" selftests/test_style.py "${pick[@]}"
	part docs "${pytest[@]}" selftests/test_docs.py "${pick[@]}"
	part ioloop userspace/ioloop/tests/run.sh
	part guest "${pytest[@]}" -m "guest$short" $tests/test_{guest,states,host,rungs,jobs,model,metric,first_figures}.py "${pick[@]}"
	part pathcount pathcount_on debian:6.1
	selftests
	part program "${pytest[@]}" -m "guest$short" $tests/test_program.py "${pick[@]}"
	part sharing "${pytest[@]}" -m "guest$short" $tests/test_sharing.py "${pick[@]}"
	part cluster "${pytest[@]}" -m "guest$short" $tests/test_cluster.py "${pick[@]}"
	part loops "${pytest[@]}" -m "guest$short" $tests/test_{ioloop,ancestors,referee,emulators,features,layers,drivers}.py "${pick[@]}"
	part arm64 "${pytest[@]}" -m "guest$short" $tests/test_arm64.py "${pick[@]}"
	part stacked "${pytest[@]}" -m "guest$short" $tests/test_stacked.py "${pick[@]}"
	part blknull "${pytest[@]}" -m "guest$short" $tests/test_blknull.py "${pick[@]}"
	part modules "${pytest[@]}" -m "not guest$short" selftests/test_modules.py "${pick[@]}"
	part intree "${pytest[@]}" -m "not guest$short" selftests/test_intree.py "${pick[@]}"
	# All of them are long.
	[[ -n $short ]] || part intree-guest "${pytest[@]}" -m guest $tests/test_intree.py "${pick[@]}"
	part install "${pytest[@]}" -m "not guest$short" selftests/test_install.py "${pick[@]}"
	[[ -z ${ALL-} && $want != riscv64 ]] || part riscv64 "${pytest[@]}" $tests/test_riscv64.py "${pick[@]}"
}

# The unit tests without the mutants, the style, and one test of each piece in a guest.
quick() {
	part iopath "${pytest[@]}" -m 'not guest and not long' userspace/iopath/tests \
		--ignore userspace/iopath/tests/test_python_mutants.py
	part selftests env KERNEL=7.2 "${pytest[@]}" -m guest -k 'blknull_disk or biogen_file' \
		userspace/iopath/tests/guests/test_selftests.py
	part guest "${pytest[@]}" -m guest -k 'test_figures_are_plausible and two' userspace/iopath/tests/guests/test_guest.py
	part style "${pytest[@]}" selftests/test_style.py
	part docs "${pytest[@]}" selftests/test_docs.py
}

if [[ $want == quick ]]; then
	want=
	quick
else
	parts
fi
# Parts that make systems of their own run by name only.
[[ $want != package ]] || part package "${pytest[@]}" selftests/test_package.py "${pick[@]}"
[[ $want != container ]] || part container "${pytest[@]}" selftests/test_container.py "${pick[@]}"

if [[ ${#names[@]} -eq 0 ]]; then
	pick=(-k "$want")
	want=selftests
	parts
fi

if [[ ${#pick[@]} -gt 0 && ${commands[${names[0]}]} != *pytest* ]]; then
	echo "T=$T: the part ${names[0]} runs whole or not at all" >&2
	exit 2
fi

logs=$(mktemp -d) || exit 2
trap 'rm -rf "$logs"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM

run_part() {
	local TIMEFORMAT='%0R %0U %0S' status

	{ time eval "${commands[$1]}" >"$logs/$1" 2>&1 </dev/null; } 2>"$logs/$1.time"
	status=$?
	echo "$status $(tail -n 1 "$logs/$1.time")" >"$logs/$1.status"
}

# How many tests of a part's log passed, failed and were skipped.
count() {
	awk '
	/^ok [0-9]+.*# SKIP/ { skipped++; next }
	/^ok / { passed++ }
	/^not ok [0-9]/ { failed++ }
	/^[0-9].* in [0-9.]+s/ {
		for (i = 1; i < NF; i++) {
			if ($(i + 1) ~ /^passed/) passed += $i
			if ($(i + 1) ~ /^(failed|errors?)/) failed += $i
			if ($(i + 1) ~ /^skipped/) skipped += $i
		}
	}
	END { print passed + 0, failed + 0, skipped + 0 }' "$1"
}

passed=0 failed=0 skipped=0
report() {
	local name=$1 status=1 took=0 user=0 system=0 p f s coverage

	read -r status took user system <"$logs/$name.status"
	read -r p f s < <(count "$logs/$name")
	# A part that fails without a failed test, or runs no test, counts as one failure.
	if [[ $f -eq 0 && ($status -ne 0 || $p -eq 0) ]]; then
		echo "not ok - $name ended with status $status, $p tests passed" >>"$logs/$name"
		f=1
	fi
	echo "== $name: $p passed, $f failed, $s skipped, in $took s"
	grep -o 'guests not run again: .*' "$logs/$name" | sed 's/^/   /'
	[[ $f -eq 0 && $s -eq 0 ]] || cat "$logs/$name"
	coverage=build/coverage/${name#selftests-}.txt
	[[ $name != selftests-* || ! -f $coverage ]] || echo "   $coverage: $(tail -n 1 "$coverage" | xargs)"
	echo "$took $((user + system)) $p $f $name" >>"$logs/table"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# A part more than there are CPUs runs at a time, because some wait. Each is reported when it ends.
slots=$(($(nproc) + 1))
declare -A running=()
wait_part() {
	local ended

	wait -n -p ended
	report "${running[$ended]}"
	unset "running[$ended]"
}

for name in "${names[@]}"; do
	[[ ${#running[@]} -lt $slots ]] || wait_part
	run_part "$name" &
	running[$!]=$name
done
while [[ ${#running[@]} -gt 0 ]]; do
	wait_part
done

# The time of each part: elapsed minutes, and CPU minutes.
sort -rn "$logs/table" | awk '
BEGIN { printf "%8s %8s %8s %8s  %s\n", "minutes", "of CPU", "passed", "failed", "part" }
{
	printf "%8.1f %8.1f %8d %8d  %s\n", $1 / 60, $2 / 60, $3, $4, $5
	cpu += $2
}
END { printf "%8.1f %8.1f %17s  %s\n", '"$SECONDS"' / 60, cpu / 60, "", "all of them" }'
echo 'The slowest tests of pytest:'
cat "$logs"/* | grep -E '^[0-9.]+s (call|setup|teardown) ' | sort -rn | head -n 20
echo "$passed passed, $failed failed$([[ $skipped -eq 0 ]] || echo ", $skipped skipped")"
[[ $failed -eq 0 && $skipped -eq 0 ]]
