#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ports-btrfs.sh: what a file system gains by fairwq. Builds the kernel's own btrfs and a
# port of it (ports/btrfs.patch) alike, and boots 7.3 as user-mode Linux with 2 CPUs. Both
# are loaded in turns on a RAM disk: a modest writer, which calls fsync(), beside a flood of
# compressed writes, each writer in a subvolume of its own. A flooder calls fsync() for each
# 32 MiB, so that pieces to compress are always queued, however much memory the guest has.
# Leaves in build/ports-btrfs: table.txt, figures (a line each) and console.log.
#
# PORTS_ROUNDS, PORTS_SECONDS, exit: see ports-lib.sh.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$top/tools/ports-lib.sh"

dir=$top/build/ports-btrfs
disk_mib=2560
# The file system's own tools, with their libraries. Unpacked for the guest, never installed.
packages=(btrfs-progs libblkid1 libuuid1 libudev1 zlib1g liblzo2-2 libzstd1 libgcc-s1
	libc6)

# $1: original or port. Files that are the same as before stay, so the next build compiles
# only what is new.
build_btrfs() {
	local new=$dir/$1.new
	rm -rf "$new"
	mkdir -p "$new" "$dir/$1"
	rsync -r --include='*/' --include='*.[ch]' --include=Makefile --exclude='*' \
		"$(readlink -f "$obj/source")/fs/btrfs/" "$new/" || return
	if [ "$1" = port ]; then
		patch -s -p1 --no-backup-if-mismatch -d "$new" <"$top/ports/btrfs.patch" || return
	fi
	printf '%s\n' "ccflags-y += -I$dir/src" >>"$new/Makefile"
	rsync -r --checksum --exclude='*.mod.c' "$new/" "$dir/$1/" && build_against "$dir/$1"
}

fill_root() {
	local name
	make_root "$dir/root" mnt modules/original modules/port
	for name in "${packages[@]}"; do
		rsync -rlp --exclude=/usr/share --exclude=gconv \
			"$("$top/tools/fetch.sh" package "$name")/" "$dir/root/" || return
	done
	cp "$dir/src/fairwq.ko" "$obj"/lib/raid/*/{xor,raid6_pq}.ko \
		"$obj/lib/crypto/libblake2b.ko" "$dir/root/modules/"
	for name in original port; do
		cp "$dir/$name/btrfs.ko" "$dir/root/modules/$name/"
	done
	add_client btrfs_client btrfs-guest.sh 4 "disk_mib=$disk_mib"
}

main() {
	build_fairwq original port || return 2
	step "build btrfs" build_btrfs original || return 2
	step "build its port" build_btrfs port || return 2
	step "put the guest together" fill_root || return 2
	FAIRWQ_CPUS=2 FAIRWQ_MEM=6G FAIRWQ_TIMEOUT=2400 \
		FAIRWQ_APPEND="brd.rd_nr=1 brd.rd_size=$((disk_mib << 10))" measure btrfs
}

need_packages "${build_packages[@]}" busybox-static
obj=$("$top/tools/kernel.sh" 7.3 uml native btrfs) || exit 2
locked "$dir.lock" main
