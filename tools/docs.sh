#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# docs.sh mandocs               man pages from fairwq.h, into build/man
# docs.sh htmldocs              the guides and the same reference as HTML, into build/html
# docs.sh install-docs MAN HTML     both, into these folders
# docs.sh uninstall-docs MAN HTML   remove them
# docs.sh check-docs            both, without a warning or a dead link
#
# The kernel's own kernel-doc makes the pages: that of the newest kernel source that the
# checks use. KERNELDOC= names another one. Links to other sites are not fetched.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

header=$top/fairwq.h
dir=$top/build/docs
man=$top/build/man
html=$top/build/html
sorted() { /usr/bin/python3 "$top/tools/docs.py" "$@"; }

# ---- making them ----------------------------------------------------------------

# Find the kernel-doc script, once.
find_kernel_doc() {
	[ -n "${KERNELDOC:-}" ] || KERNELDOC=$("$top/tools/fetch.sh" source 7.3)/tools/docs/kernel-doc
	[ -x "$KERNELDOC" ] || die "there is no kernel-doc at $KERNELDOC: give KERNELDOC="
}

# Print the date of the header's last change, so that equal sources give equal pages.
date_of_header() {
	local seconds=${SOURCE_DATE_EPOCH:-}
	[ -n "$seconds" ] || seconds=$(git -C "$top" log -1 --format=%ct -- fairwq.h 2>/dev/null) || true
	[ -n "$seconds" ] || seconds=$(stat -c %Y "$header")
	date -u -d "@$seconds" +%Y-%m-%d
}

# Run kernel-doc. Each warning is an error. $1: man or rst, $2: the folder
describe() {
	rm -rf "$2"
	mkdir -p "$2" "$dir"
	(cd "$top" && KBUILD_BUILD_TIMESTAMP=$(date_of_header) \
		"$KERNELDOC" "-$1" -Wall -Werror fairwq.h) >"$dir/kernel-doc.$1" || return
	sorted "$1" "$header" "$2" <"$dir/kernel-doc.$1"
}

# Run Sphinx on a copy of the guides, with the reference beside them.
run_sphinx() {
	local version
	version=$(sed -n 's/^#define FAIRWQ_VERSION_\(MAJOR\|MINOR\|PATCH\)[ \t]*//p' "$header" | paste -sd.)
	rm -rf "$dir/source" "$html"
	mkdir -p "$dir/source"
	cp -r "$top/Documentation/." "$dir/source" || return
	describe rst "$dir/source/reference" || return
	/usr/bin/python3 -m sphinx -q -W --keep-going -j "$jobs" -b html -d "$dir/doctrees" \
		-D version="$version" -D release="$version" "$dir/source" "$html"
}

make_man() {
	find_kernel_doc
	step "man pages" describe man "$man" || return
	echo "$(find "$man" -name '*.9' | wc -l) man pages in build/man; for example: man -l build/man/fairwq_queue.9"
}

make_html() {
	find_kernel_doc
	step "HTML" run_sphinx || return
	echo "$(find "$html" -name '*.html' | wc -l) pages; begin at build/html/index.html"
}

# ---- installing them --------------------------------------------------------------

# Install the man pages. They are compressed, as in distributions, without a time stamp.
put_man() {
	local page
	mkdir -p "$1" || return
	for page in "$man"/*.9; do
		gzip -9nc "$page" >"$page.gz" && install -m 644 "$page.gz" "$1" || return
	done
}

put_html() {
	(cd "$html" && find . -type f ! -name '.buildinfo' ! -name objects.inv -print0 |
		xargs -0 -I{} install -D -m 644 {} "$1/{}")
}

install_docs() {
	make_man && make_html && put_man "$1" && put_html "$2" &&
		echo "installed into $1 and $2"
}

# Remove only files with our names.
uninstall_docs() {
	rm -f "$1"/fairwq.9.gz "$1"/fairwq_*.9.gz "$1"/FAIRWQ_*.9.gz "$1"/DEFINE_FAIRWQ_*.9.gz
	[ ! -e "$2/reference/work.html" ] || rm -r "$2"
}

# ---- checking them ----------------------------------------------------------------

passed=0 failed=0

# check NAME COMMAND...: run the command and print one line, and its output if it failed.
check() {
	local name=$1 log=$dir/check.log
	shift
	if "$@" >"$log" 2>&1; then
		echo "ok   $name"
		passed=$((passed + 1))
	else
		echo "FAIL $name"
		tail -n 60 "$log" | sed 's/^/    /'
		failed=$((failed + 1))
	fi
}

# Print the names that the comments describe, found without kernel-doc.
described() {
	sed -n '/^\/\*\*$/{n;s/^ \* \(struct \|enum \|union \|typedef \)\?\([A-Za-z0-9_]*\) - .*/\2/p}' "$header"
}

a_page_for_each_name() {
	diff <(described | sort) <(cd "$man" && ls | sed -n 's/\.9$//p' | grep -vx fairwq | sort)
}

# Check that man shows each page without a warning, and that apropos gets a purpose.
man_reads_them() {
	local page rc=0
	for page in "$man"/*.9; do
		man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null | sed "s,^,${page##*/}: ," |
			grep . && rc=1
		lexgrog "$page" | grep -q "\"${page##*/}" || lexgrog "$page" |
			grep -qF "\"$(basename "$page" .9) - " || { echo "${page##*/}: no NAME line"; rc=1; }
	done
	return $rc
}

# Check that the HTML has each guide, and an anchor for each name.
an_anchor_for_each_name() {
	local guide name rc=0
	for guide in "$top"/Documentation/*.rst; do
		[ -s "$html/$(basename "$guide" .rst).html" ] || { echo "no page for $guide"; rc=1; }
	done
	for name in $(described); do
		grep -qs "id=\"c\.$name\"" "$html"/reference/*.html || { echo "no anchor for $name"; rc=1; }
	done
	return $rc
}

installed_and_removed() {
	local root=$dir/root name
	rm -rf "$root"
	put_man "$root/man/man9" && put_html "$root/html" || return
	for name in fairwq $(described); do
		MANPATH=$root/man man -w 9 "$name" || return
	done
	uninstall_docs "$root/man/man9" "$root/html"
	[ -z "$(find "$root" -type f)" ] || { find "$root" -type f | head; return 1; }
}

check_docs() {
	find_kernel_doc
	mkdir -p "$dir"
	check "man pages without a warning" step "man pages" describe man "$man"
	check "a man page for each name" a_page_for_each_name
	check "man and apropos read them" man_reads_them
	check "HTML without a warning" step "HTML" run_sphinx
	check "an anchor for each name" an_anchor_for_each_name
	check "no dead link" sorted links "$html"
	check "functions that the guides name" sorted mentions "$header" \
		"$top"/Documentation/*.rst "$top/README.md"
	check "installed and removed" installed_and_removed
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
}

case ${1-} in
mandocs)
	need_packages python3 xz-utils
	locked "$dir.lock" make_man
	;;
htmldocs)
	need_packages python3-sphinx xz-utils
	locked "$dir.lock" make_html
	;;
install-docs)
	need_packages python3-sphinx xz-utils
	locked "$dir.lock" install_docs "${2:?the folder of section 9}" "${3:?the folder of the HTML}"
	;;
uninstall-docs) uninstall_docs "${2:?the folder of section 9}" "${3:?the folder of the HTML}" ;;
check-docs)
	need_packages python3-sphinx xz-utils man-db git
	locked "$dir.lock" check_docs
	;;
*) die "usage: docs.sh mandocs | htmldocs | check-docs | install-docs MAN HTML | uninstall-docs MAN HTML" ;;
esac
