# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: GPL-2.0
#
# guest-lib.sh: what the guests of the ports share. Settings are in /ports.args,
# figures in /figures. A guest has the functions prepare and turn SIDE ROUND, where SIDE
# is original or port. It may define both and compare anew. It ends with guest_main.

export PATH=/bin:/usr/sbin:/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
rounds=0 seconds=0 disk_mib=0 modes="" shared=
. /ports.args

# figure WORD...: a line of figures, which is shown, too.
figure() {
	echo "$*" | tee -a /figures >/dev/kmsg
}

# ask SIDE ROUND MODE CLIENT [ARGUMENT...]: measure the modest one alone, beside
# the flood, and when it asks more eagerly.
ask() {
	asked="$1 $2 $3" client=$4
	shift 4
	for with in alone round eager; do
		line=$("$client" $with "$@") || return
		figure "$with $asked $line"
	done
}

# both SIDE OTHER ROUND: ask both sides, in this order.
both() {
	turn "$1" "$3" && turn "$2" "$3"
}

# Check at the end that both sides hold the same data.
compare() {
	true
}

# What is asked first changes from round to round.
measure() {
	round=1
	while [ "$round" -le "$rounds" ]; do
		if [ $((round % 2)) = 1 ]; then
			both original port "$round" || return
		else
			both port original "$round" || return
		fi
		round=$((round + 1))
	done
}

guest_main() {
	end=failed
	! { prepare && measure && compare; } 2>/dev/kmsg || end="done"
	echo "end $end" >>/figures
	poweroff -f
}
