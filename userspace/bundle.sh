#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Time the rungs of iopath on a machine where nothing may be installed:
#
#	sh iopath-host.sh [CPU] > host.tar
#
# As root, and where the kernel's headers, make and a compiler are there, it builds
# and loads blknull and biogen, and unloads them afterwards. Without the modules,
# only rungs without a device are measured. It leaves nothing behind.
set -eu

say() {
	echo "iopath-host: $*" >&2
}

[ ! -t 1 ] || { say "the result goes to stdout: sh $0 > host.tar"; exit 2; }
work=$(mktemp -d)
loaded=

# shellcheck disable=SC2317 # it is reachable
finish() {
	[ -z "$loaded" ] || sh "$work/userspace/load.sh" unload >&2 || true
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' HUP INT TERM

begin=$(awk '/^FILES$/ { print NR + 1; exit }' "$0")
tail -n "+$begin" "$0" | tar -xz -C "$work"
facts=$work/result/facts
mkdir -p "$facts"

# Loading the modules.

headers=/lib/modules/$(uname -r)/build
if [ ! -d /sys/module/blknull ] && [ "$(id -u)" = 0 ] && [ -d "$headers" ] && command -v make >/dev/null; then
	say "building the modules"
	llvm=
	! grep -qsx CONFIG_CC_IS_CLANG=y "$headers/.config" || llvm=LLVM=1
	# shellcheck disable=SC2086 # it is no word if it is empty
	if make -C "$headers" M="$work" $llvm modules >"$work/log" 2>&1 &&
		sh "$work/userspace/load.sh" load >"$work/log" 2>&1; then
		loaded=1
	else
		say "the modules cannot be built or loaded: $(tail -n 1 "$work/log")"
	fi
fi
[ -d /sys/module/blknull ] || say "without blknull: only rungs without a device are measured"

# What could explain a difference in time.

allowed=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
isolated=$(cat /sys/devices/system/cpu/isolated 2>/dev/null || true)
last=${isolated:-$allowed}
cpu=${1:-${last##*[-,]}}
echo "$cpu" >"$facts/cpu"
uname -m >"$facts/arch"
for fact in /proc/cmdline /proc/cpuinfo /proc/loadavg /proc/self/status /proc/version \
	/proc/config.gz /proc/sys/kernel/osrelease "/boot/config-$(uname -r)" "/lib/modules/$(uname -r)/config" \
	/sys/devices/system/clocksource/clocksource0/current_clocksource \
	/sys/devices/system/cpu/isolated /sys/devices/system/cpu/vulnerabilities/* \
	/sys/devices/system/cpu/intel_pstate/no_turbo /sys/devices/system/cpu/cpufreq/boost \
	"/sys/devices/system/cpu/cpu$cpu/cpufreq/scaling_governor" \
	"/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list" \
	/sys/module/blknull/srcversion /sys/module/blknull/parameters/* \
	/sys/module/biogen/srcversion /sys/module/biogen/parameters/*; do
	[ -r "$fact" ] || continue
	mkdir -p "$facts$(dirname "$fact")"
	cat "$fact" >"$facts$fact" 2>/dev/null || rm "$facts$fact"
done

# The runs. Each file of runs has the batch, the target or "-", and the loop's options.

# take NUMBER SAMPLE IOS: one sample of a run
take() {
	while read -r _ _ options; do
		# shellcheck disable=SC2086 # these are words
		"$work/ioloop" $options --number_ios="$3" --cpus_allowed="$cpu" >"$work/result/$1/$2" 2>"$work/log"
	done <"$work/runs/$1"
}

numbers='' backwards=''
for number in $(cd "$work/runs" && echo * | tr ' ' '\n' | sort -n); do
	read -r batch target _ <"$work/runs/$number"
	[ "$target" = - ] || [ -e "$target" ] || continue
	mkdir "$work/result/$number"
	if ! take "$number" trial "$batch"; then
		say "left out: $(cat "$work/titles/$number"): $(tail -n 1 "$work/log")"
		rm -r "${work:?}/result/$number"
		continue
	fi
	ios=$(sed -n 's/^      "ios": \([0-9]*\),.*/\1/p' "$work/result/$number/trial" | head -n 1)
	ns=$(sed -n 's/^      "ns": \([0-9]*\),.*/\1/p' "$work/result/$number/trial" | head -n 1)
	# A round takes about 5 ms.
	wanted=$(((5000000 * ios / (ns + 1) / batch + 1) * batch))
	[ "$wanted" -le 16777216 ] || wanted=16777216
	echo "$wanted" >"$work/result/$number/ios"
	rm "$work/result/$number/trial"
	numbers="$numbers $number"
	backwards="$number $backwards"
done
[ -n "$numbers" ] || { say "no rung can be measured"; exit 1; }

read -r noise passes <"$work/passes"
for kind in noise pass; do
	most=$noise
	[ $kind = noise ] || most=$passes
	say "measuring: $most samples of each rung"
	for pass in $(seq 1 "$most"); do
		order=$numbers
		[ $((pass % 2)) = 1 ] || order=$backwards
		for number in $order; do
			take "$number" "$kind.$pass" "$(cat "$work/result/$number/ios")" || {
				say "$(cat "$work/titles/$number"): $(tail -n 1 "$work/log")"
				exit 1
			}
		done
	done
done
tar -c -C "$work" result titles ioloop.digest version
exit 0
