#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scaling-run.sh: run the bench that tools/scaling.sh has put into one file. There it is
# called "run", and has its own copy of tools beside it.
#
# BENCH_CPUS  virtual CPUs, 1 to 64 (as many as this machine has)
#
# Exit: 0 measured, 2 it was called wrongly, 3 the guest crashed, warned or did not
# finish, 124 it hung.

export FAIRWQ_CACHE=/	# there is nothing to keep
. "$(dirname "${BASH_SOURCE[0]}")/tools/lib.sh"

cpus=${BENCH_CPUS:-$((jobs < 64 ? jobs : 64))}
[[ $cpus =~ ^[1-9][0-9]*$ && $cpus -le 64 ]] || die "BENCH_CPUS is 1 to 64, not $cpus"
idle=poll append="nopvspin nohlt"
[ "$cpus" -le "$jobs" ] || idle=sleep append=nopvspin

load=$(cut -d' ' -f1-3 /proc/loadavg)
# guest.py counts the time of all CPUs, which never rest.
FAIRWQ_APPEND=$append FAIRWQ_CPUS=$cpus FAIRWQ_LIMIT=$((cpus * 150)) \
	FAIRWQ_TIMEOUT=$((cpus * 600)) "$top/tools/boot.sh" uml "$top" "$top"
"$top/tools/bench.py" "$top" "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | uniq)" \
	"kernel: uml-native; idle CPUs: $idle; fairwq and the bench: linked" \
	"load average of the host's $jobs CPUs: $load before, $(cut -d' ' -f1-3 /proc/loadavg) after"
