#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-hostile.sh: run all suites on a machine that has no time for them. Two busy loops
# for each CPU run beside the guest, and it is stopped for 0.1 to 2 s, over and over, as
# a host may do with a virtual machine. Builds once, and boots many times. Logs stay in
# build/hostile.
#
# HOSTILE_UML    how often to boot 7.3 as user-mode Linux, of kind uml-native (10)
# HOSTILE_QEMU   how often to boot 6.1 in QEMU (3)
# FAIRWQ_SUITES  as for build.sh
#
# The last line is the sum of all boots. Before it are the cases that failed, and how often.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/hostile
loops=()

start_loops() {
	local i
	trap 'kill "${loops[@]}" 2>/dev/null || :' EXIT
	for ((i = 0; i < 2 * jobs; i++)); do
		sh -c 'while :; do :; done' &
		loops+=($!)
	done
}

# One boot, beside the loops. $1: uml or qemu, $2: the kernel's build folder, $3: number
boot() {
	local run=$dir/$1 log=$dir/$1.$3 rc=0
	FAIRWQ_STOPS=1 "$top/tools/boot.sh" "$1" "$2" "$run"
	"$top/tools/verdict.py" "$run" >"$log.verdict" || rc=$?
	cp "$run/console.log" "$log.console"
	echo "$1, boot $3: $(tail -n 1 "$log.verdict")"
	return $rc
}

# Boot so many times. $1: uml or qemu, $2: the kernel's build folder, $3: how often
boots() {
	local i rc=0
	for ((i = 1; i <= $3; i++)); do boot "$1" "$2" "$i" || rc=1; done
	return $rc
}

# Print what failed, and in how many boots.
failures() {
	local kind
	for kind in uml qemu; do
		[ -e "$dir/$kind.1.verdict" ] || continue
		sed -sn 's/^  FAILED //p' "$dir/$kind".*.verdict 2>/dev/null | sort | uniq -c |
			sed "s/^ *\([0-9]*\) /failed in \1 boots of $kind: /"
	done
}

main() {
	local rc=0
	rm -rf "$dir"/*.{verdict,console}
	mkdir -p "$dir"
	[ "$nr_uml" -eq 0 ] || "$top/tools/build.sh" "$obj_uml" um "$dir/uml" W=1e || return 2
	[ "$nr_qemu" -eq 0 ] || "$top/tools/build.sh" "$obj_qemu" x86_64 "$dir/qemu" W=1e || return 2
	start_loops
	boots uml "${obj_uml:-}" "$nr_uml" || rc=$?
	boots qemu "${obj_qemu:-}" "$nr_qemu" || rc=$?
	failures
	say_times
	total "$dir"/*.verdict
	return $rc
}

nr_uml=${HOSTILE_UML:-10} nr_qemu=${HOSTILE_QEMU:-3}
[[ $nr_uml =~ ^[0-9]+$ && $nr_qemu =~ ^[0-9]+$ && $nr_uml$nr_qemu =~ [1-9] ]] ||
	die "HOSTILE_UML and HOSTILE_QEMU are numbers, not $nr_uml and $nr_qemu"
count_times
need_packages "${build_packages[@]}" "${qemu_packages[@]}"
[ "$nr_uml" -eq 0 ] || obj_uml=$("$top/tools/kernel.sh" 7.3 uml native) || exit 2
[ "$nr_qemu" -eq 0 ] || obj_qemu=$("$top/tools/kernel.sh" 6.1 qemu) || exit 2
locked "$dir.lock" main
