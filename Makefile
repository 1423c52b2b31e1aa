# SPDX-License-Identifier: GPL-2.0
#
# "make help" lists the targets. Programs are built in build/bin; modules are built
# beside their sources, by kbuild.

VERSION := 0.2.0
BUILD   := $(CURDIR)/build
KDIR    ?= /lib/modules/$(shell uname -r)/build
# A kernel that Clang built takes modules that Clang built.
LLVM    ?= $(shell ! grep -qsx CONFIG_CC_IS_CLANG=y '$(KDIR)/.config' || echo 1)
KERNELS ?= debian:6.1 debian:7.2
ARGS    ?=
PREFIX  ?= /usr/local
DESTDIR ?=

VENV := $(BUILD)/venv
BINS := $(BUILD)/bin/ioloop $(BUILD)/bin/iopath

.DEFAULT_GOAL := help

.PHONY: help
help:
	@echo 'What one I/O costs in the Linux kernel above the driver.'
	@echo
	@echo '  make measure    boot kernels and count instructions per I/O'
	@echo '                    KERNELS="debian:6.1 debian:7.2-arm64"  which'
	@echo '                    ARGS="--bs 64k --json out.json"  options of iopath measure'
	@echo '  make check      run the tests that are quick, as CI does; make check-all'
	@echo '                    T=biogen_io KERNEL=debian:6.12  one of them, on one kernel'
	@echo '  make check-faults'
	@echo '                  what fails on demand, races and fuzzing: RUNS=, SEED='
	@echo '  make modules    build blknull.ko and biogen.ko: KDIR=/path/to/a/kernel/build/tree'
	@echo '  make load       build them for the running kernel and load them; make unload'
	@echo '  make userspace  build the programs: build/bin/iopath, build/bin/ioloop'
	@echo '  make install    install the programs and man pages: PREFIX=, DESTDIR='
	@echo '  make install-dkms  install the source of the modules for DKMS: DESTDIR='
	@echo '  make deb        build Debian packages of all that: build/deb'
	@echo '                    DEB_HOST_ARCH=arm64  those of arm64'
	@echo '  make htmldocs   build the documentation: build/html'
	@echo '  make results    repeat the figures of the documentation; pages and charts: build/results'
	@echo '  make screenshots  one sheet of all pages, charts and the README: build/screenshots'
	@echo '                    WHAT="page=report.html"  of other files'
	@echo '  make intree     write the modules into a kernel as a series of patches: KERNEL=REPOSITORY'
	@echo '                    BRANCH=blknull-biogen  the name of the branch'
	@echo '  make clean      remove what was built here (not the cache, ~/.cache/iopath)'

.PHONY: measure
measure: setup-$(if $(findstring riscv64,$(KERNELS)),riscv64,$(if $(findstring arm64,$(KERNELS)),arm64,measure)) userspace
	@$(BUILD)/bin/iopath measure $(KERNELS) $(ARGS)

.PHONY: modules
modules:
	@test -d '$(KDIR)' || { echo 'KDIR=$(KDIR): no such kernel build tree; install its headers or set KDIR' >&2; exit 2; }
	$(MAKE) -C '$(KDIR)' M='$(CURDIR)' $(if $(LLVM),LLVM=$(LLVM)) modules

# Programs. Those of guests are built by the compiler of one Debian suite, so that they are the same
# on every machine: for this one, and on x86-64 for each other architecture with an emulator.
MACHINE := $(shell uname -m)
OTHERS   = $(foreach arch,aarch64 riscv64,$(if $(shell command -v qemu-system-$(arch)),$(arch)))
GUESTS  ?= $(MACHINE) $(if $(filter x86_64,$(MACHINE)),$(OTHERS))

.PHONY: userspace
userspace: setup-userspace guest-programs
	@$(MAKE) -s -C userspace/ioloop O='$(BUILD)/bin' VERSION='$(VERSION)'

.PHONY: guest-programs
guest-programs: $(BUILD)/bin/iopath
	@$(VENV)/bin/python -m iopath.kernels.guest_programs $(BUILD)/guest $(GUESTS)

# The Python part lives in an environment of its own.
$(BUILD)/bin/iopath: $(VENV)/.complete
	@mkdir -p $(@D)
	@ln -sf ../venv/bin/iopath $@
	@touch -h $@

$(VENV)/.complete: userspace/iopath/pyproject.toml | setup-measure
	@echo 'setting up the Python environment'
	@python3 -m venv --clear $(VENV)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check \
		--editable 'userspace/iopath[test]'
	@touch $@

.PHONY: setup-userspace setup-measure setup-arm64 setup-riscv64 setup-check setup-deb
setup-userspace setup-measure setup-arm64 setup-riscv64 setup-check setup-deb: setup-%:
	@userspace/setup.sh $*

.PHONY: check check-all check-faults
check: setup-check userspace
	@selftests/check.sh

# Every test, on every kernel: T=selftests for all selftests. Guests that were kept run again.
check-all: setup-check userspace
	@ALL=1 AGAIN=1 selftests/check.sh

# What fails on demand, races and fuzzing; RUNS= and SEED= for longer and other fuzzing.
check-faults: setup-check userspace
	@AGAIN=1 KERNEL=debug T='selftests/fault_nth or races or fuzz' selftests/check.sh

# The modules as patches for a kernel's git repository.
.PHONY: intree
intree:
	@test -n '$(KERNEL)' || { echo 'KERNEL= is missing: the path of a git repository of Linux' >&2; exit 2; }
	@kernel/intree/export.py '$(KERNEL)' $(BRANCH)

# Modules on this machine.

.PHONY: load unload
load: modules
	@userspace/load.sh load

unload:
	@userspace/load.sh unload

# What runs guests without a checkout takes the sources of the modules along.
LIBRARY := $(DESTDIR)$(PREFIX)/lib/iopath
DKMS    := $(DESTDIR)/usr/src/iopath-$(VERSION)
SOURCES := Kbuild $(shell find kernel -name Kbuild -o -name '*.h' \
	     -o -name '*.c' ! -name '*.mod.c')
# What is built when it is first used, and what measure host --bundle takes along.
OTHER_SOURCES := userspace/attach/attach.c userspace/attach/Makefile userspace/bundle.sh userspace/load.sh

.PHONY: install-programs
install-programs:
	$(MAKE) -s -C userspace/ioloop O='$(BUILD)/bin' VERSION='$(VERSION)'

# PREBUILT=FOLDER has the guests' programs; only those of GUESTS are installed then.
PREBUILT ?=

.PHONY: install
install: $(if $(PREBUILT),,guest-programs) install-programs
	install -D -m 755 -t '$(DESTDIR)$(PREFIX)/bin' $(BUILD)/bin/ioloop
	for page in Documentation/man/*.[1-9]; do \
		install -D -m 644 -t "$(DESTDIR)$(PREFIX)/share/man/man$${page##*.}" $$page || exit; \
	done
	for program in ioloop iopath; do \
		install -D -m 644 userspace/$$program/$$program.bash-completion \
			"$(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$program" || exit; \
	done
	install -D -m 644 -t '$(DESTDIR)$(PREFIX)/lib/systemd/user' userspace/systemd/*
	install -D -m 644 -t '$(DESTDIR)$(PREFIX)/share/iopath' userspace/iopath/iopath/kernels/minimal*.config
	rm -rf '$(LIBRARY)'
	install -D -m 755 -t '$(LIBRARY)' userspace/iopath/launch
	tar -C userspace/iopath -c --exclude=__pycache__ iopath | tar -C '$(LIBRARY)' -x --no-same-owner
	for file in $(SOURCES) $(OTHER_SOURCES); do \
		install -D -m 644 $$file "$(LIBRARY)/iopath/source/$$file" || exit; \
	done
	for arch in $(GUESTS); do \
		from='$(or $(PREBUILT),$(BUILD)/guest)'/$$arch; \
		to='$(LIBRARY)/iopath/source/build/guest'/$$arch; \
		install -D -m 755 -t "$$to" "$$from/init" "$$from/ioloop" "$$from/runner" || exit; \
		! test -f "$$from/pathcount.so" || install -m 644 -t "$$to" "$$from/pathcount.so" || exit; \
	done
	ln -sf ../lib/iopath/launch '$(DESTDIR)$(PREFIX)/bin/iopath'

.PHONY: install-dkms
install-dkms:
	rm -rf '$(DKMS)'
	for file in $(SOURCES); do install -D -m 644 $$file "$(DKMS)/$$file" || exit; done
	install -m 644 -t '$(DKMS)' dkms.conf
	install -D -m 644 -t '$(DESTDIR)/usr/lib/udev/rules.d' kernel/60-iopath.rules

.PHONY: deb
deb: setup-deb
	@$(MAKE) -s guest-programs GUESTS='$(if $(filter x86_64,$(MACHINE)),x86_64 aarch64 riscv64,$(MACHINE))'
	rm -rf '$(BUILD)/deb'
	mkdir -p '$(BUILD)/deb/iopath-$(VERSION)'
	tar -c --exclude=./build --exclude=./.git --exclude=__pycache__ --exclude='*.ko' --exclude='*.o' \
		--exclude='*.mod' --exclude='*.mod.c' --exclude='.*.cmd' . | \
		tar -x --no-same-owner -C '$(BUILD)/deb/iopath-$(VERSION)'
	cd '$(BUILD)/deb/iopath-$(VERSION)' && PREBUILT='$(BUILD)/guest' \
		dpkg-buildpackage -us -uc $(if $(DEB_HOST_ARCH),-a$(DEB_HOST_ARCH))

# Sphinx is not installed beside iopath: that would replace the command while others run it.
SPHINX := $(BUILD)/sphinx

# Two tests may need it at the same time.
$(SPHINX)/.complete: | setup-measure
	@flock $(BUILD) sh -ec 'test -e $@ || { python3 -m venv --clear $(SPHINX); \
		$(SPHINX)/bin/pip install --quiet --disable-pip-version-check "sphinx>=7"; touch $@; }'

HTML ?= $(BUILD)/html

.PHONY: htmldocs
htmldocs: $(SPHINX)/.complete
	$(SPHINX)/bin/sphinx-build -q -E -W --keep-going -b html Documentation $(HTML)

.PHONY: results
results: setup-measure userspace
	@selftests/results/update.sh

# What people see, on one sheet, in the browser of the tests: look at it after a change.
WHAT ?=

.PHONY: screenshots
screenshots: setup-check userspace
	@$(VENV)/bin/python userspace/iopath/tests/screenshots.py $(WHAT)

.PHONY: clean
clean:
	rm -rf $(BUILD)
	find . \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
		-o -name '.*.cmd' -o -name modules.order -o -name Module.symvers \) \
		-not -path './.git/*' -delete
