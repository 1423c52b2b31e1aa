// SPDX-License-Identifier: GPL-2.0
/*
 * Every engine, by all of its names.
 */
#include "compiler.h"
#include "engine.h"
#include "engines.h"

/* The first is the default. */
static const struct {
	const char *name;
	const struct engine *engine;
} engines[] = {
	{ "sync", &engine_sync },
	{ "vsync", &engine_vsync },
	{ "libaio", &engine_libaio },
	{ "io_uring", &engine_io_uring },
	{ "io_uring_cmd", &engine_io_uring_cmd },
	{ "mmap", &engine_mmap },
	{ "buffered", &engine_buffered },
	{ "splice", &engine_splice },
	{ "streams", &engine_streams },
	{ "biogen", &engine_biogen },
	{ "null", &engine_null },
	{ "syscall", &engine_syscall },
	{ "calibrate", &engine_calibrate },
};

/* The NULL at the end stays. */
const char *engine_names[ARRAY_SIZE(engines) + 1];

/**
 * engines_list() - fill in engine_names[]
 */
void engines_list(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(engines); i++)
		engine_names[i] = engines[i].name;
}

/**
 * engine_number() - the engine of a name
 * @number: index of the name in engine_names[]
 */
const struct engine *engine_number(uint64_t number)
{
	return engines[number].engine;
}
