/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of GLib's public interface that pathcount uses. QEMU has loaded the
 * library.
 */
#ifndef PATHCOUNT_GLIB_API_H
#define PATHCOUNT_GLIB_API_H

typedef struct _GSource GSource;
typedef struct _GMainContext GMainContext;
typedef int (*GSourceFunc)(void *data);

typedef struct {
	int (*prepare)(GSource *source, int *timeout);
	int (*check)(GSource *source);
	int (*dispatch)(GSource *source, GSourceFunc callback, void *data);
	void (*finalize)(GSource *source);
	GSourceFunc closure_callback;
	void *closure_marshal;
} GSourceFuncs;

#define GSOURCE_SIZE	96	/* where pointers have 8 bytes */

GSource *g_source_new(GSourceFuncs *funcs, unsigned int size);
void g_source_set_priority(GSource *source, int priority);
unsigned int g_source_attach(GSource *source, GMainContext *context);
void g_main_context_wakeup(GMainContext *context);

#endif /* PATHCOUNT_GLIB_API_H */
