// SPDX-License-Identifier: GPL-2.0
// Conditions on shims that are constants. One rule for each: matches of one rule must not overlap.

@@
@@
- !false
+ true

@@
expression E;
@@
- E && false
+ false

@@
expression E;
@@
- false && E
+ false

@@
expression E;
@@
- 0 && E
+ false

@@
expression E;
@@
- 0 | E
+ E

@@
expression E;
@@
- true && E
+ E

@@
expression E;
@@
- E && true
+ E

@@
expression E;
@@
- false || E
+ E

@@
expression E;
@@
- E || false
+ E
