#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# deb.sh [DIR [PATCH]]: build the packages fairwq-dkms, fairwq-dev and fairwq-tools in
# DIR, build/deb by default. PATCH replaces the last number of the version, to try an
# upgrade. The maintainer is the author of the last commit, or DEBFULLNAME and DEBEMAIL.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

out=$(realpath -m "${1:-$top/build/deb}")
src=$out/fairwq

author() { git -C "$top" log -1 --format="$1" 2>/dev/null || echo unknown; }

# Print a number of the version from the header of the copy. $1: MAJOR, MINOR or PATCH.
version_part() { sed -n "s/^#define FAIRWQ_VERSION_$1[ \t]*//p" "$src/fairwq.h"; }

set_patch() {
	sed -i "s/^\(#define FAIRWQ_VERSION_PATCH[ \t]*\).*/\1$1/" "$src/fairwq.h"
	sed -i "s/^\(PACKAGE_VERSION=\).*/\1\"$(version)\"/" "$src/dkms.conf"
}

version() { echo "$(version_part MAJOR).$(version_part MINOR).$(version_part PATCH)"; }

# Copy only the files for the packages, so that the build cannot use others.
copy_tree() {
	rm -rf "$out"
	copy_sources "$src"
	rsync -rlp --exclude=__pycache__ "$top"/{README.md,NEWS.md,Documentation,packaging} "$src/"
	rsync -rlp "$top/build/man/" "$src/man/"
	rsync -rlpR --exclude=__pycache__ "$top/./tools/user" "$src/"
	mv "$src/packaging/debian" "$src/debian"
	[ -z "${1-}" ] || set_patch "$1"
}

# Write a changelog of one entry. The version is in fairwq.h, and the history in NEWS.md.
write_changelog() {
	cat >"$src/debian/changelog" <<-EOF
		fairwq ($(version)) unstable; urgency=medium

		  * Version $(version). NEWS.md tells what is new.

		 -- $maintainer  $(date -R -u -d "@$seconds")
	EOF
	sed -i "s/@MAINTAINER@/$maintainer/" "$src/debian/control"
}

build_packages() { (cd "$src" && dpkg-buildpackage -us -uc -b); }

need_packages build-essential debhelper dh-dkms dh-python git rsync
maintainer="${DEBFULLNAME:-$(author %an)} <${DEBEMAIL:-$(author %ae)}>"
seconds=$(author %ct)
[ "$seconds" != unknown ] || seconds=$(stat -c %Y "$top/fairwq.h")
"$top/tools/docs.sh" mandocs
copy_tree "${2-}"
write_changelog
step "packages of fairwq $(version)" build_packages
rm -rf "$src"
shown=$(realpath --relative-base="$PWD" "$out" | sed 's,^[^/],./&,')
say "To install them, as root: apt install $shown/*.deb"
ls "$out"/*.deb
