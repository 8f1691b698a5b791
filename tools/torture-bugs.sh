#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# torture-bugs.sh [NAME...]: let the torture break its own rules, one at a time, by its
# parameter bug=. Each check for that rule must report it, and the verdict must be
# FAILURE. After all of them, each problem that the torture can report must have been
# reported. Logs stay in build/torture-bugs.
#
# Each takes a few seconds on user-mode Linux. "race", which only KCSAN sees, and
# "hotplug" run in QEMU, and "starved" where allocations can fail.
#
# BUGS  names, if there is no argument (all)

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/torture-bugs

named() {
	sed -n 's/^\t\[TT_BUG_[A-Z]*\] = "\(.\+\)",$/\1/p' "$top/tests/torture/main.c"
}

# of_streams TEXT KIND...: print a complaint about streams of each kind.
of_streams() {
	local text=$1
	shift
	printf "!!! .*a stream \\\\(%s\\\\) $text\n" "$@"
}

# Print the expressions that the console must match for bug $1.
complaints() {
	case $1 in
	lost)
		echo '!!! item .* are lost'
		of_streams '[0-9]+ have ended' serializer limiter flow 'any batch'
		echo '!!! .* items that were queued once are lost'
		echo '!!! a batch took .* items: '
		;;
	twice)
		echo '!!! item .* and ran more'
		echo '!!! packet .* runs again'
		echo '!!! a packet that has ended is pending'
		;;
	reentrant)
		echo '!!! item .* runs twice at once'
		echo '!!! packet .* runs twice at once'
		echo '!!! two items of an object run at once'
		;;
	stale)
		echo '!!! item .* was told .* and saw '
		echo '!!! packet .* sees '
		echo '!!! an item that frees itself sees '
		echo '!!! an item of an object sees '
		;;
	order)
		of_streams 'runs after ' batch serializer limiter flow
		echo '!!! item .* of an object runs after '
		;;
	crowd) of_streams 'run at once, of ' batch serializer limiter flow ;;
	flush)
		of_streams 'did not wait' batch serializer limiter
		printf '!!! a flush of a %s did not wait\n' packet batch pool
		;;
	disabled) printf '!!! item .* %s although disabled\n' 'is pending' runs ;;
	released)
		echo '!!! a batch was released, and of '
		echo '!!! .* batches, .* released'
		;;
	failure)
		echo '!!! a driver was told of error '
		echo '!!! .* items failed, drivers were told of '
		;;
	refused)
		echo '!!! a queue call returned '
		echo '!!! a batch of a pool that is gone took an item'
		;;
	hung)
		echo '!!! nothing has run for '
		echo '!!! item .* has not ended'
		;;
	object) echo '!!! .* objects, .* freed' ;;
	unfair) echo '!!! in pool .* shares were wrong at ' ;;
	starved) echo '!!! no allocation has failed' ;;
	hotplug)
		echo '!!! CPU .* does not come back'
		echo '!!! no CPU went and came back'
		;;
	race) echo 'BUG: KCSAN: data-race in tt_(race|thread_fn)' ;;
	*) return 1 ;;
	esac
}

# Print how to run bug $1: KIND SECONDS PARAMETER... Rare operations that the bug needs
# get a higher weight.
conditions() {
	case $1 in
	lost) echo uml 8 patience=10 weights=empty=100 ;;
	flush) echo uml 8 weights=pool_flush=50,batch_flush=100,stream_meddle=300 ;;
	refused) echo uml 8 weights=pool=50 ;;
	hung) echo uml 8 progress=1 patience=2 ;;
	starved) echo uml-debug 30 ;;
	hotplug) echo qemu 20 ;;
	race) echo qemu-kcsan 20 ;;
	*) echo uml 8 ;;
	esac
}

# Run the torture with bug $1. It must fail, by its own verdict, or by KCSAN for "race".
torture() {
	local name=$1 kind seconds rc=0 args
	read -r kind seconds args < <(conditions "$name")
	TORTURE_ARGS="$args bug=$name" TORTURE_LOADS=0 \
		"$top/tools/torture.sh" "$kind" "$seconds" >"$dir/$name.log" 2>&1 || rc=$?
	[ $rc -eq 1 ] || [ $rc -eq 3 ] || return 2
	cp "$top/build/torture-$kind/console.log" "$dir/$name.console" || return 2
	grep -aq "Start of test.*bug=${name}[[:space:]]*\$" "$dir/$name.console" || return 2
	[ "$name" = race ] || grep -aq 'End of test: FAILURE' "$dir/$name.console"
}

# Print the first complaint of bug $1 that is not on the console, or nothing.
unsaid() {
	local line
	while read -r line; do
		grep -aqE "$line" "$dir/$1.console" || { echo "${line#'!!! '}" && return; }
	done < <(complaints "$1")
}

judge() {
	local missing t0=$SECONDS
	if ! complaints "$1" >/dev/null; then
		echo "bug $1: FAILED, no complaint is listed for it"
	elif ! torture "$1"; then
		echo "bug $1: FAILED, no verdict; $(tail -n 1 "$dir/$1.log")"
	elif missing=$(unsaid "$1") && [ -n "$missing" ]; then
		echo "bug $1: FAILED, the torture has not said $missing"
	else
		echo "bug $1: found, by $(complaints "$1" | wc -l) of its checks ($((SECONDS - t0)) s)"
		return 0
	fi
	return 1
}

# Print the problems that the torture can report, as expressions.
problems() {
	cat "$top"/tests/torture/*.c | grep -zoE 'tt_problem(_of)?\([^"()]*"[^"]*"' |
		sed -zE 's/^[^"]*"//; s/(\\n)?"$//' |
		sed -zE 's/[][().*^$+?{}|\\]/\\&/g; s/%l*[a-z]/.+/g' |
		tr '\0' '\n'
}

# Check that each of these problems was reported for some bug.
judge_all() {
	local line silent=0
	while read -r line; do
		grep -aqhE "!!! $line" "$dir"/*.console && continue
		echo "no bug: FAILED, the torture could say $line, and never did"
		silent=$((silent + 1))
	done < <(problems)
	[ $silent -eq 0 ] && echo "all that the torture could say, it has said"
}

main() {
	local name passed=0 failed=0
	rm -rf "$dir"
	mkdir -p "$dir"
	for name in "$@"; do
		if judge "$name"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
	done
	if [ "$*" = "$(named | xargs)" ]; then
		if judge_all; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
	fi
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
}

if [ $# -eq 0 ] && [ -n "${BUGS:-}" ]; then
	read -ra names <<<"$BUGS"
	set -- "${names[@]}"
elif [ $# -eq 0 ]; then
	mapfile -t names < <(named)
	set -- "${names[@]}"
fi
locked "$dir.lock" main "$@"
