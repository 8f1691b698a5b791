#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ports.sh: measure what a driver gains by fairwq. It builds the kernel's own dm-crypt and
# a port of it (ports/dm-crypt.patch) with the same flags. One boot of 7.3 as user-mode
# Linux with 2 CPUs loads both, and measures them by turns: a modest reader beside a flood,
# in two cgroups. build/ports has table.txt, figures (a line each) and console.log.
#
# PORTS_ROUNDS, PORTS_SECONDS, exit: see ports-lib.sh.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$top/tools/ports-lib.sh"

dir=$top/build/ports
disk_mib=64

# Build the original and the port, both out of tree and with the same flags.
build_drivers() {
	local md
	md=$(readlink -f "$obj/source")/drivers/md
	mkdir -p "$dir/drivers"
	cp "$md/dm-crypt.c" "$dir/drivers/dm-crypt.c" &&
		cp "$md/dm-crypt.c" "$dir/drivers/dm-crypt-fairwq.c" &&
		patch -s --no-backup-if-mismatch "$dir/drivers/dm-crypt-fairwq.c" \
			"$top/ports/dm-crypt.patch" || return
	printf '%s\n' 'obj-m := dm-crypt.o dm-crypt-fairwq.o' "ccflags-y := -I$md -I$dir/src" \
		>"$dir/drivers/Kbuild"
	build_against "$dir/drivers"
}

fill_root() {
	make_root "$dir/root" cgroup modules
	cp "$dir/src/fairwq.ko" "$dir"/drivers/*.ko "$dir/root/modules/"
	add_client crypt_client guest.sh 16
}

main() {
	build_fairwq drivers || return 2
	step "build dm-crypt and its port" build_drivers || return 2
	step "put the guest together" fill_root || return 2
	FAIRWQ_CPUS=2 FAIRWQ_TIMEOUT=1600 \
		FAIRWQ_APPEND="brd.rd_nr=2 brd.rd_size=$((disk_mib << 10))" measure
}

need_packages "${build_packages[@]}" busybox-static
obj=$("$top/tools/kernel.sh" 7.3 uml native ports) || exit 2
locked "$dir.lock" main
