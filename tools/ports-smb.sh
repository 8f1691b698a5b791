#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ports-smb.sh: what a server gains by fairwq. Builds the kernel's own SMB server and a
# port of it (ports/ksmbd.patch) alike, and boots 7.3 as user-mode Linux with 2 CPUs. Both
# are loaded in turns and asked over the loopback device: a modest reader on one
# connection beside a flood on another.
# Leaves in build/ports-smb: table.txt, figures (a line each) and console.log.
#
# PORTS_MODES    what the 64 flooders do: copy, read, write, sealed-copy and so on (copy
#                sealed-write read). copy: they have the server copy; sealed: all
#                connections are encrypted
# PORTS_SHARED   1: clients and server share both CPUs. Else they have one each, as clients
#                are other machines elsewhere
#
# PORTS_ROUNDS, PORTS_SECONDS, exit: see ports-lib.sh.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$top/tools/ports-lib.sh"

dir=$top/build/ports-smb
modes=${PORTS_MODES:-copy sealed-write read}
# What the server's user space needs, with the libraries of all of it. Unpacked for the
# guest and never installed: its service would load a module into this machine's kernel.
packages=(ksmbd-tools libnl-3-200 libnl-genl-3-200 libglib2.0-0 libpcre2-8-0 libc6)

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
	build_against "$at/smb/server"
}

fill_root() {
	local name
	make_root "$dir/root" etc/ksmbd modules
	for name in "${packages[@]}"; do
		rsync -rlp --exclude=/usr/share --exclude=gconv \
			"$("$top/tools/fetch.sh" package "$name")/" "$dir/root/" || return
	done
	cp "$dir"/{src/fairwq,original/smb/server/ksmbd-original,port/smb/server/ksmbd-port}.ko \
		"$dir/root/modules/"
	echo 'root:x:0:0:root:/:/bin/sh' >"$dir/root/etc/passwd"
	printf '%s\n' '[global]' 'smb2 leases = no' '[share]' 'path = /share' 'read only = no' \
		'oplocks = no' 'store dos attributes = no' >"$dir/root/etc/ksmbd/ksmbd.conf"
	add_client crypt_client smb-guest.sh 64 "modes='$modes'" "shared=${PORTS_SHARED:-}"
}

main() {
	build_fairwq original port || return 2
	step "build ksmbd" build_server original || return 2
	step "build its port" build_server port || return 2
	step "put the guest together" fill_root || return 2
	FAIRWQ_CPUS=2 FAIRWQ_TIMEOUT=2400 measure ksmbd
}

need_packages "${build_packages[@]}" busybox-static
obj=$("$top/tools/kernel.sh" 7.3 uml native ksmbd) || exit 2
locked "$dir.lock" main
