#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-mutants.sh [NAME...]: plant the bugs that mutant.h names, one at a
# time, and want the suites to fail; each has to be caught. Logs stay in
# build/mutants.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/mutants
run=$dir/run
# A bug that hangs a test is caught when time is up: for the sound module this
# much, for the others what the sound one took (see main) and a bit.
export FAIRWQ_LIMIT=120 FAIRWQ_TIMEOUT=180
export FAIRWQ_STOP=1

# The suite that is meant to catch the named bug, by what mutant.h says.
first_suite() {
	local word
	word=$(sed -n "s/^\tFAIRWQ_MUTANT_$1,.*\[\([a-z]*\)\].*/\1/p" "$top/mutant.h")
	case $word in
	fairwq) echo fairwq_kunit ;;
	?*) echo "fairwq_${word}_kunit" ;;
	esac
}

# Builds with the named bug, boots, judges. Only a build that fails is a
# failure here.
try() {
	FAIRWQ_FIRST=$(first_suite "$1") \
		"$top/tools/build.sh" "$obj" um "$run" "FAIRWQ_MUTANT=$1" || return 2
	t0=$SECONDS
	"$top/tools/boot.sh" uml "$obj" "$run"
	took=$((SECONDS - t0))
	"$top/tools/verdict.py" "$run" >"$dir/$1.log" || return 1
}

# Those in mutant.h and those that the code asks for; both lists have to be
# the same, which planted() sees to.
named() {
	sed -n 's/^\tFAIRWQ_MUTANT_\([A-Z0-9_]*\).*/\1/p' "$top/mutant.h" | grep -vx NONE
}

planted() {
	grep -q "fairwq_mutant($1)" "$top"/*.[ch]
}

# The first thing that a verdict complains about, by name; what never ran in
# consequence of something else comes last.
first_failure() {
	sed -n 's/^  FAILED //p' "$1" | sed 's/: not ok$//' |
		awk '/ran 0 times$|" not done/ {if (!late) late = $0; next}
			{print; late = ""; exit}
			END {if (late) print late}'
}

# $1: name. Prints its line. A bug that needs two CPUs to meet may stay out of
# sight once: a busy machine gives each of them its own time. It gets another
# chance, and the line says so.
judge() {
	local rc=0 again=
	if ! planted "$1"; then
		echo "mutant $1: FAILED, named in mutant.h and planted nowhere"
		return 1
	fi
	say "  with $1:"
	try "$1" || rc=$?
	if [ "$rc" -eq 0 ]; then
		again=", in the second run"
		try "$1" || rc=$?
	fi
	case $rc in
	0) echo "mutant $1: FAILED, not caught" ;;
	1) echo "mutant $1: caught by $(first_failure "$dir/$1.log")$again" ;;
	*) echo "mutant $1: FAILED, does not build" ;;
	esac
	[ "$rc" -eq 1 ]
}

main() {
	local passed=1 failed=0 name missed=()
	rm -f "$dir"/*.log
	if ! try NONE; then
		cat "$dir/NONE.log" 2>/dev/null || true
		echo "the module without a planted bug: FAILED"
		echo "0 passed, 1 failed"
		return 1
	fi
	echo "no mutant: clean ($took s)"
	FAIRWQ_LIMIT=$((took + 10))
	FAIRWQ_TIMEOUT=$((2 * took + 20))
	for name in "$@"; do
		if judge "$name"; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
			missed+=("$name")
		fi
	done
	[ "$failed" -eq 0 ] || echo "not caught: ${missed[*]}"
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
}

need_packages "${build_packages[@]}" busybox-static
obj=$("$top/tools/kernel.sh" 7.3 uml) || exit 2
mkdir -p "$dir"
names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <(named)
locked "$dir.lock" main "${names[@]}"
