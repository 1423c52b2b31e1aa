// SPDX-License-Identifier: GPL-2.0
/*
 * The architectures that guests may have.
 */
#include <string.h>

#include "arch.h"

static const struct arch *const arches[] = { &arch_x86_64, &arch_aarch64,
					     &arch_riscv64 };

const struct arch *arch;

/**
 * arch_choose() - the guest has this architecture
 * @name: as QEMU calls it
 *
 * Return: false if pathcount does not know it.
 */
bool arch_choose(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(arches) / sizeof(*arches); i++)
		if (!strcmp(name, arches[i]->name))
			arch = arches[i];
	return arch;
}
