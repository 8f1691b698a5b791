#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check.sh VERSION KIND: run all suites in a kernel of that version, from a bare
# machine to the verdict. Logs stay in build/check-VERSION-KIND.
#
# KIND is qemu or uml, alone or with a fragment of tests/configs: uml-debug, uml-native,
# qemu-debug, qemu-kcsan, qemu-rt.
#
# FAIRWQ_BUILD   more for the build, such as CONFIG_FAIRWQ_TORTURE=m
#
# Exit: 0 all have passed, 1 a test failed, 2 no kernel or no module to test,
# 3 crash or warning, 124 the guest hung.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=${1:?usage: check.sh VERSION KIND}
kind=${2:?usage: check.sh VERSION KIND}
dir=$top/build/check-$version-$kind

case $kind in
qemu | qemu-*) arch=x86_64 packages=("${build_packages[@]}" "${qemu_packages[@]}") ;;
uml | uml-*) arch=um packages=("${build_packages[@]}" busybox-static) ;;
*) die "a kernel is booted by qemu or as uml, not by $kind" ;;
esac

# Seconds of the guest's own time without progress, and in all: see guest.py.
case $kind in
*-debug | *-kcsan | *-rt) : "${FAIRWQ_LIMIT=400}" "${FAIRWQ_TIMEOUT=4800}" "${FAIRWQ_MEM=2G}" ;;
*) : "${FAIRWQ_LIMIT=200}" "${FAIRWQ_TIMEOUT=2400}" ;;
esac
# KCSAN runs only the suites that race on purpose, with more CPUs. All suites would take
# half an hour.
[ "$kind" != qemu-kcsan ] || : "${FAIRWQ_CPUS=4}" \
	"${FAIRWQ_SUITES=queue core_runner waitlist one_at_a_time serializer limiter work_race}"
export FAIRWQ_LIMIT FAIRWQ_TIMEOUT FAIRWQ_MEM FAIRWQ_CPUS FAIRWQ_SUITES

# Test verdict.py before it is used.
judge_the_judge() {
	python3 "$top/tests/verdict/run.py" >"$dir/verdict-tests.log" && return
	sed '$d' "$dir/verdict-tests.log"
}

suites() {
	local obj=$1 rc=0 more=${FAIRWQ_BUILD:-}
	# shellcheck disable=SC2086 # to be split
	"$top/tools/build.sh" "$obj" "$arch" "$dir" W=1e $more || return 2
	"$top/tools/boot.sh" "${kind%%-*}" "$obj" "$dir"
	grep -hE '^ *(KTAP version|1\.\.|ok |not ok |# )' "$dir/console.log" \
		>"$dir/ktap.log" || true
	"$top/tools/verdict.py" "$dir" \
		"$(readlink -f "$obj/source")/tools/testing/kunit/kunit.py" \
		>"$dir/verdict.log" || rc=$?
	sed '$d' "$dir/verdict.log" # its sum: main() adds that up
	return $rc
}

# Run the suite that is made for more than two CPUs again with four, where that is cheap.
four_cpus() {
	local more=$dir/four-cpus suite=fairwq_serializer_mix rc=0
	rm -rf "$more"
	mkdir -p "$more"
	cp -a "$dir/root" "$more/root"
	{
		printf 'insmod %s\n' kunit fairwq
		suite_steps "${suite}_kunit"
		printf '%s\n' 'rmmod fairwq' 'rmmod kunit' 'unloaded all'
	} >"$more/root/plan"
	echo $suite >"$more/suites"
	FAIRWQ_CPUS=4 "$top/tools/boot.sh" uml "$1" "$more"
	"$top/tools/verdict.py" "$more" >"$more/verdict.log" || rc=$?
	sed '$d' "$more/verdict.log"
	return $rc
}

main() {
	local rc=0 logs=("$dir"/{verdict-tests,sim,verdict}.log)
	mkdir -p "$dir"
	judge_the_judge
	"$top/tools/sim.sh" "$(readlink -f "$1/source")" >"$dir/sim.log" || true
	sed '$d' "$dir/sim.log"
	suites "$@" || rc=$?
	[ $rc -ne 2 ] || return 2
	if [[ $kind == uml || $kind == uml-native ]]; then
		four_cpus "$1" || rc=$?
		logs+=("$dir/four-cpus/verdict.log")
	fi
	say "  logs: ${dir#"$top"/}"
	say_times
	total "${logs[@]}" | tee "$dir/total"
	[ $rc -ne 0 ] || ! grep -q ', [1-9]' "$dir/total" || rc=1
	return $rc
}

count_times
say "All suites on $version ($kind)"
need_packages "${packages[@]}"
# Lockdep turns interrupts off all the time, so uml-debug must not ask the host for that.
configs=${kind/#uml-debug/uml-native-debug}
# shellcheck disable=SC2086 # to be split
obj=$("$top/tools/kernel.sh" "$version" ${configs//-/ }) || exit 2
locked "$dir.lock" main "$obj"
