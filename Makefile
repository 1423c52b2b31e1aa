# SPDX-License-Identifier: GPL-2.0
#
# The front door. "make help" lists what there is. What people run is built in
# build/bin; the modules build beside their sources, as kbuild does it.

VERSION := 0.1.0
BUILD   := $(CURDIR)/build
KDIR    ?= /lib/modules/$(shell uname -r)/build
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
	@echo '                    KERNELS="debian:6.1 debian:7.2"  which'
	@echo '                    ARGS="--bs 64k --json out.json"  options of iopath measure'
	@echo '  make check      run the tests'
	@echo '  make modules    build blknull.ko and biogen.ko: KDIR=/path/to/a/kernel/build/tree'
	@echo '  make userspace  build the programs: build/bin/iopath, build/bin/ioloop'
	@echo '  make install    install the programs and man pages: PREFIX=, DESTDIR='
	@echo '  make clean      remove what was built here (not the cache, ~/.cache/iopath)'

.PHONY: measure
measure: setup-measure userspace
	@$(BUILD)/bin/iopath measure $(KERNELS) $(ARGS)

.PHONY: modules
modules:
	@test -d '$(KDIR)' || { echo 'KDIR=$(KDIR): no such kernel build tree; install its headers or set KDIR' >&2; exit 2; }
	$(MAKE) -C '$(KDIR)' M='$(CURDIR)' modules

# Programs. The guest's have no C library to lean on, so they are static.

.PHONY: userspace
userspace: setup-userspace guest-programs $(BUILD)/bin/iopath
	@$(MAKE) -s -C userspace/ioloop O='$(BUILD)/bin' VERSION='$(VERSION)'

.PHONY: guest-programs
guest-programs: $(BUILD)/guest/init
	@$(MAKE) -s -C userspace/ioloop O='$(BUILD)/guest' STATIC=1 VERSION='$(VERSION)'
	@$(MAKE) -s -C userspace/pathcount O='$(BUILD)/guest'

$(BUILD)/guest/init: userspace/guest/init.c | setup-userspace
	@mkdir -p $(@D)
	$(CC) -O2 -g -Wall -Wextra -Werror -static -o $@ $<

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

.PHONY: setup-userspace setup-measure setup-check
setup-userspace setup-measure setup-check: setup-%:
	@userspace/setup.sh $*

.PHONY: check
check: setup-check userspace
	@selftests/check.sh

.PHONY: install
install: userspace
	install -D -m 755 -t '$(DESTDIR)$(PREFIX)/bin' $(BUILD)/bin/ioloop
	install -D -m 644 -t '$(DESTDIR)$(PREFIX)/share/man/man1' Documentation/man/*.1
	install -D -m 644 userspace/ioloop/ioloop.bash-completion \
		'$(DESTDIR)$(PREFIX)/share/bash-completion/completions/ioloop'
	python3 -m venv '$(DESTDIR)$(PREFIX)/lib/iopath'
	'$(DESTDIR)$(PREFIX)/lib/iopath/bin/pip' install --quiet userspace/iopath
	ln -sf ../lib/iopath/bin/iopath '$(DESTDIR)$(PREFIX)/bin/iopath'

.PHONY: clean
clean:
	rm -rf $(BUILD)
	find . \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
		-o -name '.*.cmd' -o -name modules.order -o -name Module.symvers \) \
		-not -path './.git/*' -delete
