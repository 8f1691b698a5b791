#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-tools.sh: the tests of what operators run, on recorded tables and no kernel.
# Ends with "N passed, N failed".

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_packages python3

log=$top/build/tools.log
mkdir -p "$top/build"
rc=0
python3 -B "$top/tests/tools/fairwq_top_test.py" >"$log" 2>&1 || rc=1
ran=$(sed -n 's/^Ran \([0-9]*\) tests\? .*/\1/p' "$log")
bad=$(awk -F '[=,)]' '/^FAILED \(/ { for (i = 2; i <= NF; i += 2) n += $i; print n }' "$log")
[ $rc -eq 0 ] || cat "$log"
# A test that could not even begin is one that failed.
[ $rc -eq 0 ] || [ -n "$bad" ] || bad=1
echo "$((${ran:-0} - ${bad:-0})) passed, ${bad:-0} failed"
exit $rc
