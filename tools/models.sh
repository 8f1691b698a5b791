#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# models.sh [MODEL...]: check all models of tests/models, or the named ones. Each is
# searched exhaustively, in each of its cases, and must hold and end. Each of its broken
# variants must be rejected, for the reason that the model gives. A search that was cut
# short is a failure. Logs stay in build/models.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/models
limit_s=100 limit_mb=1500

# Print the cases and the variants in the head of a model: "NAME" for each case, an empty
# line for the first one; "DEFINE... (REASON)" for each variant.
cases() {
	echo
	sed -n 's/^ \* Case \([A-Z_]*\):.*/\1/p' "$1"
}

variants() {
	sed -n 's/^ \* Broken \([A-Z_ ]* ([a-z -]*)\):.*/\1/p' "$1"
}

# defines DEFINE...: set options to those of spin. The first may be empty.
defines() {
	local d
	options=()
	for d; do [ -z "$d" ] || options+=("-D$d"); done
}

# build NAME ENDS DEFINE...: build the checker for tests/models/NAME.pml. With ENDS it
# searches for endless loops, else for assertions and processes that wait for ever.
build() {
	local name=$1 what=-DSAFETY
	[ -z "$2" ] || what=-DNP
	shift 2
	defines "$@"
	cp "$top"/tests/models/*.pml .
	spin "${options[@]}" -a "$name.pml" || return
	gcc "$what" -DVECTORSZ=1024 -DMEMLIM=$limit_mb -w -o pan pan.c
}

# search NAME ENDS DEFINE...: run the checker, with its output on stdout.
search() {
	rm -rf "$dir/search/$1"
	mkdir -p "$dir/search/$1"
	cd "$dir/search/$1" || return
	build "$@" || return
	cpu_limit "$limit_s" ./pan ${2:+-l} -n -m1000000 -w21
}

# Print the steps to the state that was rejected.
explain() {
	local name=$1
	shift 2
	[ -e "$dir/search/$name/$name.pml.trail" ] || return 0
	defines "$@"
	(cd "$dir/search/$name" && spin "${options[@]}" -t -p -k "$name.pml.trail" "$name.pml")
}

# Print the reason of a rejection, or nothing.
reason() {
	sed -n 's/^pan:1: \(assertion\|invalid end state\|non-progress cycle\).*/\1/p' "$1"
}

states() {
	sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' "$1"
}

# Check that the search was complete and found no error. pan has no message for that.
# Therefore it must have no complaint, and an error count of 0.
complete() {
	grep -q 'errors: 0$' "$1" && ! grep -qiE 'not completed|too small|out of memory|MEMLIM|^error|aborting' "$1"
}

# report OK TEXT LOG: print a line, and the end of the log unless OK.
report() {
	if [ -n "$1" ]; then
		echo "ok   $2"
	else
		echo "FAIL $2 (${3#"$top"/})"
		tail -n 15 "$3" | sed 's/^/    /'
	fi
}

# Search a model in one of its cases, or a variant of it.
try() {
	local log=$1
	shift
	(search "$@") >"$log" 2>&1 || echo "ended with $?" >>"$log"
	[ -z "$(reason "$log")" ] || explain "$@" >"${log%.log}.trail" 2>&1 || true
}

check_model() {
	local name=$1 case=$2 ends=$3 ok='' n log
	log=$dir/$name${case:+-$case}${ends:+-ends}.log
	try "$log" "$name" "$ends" "$case"
	n=$(states "$log")
	! complete "$log" || ! [ "${n:-0}" -gt 0 ] || ok=y
	report "$ok" "model $name${case:+ $case}${ends:+ ends}: ${n:-0} states" "$log"
}

check_variant() {
	local name=$1 defines=${2% (*} wanted=${2#* (} ends='' got ok='' log
	wanted=${wanted%)}
	log=$dir/$name-${defines// /-}.log
	[ "$wanted" != 'non-progress cycle' ] || ends=y
	# shellcheck disable=SC2086
	try "$log" "$name" "$ends" $defines
	got=$(reason "$log")
	[ "$got" != "$wanted" ] || ok=y
	report "$ok" "broken $name $defines: ${got:+rejected (}${got:-not rejected}${got:+)}" "$log"
}

# Check that the model tests each name of its head. An unknown name would change nothing.
known() {
	local file=$1 word ok=y log=$dir/names.log
	: >"$log"
	for word in $(cases "$file") $(variants "$file" | sed 's/ (.*//'); do
		grep -qE "^#.*\<$word\>" "$file" || { ok=; echo "$word does nothing" >>"$log"; }
	done
	[ "$(grep -c '^ \* Broken' "$file")" -eq "$(variants "$file" | wc -l)" ] ||
		{ ok=; echo "a variant without a reason" >>"$log"; }
	[ -n "$ok" ] || report "" "model $(basename "$file" .pml): its head" "$log"
}

check_file() {
	local file=$1 name case variant
	name=$(basename "$file" .pml)
	known "$file"
	while read -r case; do
		check_model "$name" "$case" ''
		check_model "$name" "$case" y
	done < <(cases "$file")
	while read -r variant; do
		check_variant "$name" "$variant"
	done < <(variants "$file")
}

# Check a model with all its cases and variants. Print the lines together.
model() {
	local out
	out=$(check_file "$top/tests/models/$1.pml")
	printf '%s\n' "$out" | tee -a "$dir/results"
}

# Check all models, a job for each CPU, the longest first.
main() {
	local names=("$@") name passed failed
	[ $# -gt 0 ] || mapfile -t names < <(cd "$top/tests/models" && ls -S ./*.pml | sed 's,^./,,; s/\.pml$//' | grep -vx memory)
	rm -rf "$dir"
	mkdir -p "$dir"
	for name in "${names[@]}"; do
		[ -e "$top/tests/models/$name.pml" ] || die "there is no model $name"
	done
	for name in "${names[@]}"; do
		while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
		model "$name" || echo "FAIL model $name: no answer" | tee -a "$dir/results" &
	done
	wait
	rm -rf "$dir/search"
	passed=$(grep -c '^ok   ' "$dir/results" || true)
	failed=$(grep -c '^FAIL ' "$dir/results" || true)
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
}

need_packages spin gcc libc6-dev
locked "$dir.lock" main "$@"
