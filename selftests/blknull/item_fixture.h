/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fixture "item": blknull without a device. The tests make "a" and "b" in
 * configfs.
 */
#ifndef SELFTEST_ITEM_FIXTURE_H
#define SELFTEST_ITEM_FIXTURE_H

#include "kselftest_harness.h"

#include "item.h"

FIXTURE(item) {
};

FIXTURE_SETUP(item)
{
	module_unload("blknull");
	ASSERT_EQ(0, items_begin());
}

FIXTURE_TEARDOWN(item)
{
	item_remove("a");
	item_remove("b");
	EXPECT_EQ(0, module_unload("blknull"));
}

#endif /* SELFTEST_ITEM_FIXTURE_H */
