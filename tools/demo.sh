#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# demo.sh: show the purpose of fairwq, on real files. It builds fairwq.ko, fairhash.ko
# and fairscan.ko against the distribution's own kernel, and boots that kernel in QEMU.
# A greedy and a modest client hash files side by side, under FIFO and in turns, and once
# more while fairwq-top and fairwq-trace watch. Then an image is scanned with and without
# fork and join. Every digest is checked. build/demo has table, plots, timeline and logs.
# With DEMO_SHELL set, the demo ends at a prompt in the guest.
#
# Exit: 0 all is well, 1 a digest or a share is wrong, 2 the build failed,
# 3 the guest crashed, warned or gave up, 124 it hung.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

out=$top/build/demo
corpus_mib=24
# Size of the image to scan: of its real files, and of all, with a hole behind them.
image_data_mib=4
image_mib=16
# Seconds of the guest's own time: without any progress, and in all. See guest.py.
silence_limit=60
guest_limit=600

packages=(gcc make libc6-dev kmod cpio rsync xz-utils
	linux-headers-amd64 qemu-system-x86 seabios busybox-static gnuplot-nox
	python3 python3-matplotlib ncurses-base)

# Print the stock kernel's ABI name, by the headers that the meta package depends on.
stock_abi() {
	dpkg-query -W -f='${Depends}\n' linux-headers-amd64 |
		sed -n 's/.*linux-headers-\([^ ,]*-amd64\).*/\1/p'
}

build_modules() {
	make -C "/lib/modules/$abi/build" M="$out/src" -j"$jobs" \
		CONFIG_FAIRWQ_SAMPLES=m KCFLAGS=-Werror modules
}

build_clients() {
	local name
	for name in fairhash_client fairhash_monitor; do
		gcc -static -O2 -Wall -Wextra -Werror -pthread -o "$out/$name" \
			"$top/samples/$name.c" || return
	done
}

# Choose real files of this machine, 0.5 to 2 MiB each, always the same ones.
choose_corpus() {
	find /usr/bin /usr/lib/x86_64-linux-gnu -xdev -type f -readable \
		-size +511k -size -2049k -printf '%s %p\n' |
		LC_ALL=C sort -k 2 | awk -v max=$((corpus_mib << 20)) '
			/^[0-9]+ [\/A-Za-z0-9._+-]+$/ && sum + $1 <= max { sum += $1; print $2 }'
}

copy_corpus() {
	local file
	mkdir -p "$root/files"
	choose_corpus >"$out/corpus.txt"
	[ "$(wc -l <"$out/corpus.txt")" -ge 8 ] || {
		echo "fewer than 8 files to hash were found"
		return 1
	}
	while read -r file; do
		cp "$file" "$root/files/$(basename "$file")"
	done <"$out/corpus.txt"
}

make_image() {
	cat "$root"/files/* >"$root/image" &&
		truncate -s "${image_data_mib}M" "$root/image" &&
		truncate -s "${image_mib}M" "$root/image" &&
		image_root >"$out/scan-expected"
}

# Print what /dev/fairscan must find: the SHA-256 of the digests of all pieces of 4 KiB.
image_root() {
	local hex
	rm -rf "$out/pieces"
	mkdir "$out/pieces"
	split -a 4 -b 4096 "$root/image" "$out/pieces/"
	hex=$(cd "$out/pieces" && sha256sum -- * | cut -c 1-64 | sed 's/../\\x&/g' | tr -d '\n')
	rm -r "$out/pieces"
	printf '%b' "$hex" | sha256sum | cut -c 1-64
}

# Copy the kernel's own SHA-256, unless it is built in, and then our modules. Their names
# are in the order in which the guest must load them.
copy_modules() {
	local name file
	mkdir -p "$root/modules"
	for name in libsha256 sha256_generic sha256; do
		file=$(find "$image/lib/modules/$abi/kernel" -name "$name.ko*" | head -n 1)
		case $file in
		*.xz) xz -dc "$file" >"$root/modules/$name.ko" ;;
		*.ko) cp "$file" "$root/modules/" ;;
		*) continue ;;
		esac
		echo "$name.ko"
	done >"$root/modules/order"
	cp "$out/src/fairwq.ko" "$out"/src/samples/{fairhash,fairscan,fairwq_hello}.ko "$root/modules/"
	echo fairwq.ko >>"$root/modules/order"
}

copy_programs() {
	# Two names for one program: a client's batch is named after its process.
	cp "$out/fairhash_client" "$root/bin/greedy"
	ln "$root/bin/greedy" "$root/bin/modest"
	cp "$out/fairhash_monitor" "$root/bin/"
	install -m 755 "$top/tools/demo-guest.sh" "$root/init"
}

# Copy this machine's Python with its library, for the operator's tools.
copy_tools() {
	local python file
	python=$(readlink -f /usr/bin/python3)
	mkdir -p "$root"/usr/{bin,sbin,lib} "$root/lib"
	cp "$python" "$root/usr/bin/python3"
	rsync -rlpt --exclude={config-\*,dist-packages,pydoc_data,distutils,lib2to3,test,ensurepip} \
		"/usr/lib/${python##*/}" "$root/usr/lib/"
	for file in $(ldd "$python" "/usr/lib/${python##*/}"/lib-dynload/{_curses,_json,_struct}*.so |
		grep -oE '/lib[^ ]* ' | sort -u); do
		cp -L --parents "$file" "$root/"
	done
	cp -rL --parents /lib/terminfo "$root/"
	cp "$top"/tools/user/fairwq-{top,trace} "$root/usr/sbin/"
}

make_initramfs() {
	make_root "$root"
	copy_programs && copy_tools && copy_modules && copy_corpus && make_image &&
		(cd "$root" && find . | cpio -o -H newc -R 0:0) >"$out/initramfs.cpio"
}

# Set the QEMU command.
machine() {
	qemu_machine 2 1G
	qemu+=(-kernel "$image/boot/vmlinuz-$abi" -initrd "$out/initramfs.cpio")
}

start_guest() {
	local command
	machine
	command=("${qemu[@]}" -serial "file:$out/console.log" -serial "file:$out/guest.log"
		-append "$kernel_line")
	rm -f "$out"/{console,guest,qemu}.log "$out/hang"
	: >"$out/guest.log"
	printf '%q ' "${command[@]}" >"$out/cmdline"
	"$top/tools/guest.py" "$out" "$out/guest.log" "$silence_limit" "$guest_limit" \
		"${command[@]}" &
	guest=$!
	trap 'kill "$guest" 2>/dev/null || :' EXIT
}

# Wait until the guest reports step $1, or has ended.
await() {
	until grep -q "^demo: $1\$" "$out/guest.log"; do
		if ! kill -0 "$guest" 2>/dev/null || grep -q '^demo: failed' "$out/guest.log"; then
			! grep -q "^demo: $1\$" "$out/guest.log" || return 0
			[ ! -e "$out/hang" ] || return 124
			tail -n 20 "$out/console.log"
			return 3
		fi
		sleep 0.1
	done
}

# Wait for a step of the guest, with progress. $1: text, $2: the step
guest_step() {
	local rc=0
	step "$1" await "$2" || rc=$?
	[ "$rc" -ne 124 ] || say_hang "$out"
	[ "$rc" -eq 0 ] || code=$rc die "the guest did not get there; see ${out#"$top/"}/console.log"
}

run_guest() {
	start_guest
	guest_step "boot the stock kernel $abi" booted
	guest_step "sha256sum of the files, in the guest" reference
	guest_step "the modest client alone" alone
	guest_step "both, first come first served" fifo
	guest_step "both, in turns" round_robin
	guest_step "both, watched by fairwq-top and fairwq-trace" watched
	guest_step "scan an image, with and without fork and join" scanned
	guest_step "unload with a backlog" finished
	wait "$guest" || code=3 die "QEMU ended with $?"
	trap - EXIT
}

# Check the console for complaints, because a guest that has finished may have some.
check_console() {
	local bad='WARNING:|BUG:|Oops|Call Trace|Kernel panic|stall|lockup|blocked for more than|refcount_t|fairwq.*violation'
	! grep -qE "$bad" "$out/console.log" || {
		grep -nE "$bad" "$out/console.log" | head -n 20 >&2
		code=3 die "the guest's kernel complained; see ${out#"$top/"}/console.log"
	}
}

# Print the output of the tools for the run that they watched.
show_tools() {
	say "fairwq-top --once, while both clients run:"
	sed -n 's/^top /  /p' "$out/guest.log"
	sed -n 's/^top-json .*"self_cpu_percent": \([0-9.]*\).*/  It took \1 % of a CPU itself./p' \
		"$out/guest.log"
	echo
	read_trace || die "the trace cannot be read; see build/demo/fairwq.trace"
}

read_trace() {
	local tool=$top/tools/user/fairwq-trace trace=$out/fairwq.trace
	sed -n 's/^trace //p' "$out/guest.log" | base64 -d | gzip -dc >"$trace" &&
		"$tool" waits "$trace" >"$out/waits.txt" &&
		"$tool" json "$trace" -o "$out/timeline.json" 2>/dev/null &&
		"$tool" svg "$trace" -o "$out/trace.svg" 2>/dev/null
}

what_next() {
	cat <<-END

		What to look at next, in build/demo:
		  shares.svg      the two runs, before and after
		  timeline.json   runners, batches and items over time: open it with Perfetto's viewer
		  waits.txt       how long items waited, by batch and by function; trace.svg plots it
		  result.txt      the figures above, for scripts; console.log and guest.log: all that was said
		"make demo SHELL=1" ends at a prompt in the guest, with both clients running.
		Then: samples/fairwq_hello.c, a driver of 59 lines; Documentation/usage.rst, how to write one;
		Documentation/migration.rst, what a port of dm-crypt gains.
	END
}

# Boot the guest once more, with this terminal as its console.
open_prompt() {
	local size
	[ -t 0 ] || die "SHELL=1 wants a terminal for its prompt"
	size=$(stty size)
	say "The guest boots once more. exit, or Ctrl-D, ends it."
	machine
	"${qemu[@]}" -chardev stdio,id=tty,signal=off -serial chardev:tty -serial null \
		-append "$kernel_line quiet demo_shell=1 demo_size=${size/ /x} TERM=${TERM:-linux}" || :
}

main() {
	image=$("$top/tools/fetch.sh" package "linux-image-$abi") || exit
	copy_sources "$out/src"
	step "build fairwq.ko, fairhash.ko and fairscan.ko for $abi" build_modules
	step "build the clients" build_clients
	step "put the guest together" make_initramfs
	run_guest
	check_console
	show_tools
	"$top/tools/demo-report.sh" "$out" || exit
	what_next
	say_times
	[ -z "${DEMO_SHELL:-}" ] || open_prompt
}

[ "$(dpkg --print-architecture)" = amd64 ] || die "the demo boots an amd64 kernel"
count_times
need_packages "${packages[@]}"
mkdir -p "$out"
root=$out/root
abi=$(stock_abi)
[ -d "/lib/modules/$abi/build" ] || die "no headers of the stock kernel: linux-headers-$abi"
locked "$out.lock" main
