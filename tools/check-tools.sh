#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-tools.sh: the tests of what operators run, on tables and traces and no kernel, and
# those of guest.py.
# Ends with "N passed, N failed".

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_packages python3 python3-matplotlib

log=$top/build/tools.log
mkdir -p "$top/build"
rc=0
/usr/bin/python3 -B -m unittest discover -s "$top/tests/tools" -p '*_test.py' >"$log" 2>&1 || rc=1
ran=$(sed -n 's/^Ran \([0-9]*\) tests\? .*/\1/p' "$log")
bad=$(awk -F '[=,)]' '/^FAILED \(/ { for (i = 2; i <= NF; i += 2) n += $i } END { print n + 0 }' "$log")
# No test is a failure, too.
[ "${ran:-0}" -gt 0 ] || bad=1 ran=1 rc=1
[ $rc -eq 0 ] || cat "$log"
echo "$((ran - bad)) passed, $bad failed"
exit $rc
