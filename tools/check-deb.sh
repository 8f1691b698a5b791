#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-deb.sh: check the packages of "make deb". Lintian must have no complaint. Then
# they are installed, upgraded and purged on a Debian of their own, with a driver that
# DKMS builds against them. QEMU boots its stock kernel, which uses them.
#
# That Debian is a folder, build/check-deb/root, made of a cached archive. The compilers run
# in it by chroot, because an emulated CPU takes minutes for a build. The guest has the
# same folder as its root. The machine itself is not changed, and loads no module.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/check-deb
root=$dir/root
# Seconds of the guest's own time: without any progress, and in all. See guest.py.
silence_limit=600
guest_limit=1800
passed=0 failed=0

packages=(lintian mmdebstrap util-linux kmod cpio "${qemu_packages[@]}")
# The packages that a system for module builds has, and the Depends of ours.
root_packages=linux-image-amd64,linux-headers-amd64,dkms,gcc,make,libc6-dev
root_packages+=,man-db,python3,kmod,openssl,bpftrace

check() {
	local name=$1
	shift
	if step "$name" "$@"; then
		echo "ok   $name"
		passed=$((passed + 1))
	else
		echo "FAIL $name"
		failed=$((failed + 1))
	fi
}

lintian_is_silent() {
	lintian --allow-root -I -E --pedantic "$dir"/one/*.changes >"$dir/lintian" 2>&1 || true
	cat "$dir/lintian"
	[ ! -s "$dir/lintian" ]
}

# ---- the Debian -------------------------------------------------------------------

make_archive() {
	mkdir -p "$cache/deb"
	mmdebstrap --variant=minbase --include="$root_packages" \
		--dpkgopt='path-exclude=/usr/share/locale/*' bookworm "$archive.part.tar" &&
		mv "$archive.part.tar" "$archive"
}

unpack_root() {
	rm -rf "$root"
	mkdir -p "$root"
	tar -C "$root" --numeric-owner -xf "$archive"
}

# Run a command on that Debian, with processes and mounts of its own and no network.
on_root() {
	unshare --net --mount --pid --fork --kill-child --mount-proc="$root/proc" \
		chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root \
		DEBIAN_FRONTEND=noninteractive "$@"
}

# List every file with its size. Leave out logs, caches, the package system's own files,
# and the key that dkms makes at its first build.
list_files() {
	(cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./run \
		-o -path ./tmp -o -path ./var/log -o -path ./var/cache -o -path ./var/lib/apt \
		-o -path './var/lib/dpkg/*-old' -o -path ./var/lib/dpkg/lock\* \) -prune -o \
		! -path './var/lib/dkms/mok.*' \
		\( -type f -printf '%p %s\n' -o -printf '%p\n' \)) |
		sort
}

# ---- installing and purging ----------------------------------------------------------

# Install the packages in folder $1 by apt, as README tells users to do.
install_packages() {
	rm -rf "$root/tmp/deb"
	mkdir -p "$root/tmp/deb"
	cp "$1"/*.deb "$root/tmp/deb/"
	on_root sh -c 'apt-get install -y -o Dpkg::Use-Pty=0 /tmp/deb/*.deb' || return
	rm -rf "$root/tmp/deb"
	on_root dkms status
	[ "$(on_root dkms status | grep -c "^fairwq/$(version_of "$1").*: installed$")" = 1 ]
}

install_client() {
	on_root dkms install /usr/share/doc/fairwq-dev/examples/fairwq-hello -k "$abi"
}

# ---- booting it ----------------------------------------------------------------------

# Make an initramfs that loads the modules to mount a folder of the host, and mounts it.
make_initramfs() {
	local tree=$dir/initramfs file
	rm -rf "$tree"
	mkdir -p "$tree"/{bin,dev,proc,sys,mnt}
	cp /bin/busybox "$tree/bin/"
	cp "$top/tools/check-deb-guest.sh" "$tree/guest"
	chmod 755 "$tree/guest"
	{
		echo '#!/bin/busybox sh'
		echo '/bin/busybox --install -s /bin; export PATH=/bin'
		echo 'mount -t proc proc /proc; mount -t sysfs sysfs /sys'
		echo 'mount -t devtmpfs dev /dev'
		for file in $(modprobe -d "$root" -S "$abi" -a --show-depends virtio_pci \
			9pnet_virtio 9p | awk '$1 == "insmod" && !seen[$2]++ {print $2}'); do
			cp "$file" "$tree/" || return
			echo "insmod /${file##*/}"
		done
		echo 'o=trans=virtio,version=9p2000.L,cache=loose,msize=512000'
		# shellcheck disable=SC2016 # the guest's own variables
		echo 'mount -t 9p -o "$o" root /mnt'
		# shellcheck disable=SC2016
		echo 'for d in proc sys dev; do mount --move /$d /mnt/$d; done'
		echo 'ln -s /proc/self/fd /mnt/dev/fd'
		echo 'mount -t tmpfs run /mnt/run; mount -t tmpfs tmp /mnt/tmp'
		echo 'cp /guest /mnt/run/guest'
		# shellcheck disable=SC2016
		echo 'exec switch_root /mnt /run/guest "$step"'
	} >"$tree/init"
	chmod 755 "$tree/init"
	(cd "$tree" && find . | cpio -o -H newc -R 0:0) >"$dir/initramfs.cpio"
}

# Boot the guest for step $1.
boot() {
	local bad='WARNING:|BUG:|Oops|Call Trace|Kernel panic|\<stall|lockup|refcount_t' log=$dir/$1
	bad+='|disagrees|fairwq.*violation'
	make_initramfs || return
	rm -rf "$log"
	mkdir -p "$log"
	qemu_machine 2 1G
	"$top/tools/guest.py" "$log" "$log/guest.log" "$silence_limit" "$guest_limit" "${qemu[@]}" \
		-serial "file:$log/console.log" -serial "file:$log/guest.log" \
		-virtfs "local,path=$root,mount_tag=root,security_model=passthrough" \
		-kernel "$root/boot/vmlinuz-$abi" -initrd "$dir/initramfs.cpio" \
		-append "$kernel_line step=$1" || {
		echo "QEMU ended with $?"
		[ ! -e "$log/hang" ] || say_hang "$log"
		tail -n 20 "$log/console.log"
		return 1
	}
	cat "$log/guest.log"
	tr -d '\r' <"$log/guest.log" | grep -qx 'guest: done' ||
		{ tail -n 20 "$log/console.log"; return 1; }
	! grep -E "$bad" "$log/console.log"
}

# Let the guest do step $1, and check its report. $2: the version that must be loaded.
# The sample must greet five times.
guest_uses() {
	local line
	boot "$1" || return
	tr -d '\r' <"$dir/$1/guest.log" >"$dir/said"
	for line in "module $2" "used by fairwq_hello" "greetings 5"; do
		grep -qx "guest: $line" "$dir/said" ||
			{ echo "the guest must say: $line"; return 1; }
	done
}

nothing_is_left() {
	list_files >"$dir/after"
	diff "$dir/before" "$dir/after"
}

# Print the version of the packages in folder $1.
version_of() { dpkg-deb -f "$1"/fairwq-dkms_*.deb Version; }

main() {
	archive=$cache/deb/root-$(echo "$root_packages" | cksum | cut -d ' ' -f 1).tar
	mkdir -p "$dir"
	"$top/tools/deb.sh" "$dir/one" || die "no packages; see above"
	"$top/tools/deb.sh" "$dir/two" 99 || die "no packages; see above"
	check "lintian says nothing" lintian_is_silent
	[ -e "$archive" ] ||
		step "a Debian 12 with kernel, headers and dkms, for the cache" make_archive ||
		die "it could not be made: is Debian's mirror reachable?"
	step "unpack that Debian" unpack_root
	abi=$(find "$root/boot" -name 'vmlinuz-*' -printf '%f\n' |
		sort -V | sed -n '$s/^vmlinuz-//p')
	list_files >"$dir/before"
	check "apt installs them, DKMS builds for $abi" install_packages "$dir/one"
	check "DKMS builds a client" install_client
	check "module, client, man page and tools on the booted kernel" \
		guest_uses use "$(version_of "$dir/one")"
	check "apt upgrades them, DKMS builds again" install_packages "$dir/two"
	check "the new module, the old client, then purge on the booted kernel" \
		guest_uses purge "$(version_of "$dir/two")"
	check "nothing is left" nothing_is_left
	rm -rf "$root"
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
}

[ "$(dpkg --print-architecture)" = amd64 ] || die "the check boots an amd64 kernel"
[ "$(id -u)" -eq 0 ] || die "chroot and the guest's files need root: run it as root"
need_packages "${packages[@]}"
locked "$dir.lock" main
