#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-tools.sh: the tests of what operators run, on tables and traces and no kernel.
# Ends with "N passed, N failed".

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_packages python3 python3-matplotlib

log=$top/build/tools.log
mkdir -p "$top/build"
rc=0
ran=0
bad=0
for test in "$top"/tests/tools/*_test.py; do
	failed=0
	/usr/bin/python3 -B "$test" >"$log" 2>&1 || failed=1
	n=$(sed -n 's/^Ran \([0-9]*\) tests\? .*/\1/p' "$log")
	ran=$((ran + ${n:-0}))
	[ $failed -ne 0 ] || [ "${n:-0}" -gt 0 ] || failed=1
	[ $failed -ne 0 ] || continue
	cat "$log"
	rc=1
	n=$(awk -F '[=,)]' '/^FAILED \(/ { for (i = 2; i <= NF; i += 2) n += $i; print n }' "$log")
	# A test that could not even begin is one that failed.
	bad=$((bad + ${n:-1}))
	[ -n "$n" ] || ran=$((ran + 1))
done
echo "$((ran - bad)) passed, $bad failed"
exit $rc
