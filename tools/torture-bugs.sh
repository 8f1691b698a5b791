#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# torture-bugs.sh [NAME...]: the torture breaks its own rules, one at a time, by
# its parameter bug=, and the check that is there for it has to say so, and the
# verdict to be FAILURE. Logs stay in build/torture-bugs.
#
# A few seconds each on user-mode Linux; "race", which only KCSAN sees, in QEMU.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/torture-bugs

named() {
	sed -n 's/^\t\[TT_BUG_[A-Z]*\] = "\(.\+\)",$/\1/p' "$top/tests/torture/main.c"
}

# What is to be read on the console.
complaint() {
	case $1 in
	lost) echo '!!! .*(are lost|of kind [0-9]+ [0-9]+ have ended)' ;;
	twice) echo '!!! .*and ran more' ;;
	reentrant) echo '!!! .*runs twice at once' ;;
	stale) echo '!!! bead .* sees ' ;;
	order) echo '!!! .* runs after ' ;;
	crowd) echo '!!! .* run at once, of ' ;;
	flush) echo '!!! a flush of .* did not wait' ;;
	disabled) echo '!!! item .* although disabled' ;;
	released) echo '!!! a batch was released, and of ' ;;
	failure) echo '!!! .* the notifiers were told of ' ;;
	race) echo 'BUG: KCSAN: data-race in tt_(race|thread_fn)' ;;
	*) return 1 ;;
	esac
}

# Runs it, which is to be red; by the torture's own word, unless that is KCSAN's to say.
torture() {
	local kind=uml seconds=8 rc=0
	[ "$1" != race ] || kind=qemu-kcsan seconds=20
	TORTURE_ARGS="bug=$1" TORTURE_LOADS=0 "$top/tools/torture.sh" "$kind" "$seconds" \
		>"$dir/$1.log" 2>&1 || rc=$?
	[ $rc -eq 1 ] || [ $rc -eq 3 ] || return 2
	cp "$top/build/torture-$kind/console.log" "$dir/$1.console" || return 2
	grep -aq "Start of test.*bug=$1[[:space:]]*\$" "$dir/$1.console" || return 2
	[ "$1" = race ] || grep -q 'End of test: FAILURE' "$dir/$1.console"
}

judge() {
	local seen t0=$SECONDS wanted
	if ! wanted=$(complaint "$1"); then
		echo "bug $1: FAILED, nobody knows what is to be said of it"
	elif ! torture "$1"; then
		echo "bug $1: FAILED, no verdict; $(tail -n 1 "$dir/$1.log")"
	elif ! seen=$(grep -aoEm 1 "$wanted.*" "$dir/$1.console"); then
		echo "bug $1: FAILED, nobody has said ${wanted#'!!! '}"
	else
		echo "bug $1: found, \"${seen#'!!! '}\" ($((SECONDS - t0)) s)"
		return 0
	fi
	return 1
}

main() {
	local name passed=0 failed=0
	rm -rf "$dir"
	mkdir -p "$dir"
	for name in "$@"; do
		if judge "$name"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
	done
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
}

if [ $# -eq 0 ]; then
	mapfile -t names < <(named)
	set -- "${names[@]}"
fi
locked "$dir.lock" main "$@"
