#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# matrix.sh [CELL...]: check fairwq on every kernel that it supports. Prints one line for
# each, and the sum at the end. Logs stay in build/matrix.
#
# A cell is VERSION-KIND. For the kinds of check.sh everything is built with W=1e, and
# every suite runs. "stock" is the distribution's own kernel: the demo loads, works and
# unloads. "builtin" has fairwq in the kernel itself, together with clients. "arm64" and
# "arm" are only built.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/matrix
all=(6.1-qemu 6.12-qemu 7.3-qemu 7.3-qemu-rt 7.3-uml 7.3-builtin 6.1-stock 7.3-arm64 7.3-arm)
passed=0 failed=0

# Run all suites by check.sh. $1: version, $2: kind
suites() {
	local rc=0 log from=$top/build/check-$1-$2
	rm -f "$from"/{console,result,verdict}.log
	FAIRWQ_BUILD="CONFIG_FAIRWQ_BENCH=m CONFIG_FAIRWQ_TORTURE=m" \
		"$top/tools/check.sh" "$1" "$2" || rc=$?
	for log in console result verdict; do
		[ ! -e "$from/$log.log" ] || cp "$from/$log.log" "$dir/$1-$2/"
	done
	return $rc
}

stock() {
	"$top/tools/demo.sh" || return
	cp "$top"/build/demo/{console,guest}.log "$top/build/demo/result.txt" "$dir/6.1-stock/"
}

# Run fairwq and its clients in the kernel itself. $1: version
builtin_clients() {
	local rc=0
	"$top/tools/builtin.sh" "$1" || rc=$?
	cp "$top/build/builtin-$1"/{console,verdict}.log "$dir/$1-builtin/" || true
	return $rc
}

# Build without and with the tests, as check-style.sh does. modpost has no symbols of a
# kernel here; symbols() checks them.
cross_build() {
	local obj=$1 src=$2 tests
	for tests in "" m; do
		rm -rf "$src"
		copy_sources "$src"
		make -C "$obj" "${make_arch[@]}" M="$src" -j"$jobs" W=1e KBUILD_MODPOST_WARN=1 \
			CONFIG_FAIRWQ_SAMPLES=m CONFIG_FAIRWQ_BENCH=m CONFIG_FAIRWQ_TORTURE=m \
			CONFIG_FAIRWQ_KUNIT_TEST=$tests modules || return
	done
}

# Check that a kernel exports each symbol that the modules use. Either the source does, in
# a common folder or that of the architecture, or the x86 kernel of the same version. A
# macro makes bpf_trace_run3() and its like. This finds a 64-bit division on 32 bits.
symbols() {
	local version=$1 arch=$2 src=$3 source x86 unknown
	source=$("$top/tools/fetch.sh" source "$version")
	x86=$("$top/tools/kernel.sh" "$version" qemu)
	unknown=$(find "$src" -name '*.ko' -exec "${cross}nm" -u {} + |
		sed -n 's/^ *U //p' | grep -vxE 'bpf_trace_run[0-9]+' | sort -u |
		grep -vxFf <(cut -f2 "$x86/Module.symvers" "$src/Module.symvers") |
		grep -vxFf <(grep -rhoE '\<EXPORT_SYMBOL[A-Z_]*\([A-Za-z0-9_]+' \
			"$source"/{lib,kernel,mm,crypto,"arch/$arch"} | sed 's/.*(//')) || true
	[ -z "$unknown" ] || { echo "wanted, and exported by no kernel:" "$unknown"; return 1; }
}

# Build for an architecture, and check the symbols. $1: version, $2: architecture
cross() {
	local obj src=$dir/$1-$2/src cross
	kbuild_arch "$2"
	cross=${make_arch[1]#CROSS_COMPILE=}
	obj=$("$top/tools/kernel.sh" "$1" "$2") || return
	cross_build "$obj" "$src" && symbols "$1" "$2" "$src"
}

cell() {
	local version=${1%%-*} kind=${1#*-}
	case $kind in
	stock) stock ;;
	builtin) builtin_clients "$version" ;;
	arm | arm64) cross "$version" "$kind" ;;
	*) suites "$version" "$kind" ;;
	esac
}

logged() {
	local log=$1
	shift
	"$@" >"$log" 2>&1
}

try() {
	local log=$dir/$1/log t0=$SECONDS sum
	rm -rf "${dir:?}/$1"
	mkdir -p "$dir/$1"
	if step "$1" logged "$log" cell "$1"; then
		sum=$(tail -n 1 "$log" | grep -xE '[0-9]+ passed, [0-9]+ failed' || true)
		echo "ok   $1${sum:+: $sum} ($((SECONDS - t0)) s)"
		passed=$((passed + 1))
	else
		echo "FAIL $1 ($((SECONDS - t0)) s): ${log#"$top/"}"
		grep -E 'FAILED|error|not ok|wanted' "$log" | tail -n 15 | sed 's/^/    /'
		failed=$((failed + 1))
	fi
}

main() {
	local name
	for name in "$@"; do
		try "$name"
	done
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
}

[ $# -gt 0 ] || set -- "${all[@]}"
need_packages "${build_packages[@]}" "${qemu_packages[@]}" linux-headers-amd64 gnuplot-nox \
	gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf
locked "$dir.lock" main "$@"
