// SPDX-License-Identifier: GPL-2.0
/*
 * When devices answer.
 *
 * A device of QEMU completes a request in QEMU's main loop, beside the thread of
 * the CPU: after how many instructions depends on the host. So while the guest
 * executes, the main loop is held, and when the CPU is about to wait, it is
 * stopped until the main loop has nothing left to do. A request is then completed
 * by the first instruction after it that waits for an interrupt or pauses, and
 * no time of the guest passes meanwhile.
 *
 * QEMU's main loop is that of GLib, and its devices are sources of medium
 * priority. GLib calls only the ready sources with the highest priority. A source
 * with a higher one, which is ready while the main loop is held, keeps all others
 * from being called; one with a lower one is called when no other is ready.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "glib_api.h"
#include "mainloop.h"

#define FIRST		(-100)	/* the priority of QEMU's devices is 0 */
#define LAST		300

/* While it is held, the main loop looks this often whether it still is. */
#define NAP_NS		100000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/*
 * Protected by @lock. @asked: the CPU waits until the main loop has nothing left
 * to do. @polled: since then, the main loop has looked for work.
 */
static bool held, asked, polled;

/* Not ready before the main loop has looked for work, so that it can sleep. */
static int held_prepare(GSource *source, int *timeout)
{
	*timeout = -1;
	return false;
}

static int held_check(GSource *source)
{
	bool now;

	pthread_mutex_lock(&lock);
	now = held && !asked;
	pthread_mutex_unlock(&lock);
	return now;
}

static int held_dispatch(GSource *source, GSourceFunc callback, void *data)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += NAP_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&lock);
	if (held && !asked)
		pthread_cond_timedwait(&changed, &lock, &until);
	pthread_mutex_unlock(&lock);
	return true;
}

static int idle_prepare(GSource *source, int *timeout)
{
	pthread_mutex_lock(&lock);
	polled = asked;
	pthread_mutex_unlock(&lock);
	*timeout = polled ? 0 : -1;
	return false;
}

static int idle_check(GSource *source)
{
	bool now;

	pthread_mutex_lock(&lock);
	now = asked && polled;
	pthread_mutex_unlock(&lock);
	return now;
}

static int idle_dispatch(GSource *source, GSourceFunc callback, void *data)
{
	pthread_mutex_lock(&lock);
	asked = false;
	polled = false;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return true;
}

static void attach(GSourceFuncs *funcs, int priority)
{
	GSource *source = g_source_new(funcs, GSOURCE_SIZE);

	g_source_set_priority(source, priority);
	g_source_attach(source, NULL);
}

/**
 * mainloop_install() - be able to hold the main loop
 */
void mainloop_install(void)
{
	static GSourceFuncs held_funcs = { held_prepare, held_check,
					   held_dispatch, NULL, NULL, NULL };
	static GSourceFuncs idle_funcs = { idle_prepare, idle_check,
					   idle_dispatch, NULL, NULL, NULL };

	attach(&held_funcs, FIRST);
	attach(&idle_funcs, LAST);
}

/**
 * mainloop_hold() - from now on, hold the main loop while the guest executes
 */
void mainloop_hold(void)
{
	pthread_mutex_lock(&lock);
	held = true;
	pthread_mutex_unlock(&lock);
}

/**
 * mainloop_run() - let the main loop run until it has nothing left to do
 *
 * The thread of the CPU calls this while the guest executes, so it does not hold
 * QEMU's lock.
 */
void mainloop_run(void)
{
	pthread_mutex_lock(&lock);
	asked = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	g_main_context_wakeup(NULL);
	pthread_mutex_lock(&lock);
	while (asked)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}
