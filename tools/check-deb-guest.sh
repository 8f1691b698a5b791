#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# check-deb-guest.sh STEP: the first process of check-deb.sh's guest. The guest has the
# stock kernel and the root in which the packages are installed. It reports on the second
# serial line, and ends with "guest: done" if all checks have passed.

export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
exec >/dev/ttyS1 2>&1 </dev/null

say() { echo "guest: $*"; }

# Load a driver while bpftrace looks at how long its items wait.
load_watched() {
	fairwq-waits.bt hello >/tmp/waits 2>&1 &
	bpftrace=$!
	until grep -q Ctrl-C /tmp/waits; do
		kill -0 $bpftrace || { cat /tmp/waits; return 1; }
		sleep 1
	done
	modprobe -v "$1" && sleep 2 && kill -INT $bpftrace && wait $bpftrace
	cat /tmp/waits
	grep -q '^@wait_us_by_batch\[hello, bert\]' /tmp/waits &&
		grep -q '^@wait_us_by_function\[greet' /tmp/waits
}

# Load both modules by name, from the folder of DKMS. The arguments load the client.
module_and_client() {
	modprobe -v fairwq && "$@" fairwq_hello || return
	say "module $(cat /sys/module/fairwq/version)"
	say "used by $(ls /sys/module/fairwq/holders)"
	say "greetings $(dmesg | grep -c 'hello from')"
	say "debugfs $(cat /sys/kernel/debug/fairwq/version)"
}

man_and_tools() {
	man -w fairwq_queue fairwq-top fairwq-trace fairwq-waits.bt && fairwq-top --once
}

# Lock the kernel down, as Secure Boot does. Tables must be readable, and knobs not. A
# module whose key the kernel does not know must be refused.
lock_down() {
	mount -t securityfs securityfs /sys/kernel/security &&
		echo integrity >/sys/kernel/security/lockdown &&
		cat /sys/kernel/debug/fairwq/hello/summary &&
		! cat /sys/kernel/debug/fairwq/hello/max_active &&
		modinfo -F signer fairwq && modprobe -r fairwq_hello && ! modprobe fairwq_hello
}

# Purge the packages as an operator does, after the modules were in use.
purge() {
	modprobe -r fairwq_hello && dkms remove fairwq-hello/1.0 --all &&
		rm -r /usr/src/fairwq-hello-1.0 && modprobe -r fairwq &&
		apt-get purge -qy -o Dpkg::Use-Pty=0 'fairwq-*' && ! modinfo fairwq 2>/dev/null
}

mount -t debugfs debugfs /sys/kernel/debug
case $1 in
use) module_and_client load_watched && man_and_tools && lock_down ;;
purge) module_and_client modprobe -v && purge ;;
*) false ;;
esac && say "done"
sync
echo o >/proc/sysrq-trigger
while :; do :; done
