// SPDX-License-Identifier: GPL-2.0
/*
 * I/O that ends on another CPU than the one that submitted it, as behind a
 * device whose interrupts go to another CPU.
 *
 * Each device has a list for each CPU. The first I/O on an empty list sends the
 * CPU an interprocessor interrupt, whose handler ends all I/O on the list. The
 * lists need no lock: I/Os are added one by one and removed all at once.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>

#include "blknull.h"
#include "counters.h"

/**
 * struct blknull_remote - the I/Os of a device that are to end on a CPU
 * @csd: calls blknull_remote_interrupt(); the kernel unlocks it before the call,
 *	so it is free whenever the list is empty
 * @ios: the I/Os
 * @dev: the device
 */
struct blknull_remote {
	call_single_data_t csd;
	struct llist_head ios;
	struct blknull_device *dev;
};

static void blknull_remote_run(struct blknull_remote *remote)
{
	struct llist_node *node = llist_del_all(&remote->ios), *next;
	struct blknull_device *dev = remote->dev;

	/* First in, first out. */
	for (node = llist_reverse_order(node); node; node = next) {
		next = node->next;
		dev->end(node);
	}
}

static void blknull_remote_interrupt(void *data)
{
	struct blknull_remote *remote = data;
	struct blknull_device *dev = remote->dev;

	/*
	 * This stands for a device's interrupt, whose handler may be threaded
	 * and may take any spinlock.
	 */
	lockdep_hardirq_threaded();
	if (dev->config.stats)
		blknull_count(dev, BLKNULL_INTERRUPTS);
	blknull_remote_run(remote);
}

/* The CPU that an I/O submitted on @cpu ends on. */
static unsigned int blknull_remote_cpu(const struct blknull_device *dev,
				       unsigned int cpu)
{
	if (dev->config.complete_cpu != BLKNULL_CPU_NEXT)
		return dev->config.complete_cpu;
	cpu = cpumask_next(cpu, cpu_online_mask);
	return cpu < nr_cpu_ids ? cpu : cpumask_first(cpu_online_mask);
}

/**
 * blknull_remote_end() - end an I/O on the CPU that complete_cpu selects
 * @dev: the device
 * @node: the node of the I/O
 *
 * If that is this CPU, or is offline, the I/O ends here.
 *
 * Context: Any.
 */
void blknull_remote_end(struct blknull_device *dev, struct llist_node *node)
{
	unsigned int here = raw_smp_processor_id();
	unsigned int cpu = blknull_remote_cpu(dev, here);
	struct blknull_remote *remote;

	if (cpu == here) {
		dev->end(node);
		return;
	}
	remote = per_cpu_ptr(dev->remotes, cpu);
	if (!llist_add(node, &remote->ios))
		return;
	/*
	 * A CPU that goes offline first handles the calls that it was sent. The
	 * call fails if it is offline.
	 */
	if (smp_call_function_single_async(cpu, &remote->csd))
		blknull_remote_run(remote);
}

/**
 * blknull_remotes_create() - allocate the lists of a device
 * @dev: the device
 *
 * Context: Process context, may sleep.
 * Return: 0 or -ENOMEM.
 */
int blknull_remotes_create(struct blknull_device *dev)
{
	struct blknull_remote *remote;
	int cpu;

	dev->remotes = alloc_percpu(struct blknull_remote);
	if (!dev->remotes)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		remote = per_cpu_ptr(dev->remotes, cpu);
		remote->csd.func = blknull_remote_interrupt;
		remote->csd.info = remote;
		init_llist_head(&remote->ios);
		remote->dev = dev;
	}
	return 0;
}

/**
 * blknull_remotes_drain() - wait until all I/O has ended
 * @dev: the device; gets no new I/O
 *
 * Context: Process context, sleeps.
 */
void blknull_remotes_drain(struct blknull_device *dev)
{
	int cpu;

	for_each_possible_cpu(cpu)
		while (!llist_empty(&per_cpu_ptr(dev->remotes, cpu)->ios))
			usleep_range(1000, 2000);
	/* No CPU has a call left that it has not begun to handle. */
	kick_all_cpus_sync();
	/* No handler still uses its list: handlers run with interrupts disabled. */
	synchronize_rcu();
}
