#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-style.sh: check the sources without running them: warnings on every kernel at
# hand, checkpatch, kernel-doc, sparse, spelling, shell scripts, exports, versions. Logs
# stay in build/style.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/style
passed=0 failed=0

# check NAME COMMAND...: run the command and print one line, and its output if it failed.
check() {
	local name=$1
	shift
	local log=$dir/${name//[^A-Za-z0-9.-]/_}.log
	if step "$name" logged "$log" "$@"; then
		echo "ok   $name"
		passed=$((passed + 1))
	else
		echo "FAIL $name"
		tail -n 60 "$log" | sed 's/^/    /'
		failed=$((failed + 1))
	fi
}

logged() {
	local log=$1
	shift
	"$@" >"$log" 2>&1
}

# List our files whose names match: those that git would commit, so that generated files
# are left out.
ours() {
	(cd "$top" && git ls-files --cached --others --exclude-standard -- "$@") |
		while read -r f; do [ ! -e "$top/$f" ] || echo "$f"; done
}

# Run make for kernel build folder $1 and arch $2, with the rest of the arguments.
kbuild() {
	local obj=$1 arch=$2
	shift 2
	make -C "$obj" ARCH="$arch" M="$dir/src" -j"$jobs" \
		CONFIG_FAIRWQ_SAMPLES=m CONFIG_FAIRWQ_BENCH=m CONFIG_FAIRWQ_TORTURE=m \
		"$@" modules
}

# Build all files anew, with all warnings.
warnings() {
	rm -rf "$dir/src"
	copy_sources "$dir/src"
	kbuild "$@" W=1e
}

# The same with the tests and the code for tests, after that.
warnings_of_tests() {
	kbuild "$@" W=1e CONFIG_FAIRWQ_KUNIT_TEST=m
}

# Run sparse, too, on 6.1. sparse in Debian 12 is too old for 7.x, where kbuild leaves it
# out without a word. Therefore check that it has run.
warnings_and_sparse() {
	warnings "$1" x86_64 C=2 >"$dir/sparse.out" 2>&1 || { cat "$dir/sparse.out"; return 1; }
	cat "$dir/sparse.out"
	[ "$(grep -c '^ *CHECK .*\.c$' "$dir/sparse.out")" -ge \
		"$(grep '^ *CC \[M\] ' "$dir/sparse.out" | grep -vc '\.mod\.o$')" ] ||
		{ echo "sparse did not look at every file"; return 1; }
	# Ignore a warning about rb_link_node_rcu(), which is in the kernel's own header.
	! grep -E '(warning|error):' "$dir/sparse.out" |
		grep -v '/include/linux/rbtree.h:[0-9:]* error: incompatible types'
}

# Spelling is left to codespell below; kzalloc_obj() is not in 6.1.
checkpatch() {
	local script=$1/scripts/checkpatch.pl ignore=$2
	shift 2
	printf '%s\0' "$@" | GIT_DIR=none xargs -0 -n 3 -P "$jobs" perl "$script" --no-tree --strict --terse \
		--show-types --ignore "ALLOC_WITH_SIZEOF${ignore:+,$ignore}" -f
}

# Run checkpatch, without a few rules that do not fit some files. TRACE_EVENT has a
# layout of its own, a test point that is empty leaves its argument out, a user-space
# program has no kernel types, and DEFINE_x(name) must use its argument twice.
run_checkpatch() {
	local src=$1 files rc=0
	# Run it in a copy, because it leaves a cache in its folder.
	copy_sources "$dir/copy" && cd "$dir/copy" || return
	mapfile -t files < <(ours '*.[ch]' ':!tests/user' ':!tests/sim' ':!ports' ':!core/trace.h' \
		':!core/testing.h' ':!fairwq.h')
	checkpatch "$src" "" "${files[@]}" || rc=1
	checkpatch "$src" OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT core/trace.h || rc=1
	checkpatch "$src" MACRO_ARG_UNUSED core/testing.h || rc=1
	checkpatch "$src" MACRO_ARG_REUSE fairwq.h || rc=1
	mapfile -t files < <(ours 'tests/user/*.[ch]' 'tests/sim/*.[ch]' 'ports/*.[ch]')
	[ ${#files[@]} -eq 0 ] ||
		checkpatch "$src" PREFER_KERNEL_TYPES,BIT_MACRO,VOLATILE,MACRO_ARG_REUSE "${files[@]}" || rc=1
	return $rc
}

# Print the functions that clients may call: exported, neither behind a macro nor for tests.
exported_to_clients() {
	ours '*.c' ':!*/*' | xargs sed -n 's/^EXPORT_SYMBOL_GPL(\(fairwq_[a-z_]*\));$/\1/p' |
		grep -vE '^fairwq_(test_|mutant_)' | sort
}

# Print the functions that kernel-doc describes. $1: the kernel's script, the rest: files.
described() {
	local script=$1
	shift
	python3 "$script" -rst "$@" 2>/dev/null |
		sed -n 's/^\.\. c:function:: .*\b\(fairwq_[a-z_]*\) (.*/\1/p' | sort
}

# Check all kernel-doc comments. Each function that clients may call must have one in
# fairwq.h, because the installed package has no other file.
run_kernel_doc() {
	local script=$1/tools/docs/kernel-doc clients in_header in_source
	cd "$top" || return
	ours '*.[ch]' | xargs python3 "$script" -none -Wall -Werror || return
	clients=$(exported_to_clients)
	[ -n "$clients" ] || { echo "no function is exported"; return 1; }
	in_header=$(comm -23 <(echo "$clients") <(described "$script" fairwq.h))
	in_source=$(comm -12 <(echo "$clients") <(ours '*.c' ':!*/*' |
		xargs grep -lF '/**' | while read -r f; do described "$script" "$f"; done | sort))
	[ -z "$in_header" ] || printf 'without kernel-doc in fairwq.h: %s\n' $in_header
	[ -z "$in_source" ] || printf 'described in a .c file, not in fairwq.h: %s\n' $in_source
	[ -z "$in_header$in_source" ]
}

run_codespell() {
	cd "$top" && ours ':!COPYING' ':!tests/bugs' | xargs codespell --ignore-words-list=filp
}

# Check that each page of the documentation can be read in one go: below 500 lines.
run_length() {
	local found
	cd "$top" || return
	found=$(ours 'Documentation/*.rst' | xargs wc -l | awk '$1 >= 500 && $2 != "total"')
	[ -z "$found" ] || { echo "$found"; return 1; }
}

# Check the documentation by docutils: tables, headings, references.
run_markup() {
	local f rc=0
	cd "$top" || return
	while read -r f; do
		/usr/bin/python3 -m docutils --report=2 --halt=5 --exit-status=2 "$f" /dev/null || rc=1
	done < <(ours 'Documentation/*.rst')
	return $rc
}

run_shellcheck() {
	cd "$top" && ours '*.sh' .ci/run | xargs shellcheck -S warning
}

# Check the exports of the last build: each has our prefix, or that of the test library,
# and is for GPL modules only.
exports() {
	local bad
	[ -s "$dir/src/Module.symvers" ] || return
	bad=$(awk '$2 !~ ($3 ~ /\/fairwq_testlib$/ ? "^mock_" : "^(__)?fairwq_") ||
		$4 != "EXPORT_SYMBOL_GPL"' "$dir/src/Module.symvers")
	[ -z "$bad" ] || { echo "$bad"; return 1; }
}

header_version() {
	sed -n 's/^#define FAIRWQ_VERSION_\(MAJOR\|MINOR\|PATCH\)[ \t]*//p' "$top/fairwq.h" |
		paste -sd.
}

version() {
	local v
	v=$(header_version)
	grep -qx "PACKAGE_VERSION=\"$v\"" "$top/dkms.conf" || { echo "dkms.conf is not of $v"; return 1; }
	[ ! -e "$top/NEWS.md" ] || grep -m 1 '[0-9]\.[0-9]' "$top/NEWS.md" | grep -qF "$v" ||
		{ echo "the first version in NEWS.md is not $v"; return 1; }
}

# Text of a comment of several lines has 80 columns at most. Tables, which have two spaces in
# a row, and other lines may have as many as code.
comment_width() {
	local wide
	wide=$(ours '*.c' '*.h' | while read -r f; do
		expand "$top/$f" | awk -v f="$f" \
			'length > 80 && /^ *\* [^ ]/ && !/[^ ]  / { print f ":" NR ":" $0 }'
	done)
	[ -z "$wide" ] || { echo "$wide"; return 1; }
}

# Check that each patch of tests/bugs applies.
planted_bugs() {
	local bug rc=0
	for bug in "$top"/tests/bugs/*.patch; do
		patch --dry-run -s -f -p1 -d "$top" <"$bug" >/dev/null ||
			{ echo "${bug##*/} does not apply"; rc=1; }
	done
	return $rc
}

# Reject paths and addresses of a developer's machine.
no_machine_paths() {
	cd "$top" || return
	! ours ':!tools/check-style.sh' | xargs grep -nIE "(^|[^a-z])(/root/|/home/|$PWD)|https?://(deb|ftp|security)\." --
}

# Check warnings on three kernels. The oldest is the stock one, without KUnit; make check
# builds the tests on 6.1, and make matrix on 6.12, which has headers and no symbols here.
all_warnings() {
	local old new
	old=$("$top/tools/kernel.sh" 6.12 headers)
	new=$("$top/tools/kernel.sh" 7.3 uml native)
	check "warnings and sparse on stock 6.1" warnings_and_sparse "$stock"
	check "warnings on 6.12" warnings "$old" x86_64 KBUILD_MODPOST_WARN=1
	check "warnings on 7.3 (uml)" warnings "$new" um
	check "warnings on 7.3 (uml), tests" warnings_of_tests "$new" um
}

main() {
	rm -rf "$dir"
	mkdir -p "$dir"
	all_warnings
	check "exports" exports
	check "calls only go down" "$top/tools/layers.sh" "$dir/src"
	check "checkpatch --strict" run_checkpatch "$source"
	check "kernel-doc" run_kernel_doc "$source"
	check "codespell" run_codespell
	check "width of comments" comment_width
	check "length of the pages" run_length
	check "markup of the documentation" run_markup
	check "shellcheck" run_shellcheck
	check "version" version
	check "planted bugs apply" planted_bugs
	check "no path of this machine" no_machine_paths
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
}

need_packages "${build_packages[@]}" git sparse codespell python3-docutils shellcheck linux-headers-amd64
stock=$(find /lib/modules -mindepth 2 -maxdepth 2 -name build -path '*/6.1.*' | sort -V | tail -n 1)
source=$("$top/tools/fetch.sh" source 7.3)
locked "$dir.lock" main
