#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ports-smb.sh: what a server gains by fairwq. Builds the kernel's own SMB server and a
# port of it (ports/ksmbd.patch) alike, and boots 7.3 as user-mode Linux with 2 CPUs. Both
# are loaded in turns and asked over the loopback device: a modest reader on one
# connection beside a flood on another.
# Leaves in build/ports-smb: table.txt, figures (a line each) and console.log.
#
# PORTS_ROUNDS   how often each is asked (5)
# PORTS_SECONDS  seconds of one measurement (2)
# PORTS_MODES    what the 64 flooders do: copy, read, write, sealed-copy and so on (copy
#                sealed-write read). copy: they have the server copy; sealed: all
#                connections are encrypted
#
# Exit: 0 measured and all data right, 1 the checksums differ, 2 it could not be built,
# 3 the guest crashed, warned, found wrong data or did not finish. Figures never fail
# the run.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/ports-smb
rounds=${PORTS_ROUNDS:-5}
seconds=${PORTS_SECONDS:-2}
modes=${PORTS_MODES:-copy sealed-write read}
# What the server's user space needs, with the libraries of all of it. Unpacked for the
# guest and never installed: its service would load a module into this machine's kernel.
packages=(ksmbd-tools libnl-3-200 libnl-genl-3-200 libglib2.0-0 libpcre2-8-0 libc6)

build_fairwq() {
	make -C "$obj" ARCH=um M="$dir/src" -j"$jobs" KCFLAGS=-Werror modules
}

# $1: original or port. The server is many files, so each has a folder of its own beside
# what it shares with the client.
build_server() {
	local smb at=$dir/$1
	smb=$(readlink -f "$obj/source")/fs/smb
	mkdir -p "$at/smb"
	rsync -r --checksum --exclude='*.o' "$smb/common" "$smb/server" "$at/smb/" || return
	mkdir -p "$at/nls"
	rsync -r --checksum --include='*.h' --exclude='*' "${smb%/smb}/nls/" "$at/nls/" || return
	if [ "$1" = port ]; then
		patch -s -p1 --no-backup-if-mismatch -d "$at/smb/server" <"$top/ports/ksmbd.patch" ||
			return
	fi
	sed -i "s/^ksmbd-/ksmbd-$1-/; s/ksmbd\.o\$/ksmbd-$1.o/" "$at/smb/server/Makefile"
	printf '%s\n' "ccflags-y += -I$dir/src" >>"$at/smb/server/Makefile"
	make -C "$obj" ARCH=um M="$at/smb/server" -j"$jobs" \
		KBUILD_EXTRA_SYMBOLS="$dir/src/Module.symvers" modules
}

fill_root() {
	local name
	rm -rf "$dir/root"
	mkdir -p "$dir/root"/{bin,dev,proc,sys,etc/ksmbd,modules}
	for name in "${packages[@]}"; do
		rsync -rlp --exclude=/usr/share --exclude=gconv \
			"$("$top/tools/fetch.sh" package "$name")/" "$dir/root/" || return
	done
	cp /bin/busybox "$dir/root/bin/"
	for name in $(/bin/busybox --list | grep -vx busybox); do
		ln -sf busybox "$dir/root/bin/$name"
	done
	gcc -static -O2 -Wall -Wextra -Werror -DFLOODERS=64 -o "$dir/root/bin/crypt_client" \
		"$top/ports/crypt_client.c" || return
	install -m 755 "$top/ports/smb-guest.sh" "$dir/root/init"
	cp "$dir"/{src/fairwq,original/smb/server/ksmbd-original,port/smb/server/ksmbd-port}.ko \
		"$dir/root/modules/"
	echo 'root:x:0:0:root:/:/bin/sh' >"$dir/root/etc/passwd"
	printf '%s\n' '[global]' 'smb2 leases = no' '[share]' 'path = /share' 'read only = no' \
		'oplocks = no' 'store dos attributes = no' >"$dir/root/etc/ksmbd/ksmbd.conf"
	printf '%s\n' "rounds=$rounds" "seconds=$seconds" "modes='$modes'" >"$dir/root/ports.args"
	: >"$dir/root/figures"
}

main() {
	mkdir -p "$dir"
	# A copy that was built against another kernel is of no use.
	[ "$(cat "$dir/obj" 2>/dev/null)" = "$obj" ] || rm -rf "$dir"/{src,original,port}
	echo "$obj" >"$dir/obj"
	copy_sources "$dir/src"
	step "build fairwq" build_fairwq || return 2
	step "build ksmbd" build_server original || return 2
	step "build its port" build_server port || return 2
	step "put the guest together" fill_root || return 2
	FAIRWQ_CPUS=2 FAIRWQ_TIMEOUT=1200 "$top/tools/boot.sh" uml "$obj" "$dir"
	cp "$dir/root/figures" "$dir/figures"
	if ! grep -qx 'end done' "$dir/figures" ||
		grep -aqE '\] (WARNING|BUG|Oops|Kernel panic|INFO: task)|Call Trace:' "$dir/console.log"; then
		say "the guest did not finish, or warned; see ${dir#"$top"/}/console.log"
		tail -n 15 "$dir/console.log" >&2
		return 3
	fi
	"$top/tools/ports.py" "$dir/figures" ksmbd | tee "$dir/table.txt"
}

[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "PORTS_ROUNDS is a number, not $rounds"
need_packages "${build_packages[@]}" busybox-static
obj=$("$top/tools/kernel.sh" 7.3 uml native ksmbd) || exit 2
locked "$dir.lock" main
