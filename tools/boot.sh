#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# boot.sh qemu|uml OBJ DIR: boot the kernel in OBJ with DIR/root as its file
# system, and wait until it ends. DIR then has console.log, result.log, the command
# line in cmdline, and the exit status in status (124: the guest hung).
#
# FAIRWQ_CPUS    processors of the guest (2)
# FAIRWQ_MEM     its memory (1G)
# FAIRWQ_LIMIT   seconds that it may run or sleep without any progress (300)
# FAIRWQ_TIMEOUT seconds that it may run or sleep in all (1200)
# FAIRWQ_STOP    if set, the first case that fails ends the guest
# FAIRWQ_WRAP    a command that runs the kernel's command, such as perf
# FAIRWQ_APPEND  more for the kernel's command line, such as FUZZ_SEED=7
#
# The seconds are the guest's own time, which does not pass while others have the CPUs. If
# they are up, what hung is printed and in DIR/hang. See guest.py.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kind=${1:?usage: boot.sh qemu|uml OBJ DIR}
obj=${2:?usage: boot.sh qemu|uml OBJ DIR}
dir=${3:?usage: boot.sh qemu|uml OBJ DIR}
cpus=${FAIRWQ_CPUS:-2}
mem=${FAIRWQ_MEM:-1G}

# An oops must end the guest, because results after it mean nothing. Hung tasks do not
# end it, because insmod itself looks hung while a long test case runs.
append="panic=-1 oops=panic printk.time=1 printk.devkmsg=on ignore_loglevel
	${FAIRWQ_STOP:+FAIRWQ_STOP=1} ${FAIRWQ_APPEND:-}"

qemu_command() {
	(cd "$dir/root" && find . | cpio -o -H newc -R 0:0 2>/dev/null) |
		gzip -1 >"$dir/initramfs.gz"
	qemu_machine "$cpus" "$mem"
	reports=$dir/result.log
	# On a busy machine the kernel's test of the timer, which gives it 10 ms, fails by chance.
	command=("${qemu[@]}" -serial "file:$dir/console.log" -serial "file:$reports"
		-kernel "$obj/arch/x86/boot/bzImage" -initrd "$dir/initramfs.gz"
		-append "$kernel_line no_timer_check FAIRWQ_END=reboot ${append//[$'\n\t']/ }")
}

# Print where user-mode Linux can keep its memory, in a file from which it executes code. In
# containers /dev/shm is small.
memory_folder() {
	local free
	free=$(df -m --output=avail /dev/shm 2>/dev/null | tail -n 1)
	if [ "${free:-0}" -gt $(($(numfmt --from=iec "$mem") >> 20)) ] &&
		! grep -q '^[^ ]* /dev/shm [^ ]* [^ ]*\<noexec\>' /proc/mounts; then
		echo /dev/shm
	else
		echo "$dir"
	fi
}

uml_command() {
	export TMPDIR
	TMPDIR=$(memory_folder)
	reports=$dir/root/result.log
	touch "$reports"
	# shellcheck disable=SC2206 # to be split
	command=("$obj/linux" "mem=$mem" seccomp=on "ncpus=$cpus"
		rootfstype=hostfs "rootflags=$dir/root" root=none rw init=/init
		"uml_dir=$dir/" umid=guest
		con=null "con0=fd:0,fd:1" FAIRWQ_END=poweroff $append)
}

run() {
	local rc=0
	# shellcheck disable=SC2086 # to be split
	"$top/tools/guest.py" "$dir" "$reports" "${FAIRWQ_LIMIT:-300}" "${FAIRWQ_TIMEOUT:-1200}" \
		${FAIRWQ_WRAP:-} "${command[@]}" || rc=$?
	[ ! -e "$dir/root/result.log" ] || mv "$dir/root/result.log" "$dir/"
	echo "$rc" >"$dir/status"
}

rm -rf "$dir"/{guest,console.log,result.log,qemu.log,hang,status}
"${kind}_command"
printf '%q ' "${command[@]}" >"$dir/cmdline"
step "boot and run the suites ($kind, $cpus CPUs)" run
[ ! -e "$dir/hang" ] || say_hang "$dir"
