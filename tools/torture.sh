#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# torture.sh KIND SECONDS: run fairwq under torture (tests/torture). It passes if the
# torture's own verdict is SUCCESS, the console has no complaint, and all modules can be
# unloaded. Logs stay in build/torture-KIND.
#
# KIND is
#   uml         7.3, native
#   uml-native  the same, with interrupts that cost the same as on hardware
#   uml-debug   as uml-native, with KASAN, lockdep, debug objects, kmemleak, UBSAN
#   qemu        KERNEL, with 4 CPUs that go and come back
#   qemu-debug, qemu-kcsan (data races), qemu-rt (PREEMPT_RT)   7.3 in QEMU
#
# KERNEL         for qemu: 6.1, 6.12 or 7.3 (6.1)
# TORTURE_ARGS   more parameters of the module, such as "seed=7 bug=lost"
# TORTURE_LOADS  how often to load and unload all modules (20; uml-debug: 3; in
#                QEMU with more: 0)
# FAIRWQ_BUG     a bug of tests/bugs to plant
#
# Exit: as check.sh.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kind=${1:?usage: torture.sh KIND SECONDS}
seconds=${2:?usage: torture.sh KIND SECONDS}
dir=$top/build/torture-$kind
loads=20 light=

# Failing allocations, and higher weights for the operations that allocate.
starved="fail=1 weights=pool=20,flows_beside=20,renew=200"

case $kind in
uml) boot=uml arch=um kernel=(7.3 uml) cpus=2 slack=120 ;;
uml-native) boot=uml arch=um kernel=(7.3 uml native) cpus=2 slack=120 ;;
uml-debug) boot=uml arch=um kernel=(7.3 uml native debug) cpus=2 slack=400 loads=3 light="threads=4 backlog=500 $starved" ;;
qemu) boot=qemu arch=x86_64 kernel=("${KERNEL:-6.1}" qemu) cpus=4 slack=180 light="threads=4 backlog=500 hotplug=100" ;;
qemu-debug | qemu-kcsan | qemu-rt)
	boot=qemu arch=x86_64 kernel=(7.3 "${kind%%-*}" "${kind#*-}") cpus=4 slack=400 loads=0
	light="threads=4 backlog=500 hotplug=100"
	[ "$kind" != qemu-debug ] || light="$light $starved"
	[ "$kind" != qemu-kcsan ] || light="threads=4 backlog=100 hotplug=500"
	;;
*) die "torture is run as uml or qemu, alone or with -debug, -kcsan or -rt, not $kind" ;;
esac
[[ $seconds =~ ^[1-9][0-9]*$ ]] || die "SECONDS is a number, not $seconds"
loads=${TORTURE_LOADS:-$loads}
[[ $loads =~ ^[0-9]+$ ]] || die "TORTURE_LOADS is a number, not $loads"

# Build the modules that users load, without tests and without code for tests.
build_modules() {
	make -C "$1" ARCH="$arch" M="$dir/src" -j"$jobs" CONFIG_FAIRWQ_TORTURE=m \
		CONFIG_FAIRWQ_SAMPLES=m KCFLAGS=-Werror modules
}

fill_root() {
	local name
	make_root "$dir/root" modules user
	install -m 755 "$top/tests/init.sh" "$dir/root/init"
	for name in torture loads; do
		install -m 755 "$top/tools/torture-guest.sh" "$dir/root/user/$name"
	done
	cp "$dir/src"/{fairwq,tests/torture/fairwq_torture}.ko "$dir/src"/samples/*.ko \
		"$dir/root/modules/"
	gcc -static -O1 -g -pthread -I"$top" -o "$dir/root/user/fuzz" "$top/tests/user/fuzz.c"
	echo "seconds=$seconds $light ${TORTURE_ARGS:-}" >"$dir/root/torture.args"
	echo "$loads" >"$dir/root/loads.args"
}

# Write the steps for init.sh, and the names that verdict.py must find.
plan() {
	local steps=(torture)
	[ "$loads" -eq 0 ] || steps+=(loads)
	printf '%s\n' "${steps[@]}" >"$dir/suites"
	{
		echo "insmod fairwq"
		printf 'user %s\n' "${steps[@]}"
		printf '%s\n' "rmmod fairwq" "unloaded all"
	} >"$dir/root/plan"
}

main() {
	local rc=0
	# Remove a copy that was built against another kernel.
	[ "$(cat "$dir/obj" 2>/dev/null)" = "$1" ] || rm -rf "$dir/src"
	mkdir -p "$dir"
	echo "$1" >"$dir/obj"
	copy_sources "$dir/src"
	step "build fairwq and its torture" build_modules "$1" || return 2
	step "put the guest together" fill_root || return 2
	plan
	FAIRWQ_CPUS=$cpus FAIRWQ_MEM=2G FAIRWQ_TIMEOUT=$((cpus * (seconds + 2 * slack) + loads * 6)) \
		"$top/tools/boot.sh" "$boot" "$1" "$dir"
	# Print the sums of the torture, not of the loads that follow. verdict.py fails the
	# run for a '!!!' of these, too.
	grep -a 'fairwq-torture: ' "$dir/console.log" | sed '/End of test: [SF]/q' | tail -n 20 || true
	grep -a '^# ' "$dir/result.log" || true
	"$top/tools/verdict.py" "$dir" || rc=$?
	say "  logs: ${dir#"$top"/}"
	return $rc
}

say "Torture for $seconds s (${kernel[*]})"
need_packages "${build_packages[@]}" "${qemu_packages[@]}"
obj=$("$top/tools/kernel.sh" "${kernel[@]}") || exit 2
locked "$dir.lock" main "$obj"
