# SPDX-License-Identifier: GPL-2.0
#
# The entry for people; "make help" lists it. Object lists are in Kbuild, the
# work of the checks in tools/.

KDIR	?= $(firstword $(wildcard /lib/modules/$(shell uname -r)/build) \
	     $(shell ls -d /lib/modules/*/build 2>/dev/null | sort -rV))
PREFIX	?= /usr/local
KERNEL	?= 6.1
SECONDS	?= 60
prefix	?= $(PREFIX)
mandir	?= $(prefix)/share/man
htmldir	?= $(prefix)/share/doc/fairwq/html

# ARCH LLVM CC V W C and the like reach kbuild by themselves.
kbuild	= $(MAKE) -C $(or $(KDIR),$(error no kernel headers found: give KDIR=)) M=$(CURDIR)
check	= tools/check.sh
MAKEFLAGS += --no-print-directory

# "make demo SHELL=1" asks for a prompt, and SHELL is make's own word for its shell.
ifeq ($(SHELL),1)
override SHELL := /bin/sh
MAKEOVERRIDES := $(filter-out SHELL=%,$(MAKEOVERRIDES))
export DEMO_SHELL := 1
endif

all: modules

help:
	@echo 'To use it:'
	@echo '  modules          build fairwq.ko (default)'
	@echo '  samples          build it with the sample clients'
	@echo '  install          install fairwq.ko, and nothing else'
	@echo '  headers_install  install fairwq.h and Module.symvers below PREFIX ($(PREFIX))'
	@echo '  dkms-install     let dkms build and install it, now and for every new kernel'
	@echo '  deb              Debian packages: fairwq-dkms, fairwq-dev and fairwq-tools, into build/deb'
	@echo '  clean            remove what was built'
	@echo 'To read about it:'
	@echo '  mandocs          man pages of all that fairwq.h describes, into build/man'
	@echo '  htmldocs         the guides and that reference as HTML, into build/html'
	@echo '  install-docs     install both below prefix ($(prefix)), or into mandir and htmldir'
	@echo '  uninstall-docs   remove them from there'
	@echo '  pictures         the pictures of README, from a run of the demo'
	@echo 'To see it work:'
	@echo '  demo             two clients on real files in a booted stock kernel, in QEMU;'
	@echo '                   with SHELL=1 a prompt in it at the end, with both and fairwq-top'
	@echo '  bench            what it costs next to queue_work(), on user-mode Linux'
	@echo '  scaling          the bench in one file, to carry to a machine with more CPUs'
	@echo '  ports            dm-crypt, ksmbd, btrfs and ports of them: one modest client beside a flood'
	@echo '  bench-profile    where the time of an item goes; BENCH_ROWS=empty_1'
	@echo 'To test it:'
	@echo '  check            all suites; KERNEL=6.1 (default), 6.12 or 7.3, KIND=qemu (default),'
	@echo '                   or qemu-debug, qemu-kcsan, qemu-rt, uml, uml-debug, uml-native'
	@echo '  check-uml        all suites on 7.3 user-mode Linux, interrupts as on hardware: the fast loop'
	@echo '  sim              is it fair? tree.c alone, in user space, over millions of turns; SEED='
	@echo '  sim-many         how many runners is a pool good for? simulated, with 1 to 128 CPUs'
	@echo '  matrix           every supported kernel and architecture; CELLS="6.1-qemu ...": only these'
	@echo '  torture          everything at random for SECONDS=60; KIND=uml-native (default) and as for check'
	@echo '  torture-bugs     the torture breaks its own rules; each must be noticed; BUGS="lost ..."'
	@echo '  check-hostile    all suites many times, beside busy loops, and stopped at random'
	@echo '  check-mutants    plant bugs one by one; each must be caught'
	@echo '  models           model-check the lock-free protocols, and their broken variants'
	@echo '  check-style      warnings, checkpatch, kernel-doc, sparse, spelling, scripts'
	@echo '  check-docs       man pages and HTML: no warning, no dead link, a page for each name'
	@echo '  check-tools      fairwq-top and fairwq-trace on recorded tables and traces'
	@echo '  check-dkms       dkms build and install into a folder of its own'
	@echo '  check-deb        install, use, upgrade and purge the packages of deb, as root'
	@echo 'Variables: KDIR (kernel build folder), ARCH, LLVM, CC, V, W, C as in kbuild'

modules modules_install:
	@$(kbuild) $@

samples:
	@$(kbuild) CONFIG_FAIRWQ_SAMPLES=m modules

install: modules modules_install

headers_install: modules
	@install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/fairwq fairwq.h Module.symvers

dkms-install:
	@tools/dkms-install.sh

check:
	@$(check) $(KERNEL) $(or $(KIND),qemu)

check-uml:
	@$(check) 7.3 uml-native

torture:
	@KERNEL=$(KERNEL) tools/torture.sh $(or $(KIND),uml-native) $(SECONDS)

matrix:
	@tools/matrix.sh $(CELLS)

deb check-deb check-hostile check-mutants check-style check-dkms models sim sim-many demo pictures bench scaling torture-bugs:
	@tools/$@.sh

ports:
	@tools/ports.sh
	@tools/ports-smb.sh
	@tools/ports-btrfs.sh

check-tools:
	@tools/check-tools.sh

mandocs htmldocs check-docs:
	@tools/docs.sh $@

install-docs uninstall-docs:
	@tools/docs.sh $@ $(DESTDIR)$(mandir)/man9 $(DESTDIR)$(htmldir)

bench-profile:
	@BENCH_PROFILE=1 tools/bench.sh

clean:
	@$(kbuild) CONFIG_FAIRWQ_SAMPLES=m CONFIG_FAIRWQ_KUNIT_TEST=m CONFIG_FAIRWQ_BENCH=m \
		CONFIG_FAIRWQ_TORTURE=m clean
	@rm -rf build

.PHONY: all help modules modules_install samples install headers_install dkms-install \
	mandocs htmldocs install-docs uninstall-docs check-docs check-tools \
	check check-uml matrix torture torture-bugs deb check-deb check-hostile check-mutants check-style check-dkms models sim sim-many demo pictures bench scaling ports bench-profile \
	clean
