/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The generator, as the character device uses it.
 */
#ifndef BIOGEN_GEN_H
#define BIOGEN_GEN_H

#include <linux/fs.h>

#include <uapi/biogen.h>

#include "biogen.h"

long biogen_gen_run(struct file *file, struct biogen_run __user *urun);
void biogen_gen_stop(struct biogen_file *bf, fl_owner_t owner);

#endif /* BIOGEN_GEN_H */
