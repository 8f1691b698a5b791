#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# dkms-install.sh: hand the sources to dkms, which builds and installs
# fairwq.ko now for the running kernel and later for every new one.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_packages "${build_packages[@]}" dkms
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' "$top/dkms.conf")
copy_sources "/usr/src/fairwq-$version"
dkms install "fairwq/$version" "$@"
