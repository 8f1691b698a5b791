#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-mutants.sh [NAME...]: plant the bugs of tests/bugs, one at a time. The suite that
# a patch names must fail. All suites must pass with NONE. Logs stay in build/mutants.
#
# A patch begins with "Suite: <name>...", each of tests/<name>_kunit.c, and with
# "Bug: <a line about it>". If it names several suites, each must fail.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/mutants
run=$dir/run

named() {
	echo NONE
	basename -s .patch "$top"/tests/bugs/*.patch
}

# Print the modules that must catch the bug $1, or nothing if one is missing.
modules_for() {
	local room rooms modules=()
	read -ra rooms < <(sed -n 's/^Suite: //p; 1q' "$top/tests/bugs/$1.patch")
	for room in "${rooms[@]}"; do
		[ -e "$top/tests/${room}_kunit.c" ] || return 0
		modules+=("fairwq_${room}_kunit")
	done
	printf '%s\n' "${modules[@]}"
}

# plan MODULE...: write the steps of the guest, and the suites that must be seen to run.
plan() {
	{
		printf 'insmod %s\n' kunit fairwq
		suite_steps "$@"
		printf '%s\n' "rmmod fairwq" "rmmod kunit" "unloaded all"
	} >"$run/root/plan"
	suites_in "$@" >"$run/suites"
}

# build [NAME]: build with the bug, or without any.
build() {
	FAIRWQ_BUG=${1:-} "$top/tools/build.sh" "$obj" um "$run" FAIRWQ_PLANTED=1 KCFLAGS=
}

# boot_with NAME MODULE...: boot the suites. Return: 0 if all have passed.
boot_with() {
	local name=$1
	shift
	plan "$@"
	"$top/tools/boot.sh" uml "$obj" "$run"
	"$top/tools/verdict.py" "$run" >"$dir/$name.log"
}

# Print the first case that failed, or, if there is none, the verdict's first finding.
first_failure() {
	local case
	case=$(grep -aoE '(# [a-z0-9_]+: (ASSERTION|EXPECTATION) FAILED|not ok [0-9]+ [a-z0-9_ ]+)' \
		"$run/console.log" | sed -E '1!d; s/^(# |not ok [0-9]+ )//; s/: .*//')
	echo "${case:-$(sed -n 's/^  FAILED //p' "$dir/$1.log" | head -n 1)}"
}

# judge_by MODULE NAME: check one suite, and print a line. If its own suite does not catch
# a bug, another one may. That is reported, and counts as a failure, because the patch or
# the suite is wrong.
judge_by() {
	local own=$1 name=$2 all t0=$SECONDS
	if ! boot_with "$name" "$own"; then
		echo "mutant $name: caught by $own, $(first_failure "$name") ($((SECONDS - t0)) s)"
		return 0
	fi
	mapfile -t all < <(suite_modules)
	if boot_with "$name" "${all[@]}"; then
		echo "mutant $name: FAILED, not caught"
	else
		echo "mutant $name: FAILED, not caught by $own but $(first_failure "$name")"
	fi
	return 1
}

# Check bug $1 by each of its suites, and print a line for each.
judge() {
	local name=$1 own module rc=0
	own=$(modules_for "$name")
	if [ -z "$own" ]; then
		echo "mutant $name: FAILED, its patch names no suite that there is"
		return 1
	elif ! build "$name"; then
		echo "mutant $name: FAILED, it cannot be built"
		return 1
	fi
	for module in $own; do
		judge_by "$module" "$name" || rc=1
	done
	return $rc
}

# Check that all suites pass without a bug.
sound() {
	local t0=$SECONDS all
	mapfile -t all < <(suite_modules)
	build || return
	if ! FAIRWQ_STOP='' FAIRWQ_LIMIT=200 FAIRWQ_TIMEOUT=1200 boot_with NONE "${all[@]}"; then
		cat "$dir/NONE.log"
		echo "no mutant: FAILED"
		return 1
	fi
	echo "no mutant: clean ($((SECONDS - t0)) s)"
}

main() {
	local passed=0 failed=0 name missed=()
	rm -f "$dir"/*.log
	# These limits catch a bug that hangs a test.
	export FAIRWQ_STOP=1 FAIRWQ_LIMIT=60 FAIRWQ_TIMEOUT=300
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
