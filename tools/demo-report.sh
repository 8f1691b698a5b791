#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# demo-report.sh DIR: read the guest's report (DIR/guest.log). Print the table, and make
# DIR/result.txt and the plot DIR/shares.svg.
#
# Exit: 0 all is well, 1 a digest is wrong or missing, or a share is not as promised.

# shellcheck disable=SC2317 # what makes the plot is called by way of step
{
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
}

dir=${1:?usage: demo-report.sh DIR}
sent=$dir/guest.log

value() { sed -n "s/^$1=//p" "$sent"; }

# Print the samples of run $1, one a line: seconds since the modest client came, items
# done for it ("-" when it is not there), items done for the greedy one.
samples() {
	awk -v run="$1" '
		BEGIN { n = 0 }
		$1 != "sample" || $2 != run { next }
		!($3 in at) { at[$3] = n; ms[n++] = $3 }
		$4 ~ /^modest$/ { m[at[$3]] = $5; if (!came) came = $3 }
		$4 ~ /^greedy$/ { g[at[$3]] = $5 }
		END {
			for (i = 0; i < n; i++)
				if (i in g)
					print (ms[i] - came) / 1000, i in m ? m[i] : "-", g[i]
		}' "$sent"
}

# Print "SECONDS MODEST GREEDY" for run $1: for how long both clients ran, and the items
# of each that were done in that time.
while_both_ran() {
	samples "$1" | awk '
		$2 == "-" { next }
		!n++ { m = $2; g = $3; t = $1 }
		{ dm = $2 - m; dg = $3 - g; dt = $1 - t }
		END { print dt + 0, dm + 0, dg + 0 }'
}

# Print lines for the plot: seconds, and the modest client's share in percent since the
# line before.
shares_over_time() {
	samples "$1" | awk '
		{ m = $2 == "-" ? (n ? last : 0) : $2 }
		n++ && $2 != "-" && m + $3 > last + g { print $1, 100 * (m - last) / (m - last + $3 - g) }
		{ last = m; g = $3 }'
}

share() { awk -v m="$1" -v g="$2" 'BEGIN { printf "%.4f", m + g ? m / (m + g) : 0 }'; }

# Set shell variables to the figures of the runs.
collect() {
	local run s m g
	for run in fifo round_robin; do
		read -r s m g < <(while_both_ran "$run")
		declare -g "both_$run=$s" "greedy_$run=$g" "share_$run=$(share "$m" "$g")"
	done
	checked=$(awk -F= '/_digests=/ { n += $2 } END { print n + 0 }' "$sent")
	wrong=$(awk -F= '/_wrong=/ { n += $2 } END { print n + 0 }' "$sent")
}

write_result() {
	cat <<-END
		modest_alone_s=$(value alone_modest_seconds)
		modest_fifo_s=$(value fifo_modest_seconds)
		modest_rr_s=$(value round_robin_modest_seconds)
		modest_fifo_share=${share_fifo:?}
		modest_rr_share=${share_round_robin:?}
		digests_checked=$checked
		digests_wrong=$wrong
		scan_tasks_taken=$(scan stolen)
	END
}

scan() { sed -n "s/^scan $1 //p" "$sent"; }

# Check the root of the scans. All ways gave the same one, because else the guest fails.
scan_root_is_right() {
	[ -n "$(scan root)" ] && [ "$(scan root)" = "$(cat "$dir/scan-expected")" ]
}

# Without times: the CPUs of the guest run in turns, so that two runners are no faster than one.
scan_table() {
	cat <<-END

		scan of $(scan pieces) pieces, $(scan zeros) of them zeros, by one item, by a static split, and by
		fairwq_parallel_for() on $(scan runners) runners: $(scan stolen) tasks taken by another runner in all rounds.
	END
}

mib() { awk -v b="$1" 'BEGIN { printf "%.1f", b / 1048576 }'; }

# Print how many milliseconds 99 items in 100 waited at most, at the last sample that has
# the modest client. $1: run, $2: client
wait99() {
	awk -v run="$1" -v client="$2" '
		$1 != "sample" || $2 != run { next }
		$4 == client { w = $6 }
		$4 ~ /^modest$/ { wait = w }
		END { printf "%.1f ms", wait / 1000 }' "$sent"
}

row() { printf '%-12s  %-7s  %8s  %8s  %7s  %9s  %8s\n' "$@"; }

# Print a row. $1: run, $2: client, $3: bytes, $4: seconds, $5: share
client_row() {
	row "$1" "$2" "$(mib "$3")" "$(printf '%.2f' "$4")" "$(printf '%.3f' "$5")" \
		"$(wait99 "$1" "$2")" "$(value "$1_$2_digests")"
}

# Print both rows of run $1. The greedy client goes on until the modest one is done.
both_rows() {
	local s="both_$1" g="greedy_$1" share="share_$1"
	client_row "$1" modest "$(value "$1_modest_bytes")" "$(value "$1_modest_seconds")" \
		"${!share}"
	client_row "$1" greedy "$((${!g} * $(value block)))" "${!s}" \
		"$(awk -v s="${!share}" 'BEGIN { print 1 - s }')"
}

table() {
	row run client MiB seconds share "p99 wait" digests
	client_row alone modest "$(value alone_modest_bytes)" \
		"$(value alone_modest_seconds)" 1
	both_rows fifo
	both_rows round_robin
	cat <<-END

		modest: one descriptor. greedy: $(value descriptors) at once, until modest is done;
		its MiB and seconds are of the time in which both ran.
		p99 wait: of a block of $(($(value block) / 1024)) KiB, from queued to begun.
		digests: of whole files, each compared with sha256sum.
	END
}

# Print a panel of the plot. $1: run, $2: title, $3: seconds
panel() {
	shares_over_time "$1" >"$dir/shares-$1.dat"
	cat <<-END
		set title "$2: the modest client is done after $3 s"
		plot [0:${3}] "$dir/shares-$1.dat" using 1:(100) with filledcurves y1=0 \
			lc rgb "#d8dee9" title "greedy, $(value descriptors) descriptors", \
			"" using 1:2 with filledcurves y1=0 lc rgb "#2e7d32" title "modest, 1 descriptor"
	END
}

plot() {
	gnuplot <<-END
		set terminal svg size 800,600 font "sans-serif,13" background rgb "white"
		set output "$dir/shares.svg"
		set multiplot layout 2,1
		set ylabel "share of the pool, %"
		set xlabel "seconds since the modest client began"
		set yrange [0:100]
		set key outside top center horizontal
		$(panel fifo "First come first served" "${both_fifo:?}")
		$(panel round_robin "In turns" "${both_round_robin:?}")
	END
}

# Check a promise. $1: its text, $2: awk condition
promise() {
	if awk "BEGIN { exit !($2) }"; then
		echo "  kept    $1"
	else
		echo "  MISSED  $1"
		missed=1
	fi
}

# The modest client's share of the watched run, as fairwq-top gave it.
share_by_top() {
	sed -n 's/^top-json //p' "$sent" | python3 -c '
import json, sys
batches = json.load(sys.stdin)["pools"]["fairhash"]["batch"]
share = sum(row["share"] for row in batches.values() if row["name"].startswith("modest-"))
print(f"{share / 100:.4f}")' ||
		echo 0
}

# The same by the events: the items that have started.
share_by_trace() {
	awk '/ fairwq_start: / { all++ }
		/ fairwq_start: .* batch=modest-/ { modest++ }
		END { printf "%.4f", all ? modest / all : 0 }' "$dir/fairwq.trace"
}

promises() {
	local fifo rr right top trace
	fifo=$(value fifo_modest_seconds) rr=$(value round_robin_modest_seconds)
	echo "Promised:"
	promise "under fifo the modest client gets at most 0.05 ($share_fifo)" \
		"$share_fifo <= 0.05"
	# It gets half while it has a block queued. On a busy host its process waits for a CPU,
	# and has none queued then. So the two orders are compared. Not in seconds: what else
	# the host does makes one run slower than the other.
	promise "in turns it gets ten times that ($share_round_robin, in $rr s, not $fifo s)" \
		"$share_round_robin >= 10 * $share_fifo"
	promise "no digest is wrong ($wrong of $checked)" "$checked > 0 && $wrong == 0"
	top=$(share_by_top) trace=$(share_by_trace)
	# Less, because the watchers take CPU time from the modest client, too.
	promise "fairwq-top sees it get that much ($top)" "$top >= 10 * $share_fifo"
	promise "fairwq-trace, too ($trace)" "$trace >= 10 * $share_fifo"
	scan_root_is_right && right=1
	promise "every way to scan gives the digest that sha256sum gives" "${right:-0}"
}

missed=0
collect
write_result >"$dir/result.txt"
table
scan_table
step "plot" plot
echo
promises
exit $missed
