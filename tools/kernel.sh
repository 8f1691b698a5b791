#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# kernel.sh VERSION CONFIG...: build a test kernel and print its build folder.
#
# VERSION is 6.1, 6.12 or 7.3. Each CONFIG names a fragment in tests/configs. The first is
# "qemu" (x86, from tinyconfig) or "uml" (from um's defconfig). Only to build modules
# against, it may be "arm64" or "arm" (from their defconfigs) or "headers" (as "qemu").
#
# A fragment may have a patch beside it, CONFIG.patch. Then the kernel is built from a copy
# of its source with that patch applied, and the objects are kept in the copy. So every
# path in them is relative, and another copy of it compiles only what differs
# (tools/plant.sh).
#
# The build is cached under a key of source version, compiler, fragments and patches. The
# second call for the same key builds nothing. A change of this script that must lead to
# another kernel must increment recipe.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

recipe=1
version=${1:?usage: kernel.sh VERSION CONFIG...}
shift
base=${1:?usage: kernel.sh VERSION CONFIG...}

fragments=() patches=()
for name in "${@/#headers/qemu}"; do
	fragments+=("$top/tests/configs/$name.config")
	[ -r "${fragments[-1]}" ] || die "no config fragment $name in tests/configs"
	[ ! -e "$top/tests/configs/$name.patch" ] || patches+=("$top/tests/configs/$name.patch")
done

case $base in
qemu) arch=x86_64 first=tinyconfig targets="bzImage modules" image=arch/x86/boot/bzImage ;;
uml) arch=um first=defconfig targets="linux modules" image=linux ;;
headers) arch=x86_64 first=tinyconfig targets=modules_prepare image=scripts/module.lds ;;
arm64) arch=arm64 first=defconfig targets=modules_prepare image=scripts/module.lds ;;
arm) arch=arm first=multi_v7_defconfig targets=modules_prepare image=scripts/module.lds ;;
*) die "the first config is qemu, uml, headers, arm64 or arm, not $base" ;;
esac

[ "$(uname -m)" = x86_64 ] || die "the test kernels are built on x86-64, not on $(uname -m)"
kbuild_arch "$arch"

configure() {
	make -C "$src" O="$obj" "${make_arch[@]}" "$first" &&
		(cd "$obj" && ARCH="$arch" "$src/scripts/kconfig/merge_config.sh" -m -O "$obj" \
			.config "${fragments[@]}") &&
		make -C "$obj" "${make_arch[@]}" olddefconfig &&
		check_config "$obj/.config" "${fragments[@]}"
}

build() {
	# shellcheck disable=SC2086 # to be split
	make -C "$obj" "${make_arch[@]}" -j"$jobs" $targets
}

# Make a patched copy of the source by hard links. patch replaces a file that it changes.
# So the original stays as it is, and only changed files need space.
patched() {
	local patch
	cp -al "$src" "$home" || return
	for patch in "${patches[@]}"; do
		patch -d "$home" -p1 <"$patch" || return
	done
}

main() {
	if [ ! -e "$obj/.built" ]; then
		rm -rf "$home"
		need_space 1500
		say "Test kernel $version ($*): not in the cache yet"
		if [ ${#patches[@]} -gt 0 ]; then
			step "patch the source of $version" patched
			src=$home
		fi
		mkdir -p "$obj"
		step "configure $version ($*)" configure
		step "build $version ($*), 3 to 6 minutes on 2 cores" build
		# To save space, keep the files that modules need, and drop the objects.
		[ "$obj" != "$home" ] || find "$obj" -name '*.o' ! -path '*/scripts/*' \
			! -path '*/tools/*' ! -path '*/arch/*' -delete
		touch "$obj/.built"
	fi
	[ -e "$obj/$image" ] || die "the build left no $image"
}

src=$("$top/tools/fetch.sh" source "$version")
key=$({ gcc --version | head -n 1; cat "${fragments[@]}" "${patches[@]}"
	echo "$recipe${patches:+ in its source}"; } |
	sha256sum | cut -c1-12)
name="$*"
home=$cache/obj/${src##*/linux-source-}-${name// /-}-$key
obj=$home${patches:+/objects}
locked "$home.lock" main "$@"
printf '%s\n' "$obj"
