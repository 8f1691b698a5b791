#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# fetch.sh package NAME      download one binary package of this distribution,
#                            unpack it in the cache, print the folder
# fetch.sh source VERSION    the same for a kernel source: 6.1, 6.12, or 7.3
#                            (that one from the next release's backports)
#
# It installs no package, and writes no file of the machine's package system. Lists and
# packages are in the cache. It needs no root.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

apt=$cache/apt

# Set options that give apt a state of its own. $1: name of the state
apt_options() {
	local state=$apt/$1
	mkdir -p "$state/lists/partial" "$state/archives/partial"
	opts=(-o "Dir::State::lists=$state/lists"
		-o "Dir::Cache::archives=$state/archives"
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
		-o APT::Sandbox::User="$(id -un)")
}

# Print the mirror that this machine uses for its own release.
mirror() {
	# shellcheck disable=SC1091
	. /etc/os-release
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' |
		awk -v r="$VERSION_CODENAME" '$2 == r && $3 == "main" {print $1; exit}'
}

# Use a state of its own for the suite that has the newest kernel. The machine's own
# sources are neither read nor changed.
use_backports() {
	local site
	site=$(mirror)
	[ -n "$site" ] || die "no mirror of this release found in the machine's package sources"
	apt_options backports
	printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s trixie-backports main\n' \
		"$site" >"$apt/backports/sources.list"
	opts+=(-o "Dir::Etc::sourcelist=$apt/backports/sources.list"
		-o Dir::Etc::sourceparts=/dev/null)
}

# Print the newest version of package $1 in the lists, which are updated at most hourly.
newest() {
	local stamp
	stamp=$apt/${state:?}/stamp
	if [ -z "$(find "$stamp" -mmin -60 2>/dev/null)" ]; then
		step "package lists (in the cache)" apt-get "${opts[@]}" update
		touch "$stamp"
	fi
	apt-cache "${opts[@]}" policy "$1" | awk '/Candidate:/ && $2 != "(none)" {print $2}'
}

download_and_unpack() {
	local name=$1 version=$2 dir=$3
	mkdir -p "$apt/dl"
	(cd "$apt/dl" && apt-get "${opts[@]}" download "$name=$version") || return
	rm -rf "$dir.part"
	dpkg-deb -x "$apt/dl/${name}_${version//:/%3a}_"*.deb "$dir.part" || return
	rm -f "$apt/dl/${name}_${version//:/%3a}_"*.deb
	mv "$dir.part" "$dir"
}

# Unpack the tarball that a linux-source package holds.
unpack_source() {
	local name=$1 version=$2 dir=$3
	download_and_unpack "$name" "$version" "$dir.deb" || return
	mkdir -p "$dir.part"
	tar -C "$dir.part" --strip-components=1 -xf "$dir.deb/usr/src/$name.tar.xz" || return
	rm -rf "$dir.deb"
	mv "$dir.part" "$dir"
}

fetch() {
	local kind=$1 name=$2 version dir
	version=$(newest "$name")
	[ -n "$version" ] || die "no package $name in the distribution's lists"
	dir=$cache/$kind/${name}_$version
	if [ ! -d "$dir" ]; then
		rm -rf "$dir".*
		mkdir -p "$cache/$kind"
		if [ "$kind" = src ]; then
			need_space 3000
			step "download and unpack $name $version" unpack_source "$name" "$version" "$dir"
		else
			step "download and unpack $name $version" download_and_unpack "$name" "$version" "$dir"
		fi >&2
	fi
	printf '%s\n' "$dir"
}

case ${1-} in
package)
	state=stock
	apt_options stock
	locked "$cache/fetch.lock" fetch pkg "$2"
	;;
source)
	state=stock
	case $2 in
	6.1 | 6.12) apt_options stock ;;
	7.3)
		state=backports
		use_backports
		;;
	*) die "no source known for kernel $2 (6.1, 6.12 and 7.3 are)" ;;
	esac
	locked "$cache/fetch.lock" fetch src "linux-source-$2"
	;;
*) die "usage: fetch.sh package NAME | source VERSION" ;;
esac
