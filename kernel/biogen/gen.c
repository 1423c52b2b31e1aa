#include "gen.h"
long biogen_gen_run(struct file *file, struct biogen_run __user *urun) { return -ENOTTY; }
void biogen_gen_stop(struct biogen_file *bf, fl_owner_t owner) {}
