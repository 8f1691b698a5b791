# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# What every script here shares: where things are kept, how a long step shows
# that it is alive, and how a missing distribution package is dealt with.
# Sourced, never run.

set -euo pipefail
export LC_ALL=C

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${FAIRWQ_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fairwq}
jobs=$(nproc)

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit "${code:-2}"; }

# step TEXT COMMAND...: run the command with its output in a log, and print a
# line at least every 5 seconds that says what is going on. On failure the
# end of the log is shown and the command's status returned.
step() {
	local text=$1 log pid t0 rc=0
	shift
	log=$(mktemp)
	t0=$SECONDS
	"$@" >"$log" 2>&1 </dev/null &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.2
		if [ $((SECONDS - t0)) -ge 5 ]; then
			step_tick "$text" $((SECONDS - t0))
		fi
	done
	wait "$pid" || rc=$?
	[ ! -t 2 ] || printf '\r\033[K' >&2
	if [ "$rc" -ne 0 ]; then
		say "  $text: FAILED (exit $rc) after $((SECONDS - t0)) s; the end of its output:"
		tail -n 25 "$log" | sed 's/^/    /' >&2
		say "    (all of it: $log)"
		return "$rc"
	fi
	say "  $text: done ($((SECONDS - t0)) s)"
	rm -f "$log"
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

# need_packages NAME...: install what is missing, saying so; without root,
# print the command that would and stop.
need_packages() {
	local missing=() p
	for p in "$@"; do
		dpkg-query -W -f='${db:Status-Status}\n' "$p" 2>/dev/null |
			grep -qx installed || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	if [ "$(id -u)" -ne 0 ]; then
		say "These packages are needed and not installed. As root, run:"
		say "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
		die "missing packages, and not root"
	fi
	say "Installing from the distribution: ${missing[*]}"
	step "package lists" apt-get update
	step "packages" env DEBIAN_FRONTEND=noninteractive apt-get install -y \
		--no-install-recommends "${missing[@]}"
}

# The C toolchain and what a kernel build wants.
build_packages=(gcc make patch bc flex bison libelf-dev libssl-dev libc6-dev kmod cpio
	rsync xz-utils perl python3)
# What boots a kernel and fills its file system.
qemu_packages=(qemu-system-x86 seabios busybox-static cpio)

# kbuild_arch ARCH: what kbuild has to be told of it, in make_arch.
kbuild_arch() {
	make_arch=("ARCH=$1")
	case $1 in
	arm64) make_arch+=(CROSS_COMPILE=aarch64-linux-gnu-) ;;
	arm) make_arch+=(CROSS_COMPILE=arm-linux-gnueabihf-) ;;
	esac
}

# check_config CONFIG FRAGMENT...: whether all of it is there. A symbol that the
# kernel does not know, or whose needs are not met, vanishes without a word; a
# sanitizer that is silently off proves nothing. What a later fragment says counts.
# Lines that end in "# if known" may be dropped by an older or newer kernel.
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

# copy_sources DIR: what kbuild needs, so that builds for several kernels do
# not meet. Only what differs is written, whatever its date, and objects are
# left alone: the next build does what is new and nothing else. With FAIRWQ_BUG=NAME
# the copy has the bug of tests/bugs/NAME.patch; the next copy is without it.
copy_sources() {
	mkdir -p "$1"
	rsync -rlp --checksum --delete --prune-empty-dirs \
		--exclude='/build/' --exclude='*.mod.c' --exclude='.*' \
		--include='*/' --include='*.[ch]' --include=Kbuild \
		--include=Kconfig --include=dkms.conf --exclude='*' "$top/" "$1/"
	[ -z "${FAIRWQ_BUG:-}" ] || plant_bug "$FAIRWQ_BUG" "$1"
}

# plant_bug NAME DIR: put the bug into the sources in DIR.
plant_bug() {
	[ -e "$top/tests/bugs/$1.patch" ] || die "there is no tests/bugs/$1.patch"
	patch -s -p1 --no-backup-if-mismatch -d "$2" <"$top/tests/bugs/$1.patch" ||
		die "tests/bugs/$1.patch does not fit the code any more"
}

# A suite is a file, tests/ROOM_kunit.c, a module, fairwq_ROOM_kunit, and in KUnit's
# words fairwq_ROOM.
suite_modules() {
	basename -s .c "$top"/tests/*_kunit.c | sed 's/^/fairwq_/'
}

# suites_in MODULE...: the names of the suites in the modules, as their files say.
suites_in() {
	local module suite
	for module in "$@"; do
		suite=${module%_kunit}
		grep -qF ".name = \"$suite\"" "$top/tests/${module#fairwq_}.c" ||
			die "no suite $suite in tests/${module#fairwq_}.c"
		echo "$suite"
	done
}

# load_each MODULE...: what the guest does with each of the modules in turn.
load_each() {
	local module
	for module in "$@"; do printf '%s\n' "insmod $module" "rmmod $module"; done
}

# suite_steps MODULE...: the same for suites, which stand on what they share.
suite_steps() {
	echo 'insmod fairwq_testlib'
	load_each "$@"
	echo 'rmmod fairwq_testlib'
}

# locked FILE COMMAND...: one at a time, so that two runs share one cache.
locked() {
	local file=$1
	shift
	mkdir -p "$(dirname "$file")"
	(
		flock 9
		"$@"
	) 9>"$file"
}

# total FILE...: the sum of the "N passed, N failed" lines that the files end
# with; a file without one counts as a failure.
total() {
	local f
	for f in "$@"; do
		tail -n 1 "$f" | grep -xE '[0-9]+ passed, [0-9]+ failed' ||
			echo '0 passed, 1 failed'
	done | awk '{p += $1; f += $3} END {print p + 0 " passed, " f + 0 " failed"}'
}
