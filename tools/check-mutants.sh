#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-mutants.sh [NAME...]: plant the bugs that mutant.h names, one at a
# time, and want the suite that it names with each to fail; and all suites to
# pass with NONE. There is one build for all of them: a parameter of the module
# says which bug there is. Logs stay in build/mutants.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/mutants
run=$dir/run

# In the order of their numbers, from NONE, which is 0; the line of each.
listed() {
	grep $'^\tFAIRWQ_MUTANT_[A-Z0-9_]*,' "$top/mutant.h"
}

named() {
	listed | sed 's/^\tFAIRWQ_MUTANT_\([A-Z0-9_]*\),.*/\1/'
}

# As the parameter of the module wants it.
number() {
	echo $(($(named | grep -nx "$1" | cut -d: -f1) - 1))
}

# The module that is meant to catch the named bug.
module_for() {
	local room
	room=$(listed | sed -n "s/^\tFAIRWQ_MUTANT_$1,.*\[\([a-z_]*\)\].*/\1/p")
	[ ! -e "$top/tests/${room}_kunit.c" ] || echo "fairwq_${room}_kunit"
}

# Named in mutant.h, and the code asks for it.
planted() {
	grep -q "fairwq_mutant($1)" "$top"/*.[ch]
}

# plan NUMBER MODULE...: what the guest does and what is to be seen of it.
plan() {
	local number=$1
	shift
	{
		printf 'insmod %s\n' kunit "fairwq mutant=$number"
		suite_steps "$@"
		printf '%s\n' "rmmod fairwq" "rmmod kunit" "unloaded all"
	} >"$run/root/plan"
	suites_in "$@" >"$run/suites"
}

# boot_with NAME NUMBER MODULE...: 0 if nothing was caught.
boot_with() {
	local name=$1
	shift
	plan "$@"
	"$top/tools/boot.sh" uml "$obj" "$run"
	"$top/tools/verdict.py" "$run" >"$dir/$name.log"
}

# What failed first, by name, and what the verdict found if no case says so.
first_failure() {
	local case
	case=$(grep -aoE '(# [a-z0-9_]+: (ASSERTION|EXPECTATION) FAILED|not ok [0-9]+ [a-z0-9_ ]+)' \
		"$run/console.log" | sed -E '1!d; s/^(# |not ok [0-9]+ )//; s/: .*//')
	echo "${case:-$(sed -n 's/^  FAILED //p' "$dir/$1.log" | head -n 1)}"
}

# $1: name. Prints its line. A bug that its own suite does not see may be seen
# by another: that is told, and counts as a failure, as one of the two is wrong.
judge() {
	local name=$1 own all t0=$SECONDS
	own=$(module_for "$name")
	if ! planted "$name"; then
		echo "mutant $name: FAILED, named in mutant.h and planted nowhere"
	elif [ -z "$own" ]; then
		echo "mutant $name: FAILED, mutant.h names no suite for it"
	elif ! boot_with "$name" "$(number "$name")" "$own"; then
		echo "mutant $name: caught by $own, $(first_failure "$name") ($((SECONDS - t0)) s)"
		return 0
	else
		mapfile -t all < <(suite_modules)
		if boot_with "$name" "$(number "$name")" "${all[@]}"; then
			echo "mutant $name: FAILED, not caught"
		else
			echo "mutant $name: FAILED, not caught by $own but $(first_failure "$name")"
		fi
	fi
	return 1
}

# The same without a bug.
sound() {
	local t0=$SECONDS all
	mapfile -t all < <(suite_modules)
	if ! FAIRWQ_STOP='' FAIRWQ_LIMIT=120 FAIRWQ_TIMEOUT=300 boot_with NONE 0 "${all[@]}"; then
		cat "$dir/NONE.log"
		echo "no mutant: FAILED"
		return 1
	fi
	echo "no mutant: clean ($((SECONDS - t0)) s)"
}

main() {
	local passed=0 failed=0 name missed=()
	rm -f "$dir"/*.log
	"$top/tools/build.sh" "$obj" um "$run" FAIRWQ_MUTANT=ALL || return
	# A bug that hangs a test is caught when time is up.
	export FAIRWQ_STOP=1 FAIRWQ_LIMIT=60 FAIRWQ_TIMEOUT=90
	for name in "$@"; do
		if if [ "$name" = NONE ]; then sound; else judge "$name"; fi; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
			missed+=("$name")
		fi
	done
	[ "$failed" -eq 0 ] || echo "not as meant: ${missed[*]}"
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
}

need_packages "${build_packages[@]}" busybox-static
obj=$("$top/tools/kernel.sh" 7.3 uml native) || exit 2
mkdir -p "$dir"
names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <(named)
locked "$dir.lock" main "${names[@]}"
