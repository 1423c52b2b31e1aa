// SPDX-License-Identifier: GPL-2.0
/*
 * A module with the faults that the selftests look for, to check that they find
 * them: "fault" says which one happens when it is loaded.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

static char *fault = "";
module_param(fault, charp, 0444);
MODULE_PARM_DESC(fault, "warning, leak, inversion, use_after_free, sleep or race");

static DEFINE_MUTEX(planted_first);
static DEFINE_MUTEX(planted_second);
static DEFINE_SPINLOCK(planted_spinlock);
static unsigned long planted_count;

static void planted_take(struct mutex *outer, struct mutex *inner)
{
	mutex_lock(outer);
	mutex_lock(inner);
	mutex_unlock(inner);
	mutex_unlock(outer);
}

static int planted_counter(void *data)
{
	while (!kthread_should_stop()) {
		planted_count++;
		cond_resched();
	}
	return 0;
}

/* Two threads count in one variable without READ_ONCE() and WRITE_ONCE(). */
static int planted_race(void)
{
	struct task_struct *thread[2];
	int i;

	for (i = 0; i < 2; i++) {
		thread[i] = kthread_create(planted_counter, NULL, "planted");
		if (IS_ERR(thread[i]))
			break;
		kthread_bind(thread[i], i);
		wake_up_process(thread[i]);
	}
	if (i == 2)
		msleep(2000);
	while (i--)
		kthread_stop(thread[i]);
	return 0;
}

static int __init planted_init(void)
{
	char *memory = kmalloc(100, GFP_KERNEL);

	if (!memory)
		return -ENOMEM;
	OPTIMIZER_HIDE_VAR(memory);
	if (!strcmp(fault, "leak"))
		return 0;
	kfree(memory);
	if (!strcmp(fault, "warning")) {
		WARN_ON(1);
	} else if (!strcmp(fault, "inversion")) {
		planted_take(&planted_first, &planted_second);
		planted_take(&planted_second, &planted_first);
	} else if (!strcmp(fault, "use_after_free")) {
		WRITE_ONCE(memory[10], 1);
	} else if (!strcmp(fault, "sleep")) {
		spin_lock(&planted_spinlock);
		msleep(20);
		spin_unlock(&planted_spinlock);
	} else if (!strcmp(fault, "race")) {
		return planted_race();
	} else {
		return -EINVAL;
	}
	return 0;
}

static void __exit planted_exit(void)
{
}

module_init(planted_init);
module_exit(planted_exit);

MODULE_DESCRIPTION("Faults for the selftests to find");
MODULE_LICENSE("GPL");
