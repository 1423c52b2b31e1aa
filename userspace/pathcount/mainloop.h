/* SPDX-License-Identifier: GPL-2.0 */
/* When devices answer: QEMU's main loop runs only while the guest's CPU waits. */
#ifndef PATHCOUNT_MAINLOOP_H
#define PATHCOUNT_MAINLOOP_H

void mainloop_install(void);
void mainloop_hold(void);
void mainloop_run(void);

#endif /* PATHCOUNT_MAINLOOP_H */
