# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# lib.sh: helpers for every script of tools: folders, progress of long steps, packages of
# the distribution, copies of the sources. Scripts source it.

set -euo pipefail
export LC_ALL=C

# What these would change of cd and of kbuild.
unset CDPATH ARCH CROSS_COMPILE KBUILD_OUTPUT

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${FAIRWQ_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fairwq}
jobs=$(nproc)

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit "${code:-2}"; }

# kbuild takes no other path.
case $top$cache in
*[[:space:]:]*) die "neither ${top@Q} nor the cache, ${cache@Q}, may have a space or a colon in it" ;;
esac

# step TEXT COMMAND...: run the command with its output in a log, and print TEXT at least
# every 5 seconds. On failure print the end of the log. Return: the command's status.
step() {
	local text=$1 log pid t0 rc=0
	shift
	log=$(mktemp)
	t0=$SECONDS
	in_step "$@" >"$log" 2>&1 </dev/null &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.2
		if [ $((SECONDS - t0)) -ge 5 ]; then
			step_tick "$text" $((SECONDS - t0))
		fi
	done
	wait "$pid" || rc=$?
	took $((SECONDS - t0)) "$text"
	[ ! -t 2 ] || printf '\r\033[K' >&2
	if [ "$rc" -eq 0 ]; then
		say "  $text: done ($((SECONDS - t0)) s)"
	elif [ -s "$log" ]; then
		say "  $text: FAILED (exit $rc) after $((SECONDS - t0)) s; the end of its output:"
		tail -n 25 "$log" | sed 's/^/    /' >&2
		say "    (all of it: $log)"
		return "$rc"
	else
		say "  $text: FAILED (exit $rc) after $((SECONDS - t0)) s"
	fi
	rm -f "$log"
	return "$rc"
}

# Let Ctrl-C end the command of a step, which bash would protect from it. Its own steps do
# not count for say_times.
in_step() {
	trap - INT QUIT
	unset FAIRWQ_TIMES
	"$@"
}

step_last=0
step_tick() {
	if [ -t 2 ]; then
		printf '\r\033[K  %s ... %d s' "$1" "$2" >&2
	elif [ $((SECONDS - step_last)) -ge 5 ]; then
		say "  $1 ... $2 s"
		step_last=$SECONDS
	fi
}

# count_times: keep how long each step takes, also those of the scripts that this one calls.
count_times() {
	FAIRWQ_TIMES=$(mktemp)
	export FAIRWQ_TIMES
}

# took SECONDS TEXT: count a step that took so long. A guess in TEXT is left out.
took() {
	[ -z "${FAIRWQ_TIMES:-}" ] || echo "$1 ${2%, [0-9]* to *}" >>"$FAIRWQ_TIMES"
}

# say_times: print how long this script has taken, and which steps took most of it.
say_times() {
	say "$(sort -rn "$FAIRWQ_TIMES" | awk -v all="$SECONDS" '
		function span(s) { return (s < 60 ? "" : int(s / 60) " min ") s % 60 " s" }
		$1 >= 5 && NR <= 6 { sum += $1; time = span($1)
			sub(/^[0-9]+ /, ""); steps = steps $0 " " time ", " }
		END { print "took " span(all) ": " steps "the rest " span(all - sum) }')"
	rm -f "$FAIRWQ_TIMES"
	unset FAIRWQ_TIMES
}

# need_packages NAME...: install the packages that are missing, with a message. Without
# root, print the command for it and stop.
need_packages() {
	local missing=() p
	for p in "$@"; do
		dpkg-query -W -f='${db:Status-Status}\n' "$p" 2>/dev/null |
			grep -qx installed || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	[ -n "$(command -v apt-get)" ] || die "this is made for Debian 12, whose apt-get is not here"
	if [ "$(id -u)" -ne 0 ]; then
		say "These packages are needed and not installed. As root, run:"
		say "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
		die "missing packages, and not root"
	fi
	say "Installing from the distribution: ${missing[*]}"
	locked "$cache/packages.lock" install_packages "${missing[@]}"
}

# Others that install must not change the lists between these two steps.
install_packages() {
	step "package lists" apt_waits update
	step "packages" apt_waits install -y --no-install-recommends "$@"
}

# apt_waits ARGUMENT...: run apt-get. Wait while another program has its locks, as a new
# machine's upgrade has for some minutes. apt's own waiting leaves out the lock of the lists.
apt_waits() {
	local log rc tries=0
	log=$(mktemp)
	until
		rc=0
		DEBIAN_FRONTEND=noninteractive apt-get "$@" >"$log" 2>&1 || rc=$?
		cat "$log"
		! grep -q 'Could not get lock' "$log" || [ $((tries += 1)) -gt 450 ]
	do
		sleep 2
	done
	rm -f "$log"
	return $rc
}

# need_space MIB: check that the cache has so much room.
need_space() {
	local free
	mkdir -p "$cache"
	free=$(df -m --output=avail "$cache" | tail -n 1)
	[ "$free" -ge "$1" ] ||
		die "$1 MiB are needed in $cache, and $((free)) are free; FAIRWQ_CACHE names another folder"
}

# The C toolchain and other packages for a kernel build.
build_packages=(gcc make patch bc flex bison libelf-dev libssl-dev libc6-dev kmod cpio
	rsync xz-utils perl python3)
# The packages that boot a kernel and make its file system.
qemu_packages=(qemu-system-x86 seabios busybox-static cpio)

# kbuild_arch ARCH: set make_arch to the variables of kbuild for ARCH.
kbuild_arch() {
	make_arch=("ARCH=$1")
	case $1 in
	arm64) make_arch+=(CROSS_COMPILE=aarch64-linux-gnu-) ;;
	arm) make_arch+=(CROSS_COMPILE=arm-linux-gnueabihf-) ;;
	esac
}

# check_config CONFIG FRAGMENT...: check that CONFIG has all lines of the fragments. kconfig
# drops a symbol without a word if it does not know it, or if its needs are not met. Then a
# run could go without its sanitizer. The last fragment with a symbol counts. Another kernel
# may drop lines that end in "# if known".
check_config() {
	local config=$1 line bad=0
	shift
	while read -r line; do
		grep -qxF -- "$line" "$config" && continue
		case $line in
		*=n) grep -q "^${line%=n}=" "$config" || continue ;;
		esac
		echo "not in the final configuration: $line"
		bad=1
	done < <(sed -n '/# if known$/d; s/^\(CONFIG_[A-Za-z0-9_]*=[^ ]*\).*/\1/p' "$@" |
		tac | awk -F= '!seen[$1]++')
	return $bad
}

# copy_sources DIR: copy the files that kbuild needs, so that builds for several kernels
# do not mix. Files that are the same stay, whatever their date, and so do objects. So the
# next build compiles only what is new. With FAIRWQ_BUG=NAME the copy has the bug of
# tests/bugs/NAME.patch; the next copy is without it.
copy_sources() {
	mkdir -p "$1"
	rsync -rlp --checksum --delete --prune-empty-dirs \
		--exclude='/build/' --exclude='*.mod.c' --exclude='.*' \
		--include='*/' --include='*.[ch]' --include=Kbuild \
		--include=Kconfig --include=dkms.conf --exclude='*' "$top/" "$1/"
	[ -z "${FAIRWQ_BUG:-}" ] || plant_bug "$FAIRWQ_BUG" "$1"
}

# make_root DIR FOLDER...: make an empty root for a guest. It has the folders that each guest
# needs and those that are named, and busybox under all of its names.
make_root() {
	local root=$1 name
	shift
	rm -rf "${root:?}"
	mkdir -p "$root"/{bin,dev,proc,sys,tmp}
	for name; do mkdir -p "$root/$name"; done
	cp /bin/busybox "$root/bin/"
	for name in $(/bin/busybox --list | grep -vx busybox); do
		ln -s busybox "$root/bin/$name"
	done
}

# qemu_machine CPUS MEMORY: set qemu to the command of a machine in QEMU, and kernel_line to
# what its kernel must be told.
#
# One thread serves all emulated CPUs in turns (thread=single). With a thread for each, a CPU
# may go on with a stale translation of code that another one patches, such as a static
# key or a tracepoint, for ever. No KVM: a machine's /dev/kvm may open and yet hang the guest.
qemu_machine() {
	qemu=(qemu-system-x86_64 -accel "tcg,thread=single" -cpu max -smp "$1" -m "$2"
		-nodefaults -display none -no-reboot)
	# guest.py sends an NMI to a guest that hangs, which prints all stacks.
	kernel_line="console=ttyS0 panic=-1 oops=panic rdinit=/init"
	kernel_line+=" unknown_nmi_panic apic_extnmi=all panic_print=0x41"
}

# say_hang DIR: print what guest.py found of the guest that hung, and what to do.
say_hang() {
	cat "$1/hang" >&2
	say "  What to do: run it again. If it hangs again, that is a fault of fairwq or of this check."
	say "  Then report it with ${1#"$top"/}/console.log, which has the stacks of all tasks."
}

# plant_bug NAME DIR: apply the bug to the sources in DIR.
plant_bug() {
	[ -e "$top/tests/bugs/$1.patch" ] || die "there is no tests/bugs/$1.patch"
	patch -s -p1 --no-backup-if-mismatch -d "$2" <"$top/tests/bugs/$1.patch" ||
		die "tests/bugs/$1.patch does not fit the code any more"
}

# Print the modules of all suites. For a file tests/ROOM_kunit.c the module is
# fairwq_ROOM_kunit, and the suite is fairwq_ROOM.
suite_modules() {
	basename -s .c "$top"/tests/*_kunit.c | sed 's/^/fairwq_/'
}

# suites_in MODULE...: print the suites of the modules. Their files must have these names.
suites_in() {
	local module suite
	for module in "$@"; do
		suite=${module%_kunit}
		grep -qF ".name = \"$suite\"" "$top/tests/${module#fairwq_}.c" ||
			die "no suite $suite in tests/${module#fairwq_}.c"
		echo "$suite"
	done
}

# load_each MODULE...: print steps that load and unload the modules, one at a time.
load_each() {
	local module
	for module in "$@"; do printf '%s\n' "insmod $module" "rmmod $module"; done
}

# suite_steps MODULE...: print the same for suites, with the library that they share.
suite_steps() {
	echo 'insmod fairwq_testlib'
	load_each "$@"
	echo 'rmmod fairwq_testlib'
}

# cpu_limit SECONDS COMMAND...: run the command, and end it after so many seconds of CPU time.
# On a busy machine it may take longer.
cpu_limit() {
	(
		ulimit -t "$1"
		shift
		"$@"
	)
}

# locked FILE COMMAND...: run the command under a lock, so that two runs share one cache.
locked() {
	local file=$1
	shift
	mkdir -p "$(dirname "$file")"
	(
		flock -n 9 || wait_for_lock "$file"
		"$@"
	) 9>"$file"
}

# wait_for_lock FILE: wait until the run that holds the lock, of descriptor 9, has ended.
wait_for_lock() {
	local t0=$SECONDS
	say "Another run is at ${1%.lock}: waiting until it has ended"
	flock 9
	took $((SECONDS - t0)) "waiting for another run"
}

# total FILE...: print the sum of the "N passed, N failed" lines at the ends of the files.
# A file without one counts as a failure.
total() {
	local f
	for f in "$@"; do
		tail -n 1 "$f" | grep -xE '[0-9]+ passed, [0-9]+ failed' ||
			echo '0 passed, 1 failed'
	done | awk '{p += $1; f += $3} END {print p + 0 " passed, " f + 0 " failed"}'
}
