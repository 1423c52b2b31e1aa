// SPDX-License-Identifier: GPL-2.0
// Allocate objects by their type, on kernels that have kmalloc_obj() (7.0).

@@
expression P, F;
@@
(
- kmalloc(sizeof(*P), F)
+ kmalloc_obj(*P, F)
|
- kzalloc(sizeof(*P), F)
+ kzalloc_obj(*P, F)
)
