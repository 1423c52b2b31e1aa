// SPDX-License-Identifier: GPL-2.0
/*
 * Checks of all options together: which can be combined, and the defaults of
 * those that were not given.
 */
#include <inttypes.h>
#include <string.h>

#include "../../kernel/include/uapi/biogen.h"
#include "checks.h"
#include "compiler.h"
#include "engine.h"
#include "engines.h"
#include "lists.h"
#include "option_table.h"

/* The most I/O buffers may take: a typing error must not use up all memory. */
#define MAX_BUFFERS	(UINT64_C(16) << 30)

static bool has_word(const char *words, const char *word)
{
	const size_t len = strlen(word);

	while (*words) {
		if (strcspn(words, " ") == len && !strncmp(words, word, len))
			return true;
		words += strcspn(words, " ");
		words += strspn(words, " ");
	}
	return false;
}

/* Options of other engines would do nothing here, and are refused. */
static bool check_engine_options(struct options *o, char *msg, size_t size)
{
	const struct option *opt;

	for (opt = option_table; opt < option_table + nr_options; opt++) {
		if (!opt->engines || !*option_number(o, opt) ||
		    has_word(opt->engines, o->engine->name))
			continue;
		snprintf(msg, size, "--%s: is for --ioengine=%s, not for %s",
			 opt->name, opt->engines, o->engine->name);
		return false;
	}
	return true;
}

static bool check_engine(struct options *o, char *msg, size_t size)
{
	const struct engine *e;

	while (o->calibrate && engine_number(o->ioengine) != &engine_calibrate)
		o->ioengine++;
	e = engine_number(o->ioengine);
	if (o->split && e == &engine_libaio)
		e = &engine_libaio_split;
	if (o->segments > 1 && e == &engine_vsync)
		e = &engine_vsync_segments;
	o->engine = e;
	o->calibrate = e == &engine_calibrate;
	if (o->direct == UNSET)
		o->direct = e == &engine_biogen;
	if (o->invalidate == UNSET)
		o->invalidate = (e->flags & ENGINE_FILE) && !o->direct &&
				!(e->flags & (ENGINE_CACHED | ENGINE_WARM));
	if (o->iodepth > e->max_iodepth)
		snprintf(msg, size,
			 "--iodepth=%" PRIu64 ": must be from 1 to %" PRIu64
			 " for %s", o->iodepth, e->max_iodepth, e->name);
	else if ((e->flags & ENGINE_FILE) && !o->filename)
		snprintf(msg, size, "--filename: %s needs a file or a device",
			 e->name);
	else if (!(e->flags & ENGINE_FILE) && o->filename)
		snprintf(msg, size, "--filename=%s: %s uses none",
			 o->filename, e->name);
	else if ((e->flags & ENGINE_CACHED) && o->direct)
		snprintf(msg, size, "--direct=1: must be 0 for %s", e->name);
	else if ((e->flags & ENGINE_READS) && options_write(o))
		snprintf(msg, size,
			 "--rw=%s: must be read or randread, %s cannot write",
			 rw_names[o->rw], e->name);
	else if (e == &engine_biogen && o->bs > BIOGEN_MAX_BLOCK_SIZE)
		snprintf(msg, size,
			 "--bs=%" PRIu64 ": must be at most %u for biogen",
			 o->bs, BIOGEN_MAX_BLOCK_SIZE);
	else if (e == &engine_biogen && o->rounds > BIOGEN_MAX_ROUNDS)
		snprintf(msg, size,
			 "--rounds=%" PRIu64 ": must be at most %u for biogen",
			 o->rounds, BIOGEN_MAX_ROUNDS);
	else
		return check_engine_options(o, msg, size);
	return false;
}

static bool check_pattern(struct options *o, char *msg, size_t size)
{
	const bool random = o->rw >= RW_RANDREAD;

	if (o->pattern == UNSET)
		o->pattern = random ? PATTERN_RANDOM : PATTERN_SEQUENTIAL;
	if (!random || o->pattern == PATTERN_RANDOM)
		return true;
	snprintf(msg, size, "--pattern=%s: must be random with --rw=%s",
		 pattern_names[o->pattern], rw_names[o->rw]);
	return false;
}

static bool check_one_ring(const struct options *o, char *msg, size_t size)
{
	if (!o->one_ring || o->nr_files == 2)
		return true;
	snprintf(msg, size, "--one_ring=1: needs two files in --filename");
	return false;
}

/**
 * check_options() - check all options together and fill in defaults
 * @o: the options
 * @msg: what is wrong, if anything
 * @size: room in @msg
 *
 * Return: true if they go together.
 */
bool check_options(struct options *o, char *msg, size_t size)
{
	if (!check_engine(o, msg, size) || !check_pattern(o, msg, size))
		return false;
	if (o->calibrate && !o->number_ios)
		snprintf(msg, size,
			 "--calibrate: needs --number_ios, the iterations in one round");
	else if (o->rounds > 1 && !o->number_ios &&
		 (o->time_based || !o->filename))
		snprintf(msg, size,
			 "--rounds=%" PRIu64
			 ": needs --number_ios, the I/Os in one round",
			 o->rounds);
	else if (o->repeat > 1 && (!o->number_ios || o->engine->round ||
				   o->engine->rounds))
		snprintf(msg, size,
			 "--repeat=%" PRIu64
			 ": needs --number_ios, and an engine whose I/Os the job does itself",
			 o->repeat);
	else if (o->rounds % o->layouts)
		snprintf(msg, size,
			 "--layouts=%" PRIu64 ": must divide --rounds=%" PRIu64,
			 o->layouts, o->rounds);
	else if (o->first_layout && o->layouts == 1)
		snprintf(msg, size,
			 "--first_layout=%" PRIu64 ": needs --layouts",
			 o->first_layout);
	else if (o->layouts > 1 && (o->thread || o->pmu || o->perf_control ||
				    o->time_based || o->split))
		snprintf(msg, size,
			 "--layouts=%" PRIu64
			 ": does not go with --thread, --pmu, --perf_control, --split or --time_based",
			 o->layouts);
	else if (o->pmu && o->engine->rounds)
		snprintf(msg, size, "--pmu: does not see the threads of %s",
			 o->engine->name);
	else if (o->perf_control && !strchr(o->perf_control, ','))
		snprintf(msg, size,
			 "--perf_control=%s: not CTL,ACK, two FIFOs of perf",
			 o->perf_control);
	else if (o->hipri && !o->direct)
		snprintf(msg, size,
			 "--hipri=1: needs --direct=1, the page cache cannot be polled");
	else if (o->share_file && !(o->thread && o->filename))
		snprintf(msg, size,
			 "--share_file=1: needs --thread=1 and --filename");
	else if (o->scatter && o->hugepages)
		snprintf(msg, size,
			 "--scatter=1: does not go with --hugepages=1, whose pages are adjacent");
	else if ((o->streams > 1 || o->engine == &engine_streams) &&
		 (o->pattern != PATTERN_SEQUENTIAL ||
		  o->engine != &engine_streams))
		snprintf(msg, size,
			 "--streams: needs --ioengine=streams and --pattern=sequential");
	else if ((o->fsync || o->append) && !options_write(o))
		snprintf(msg, size, "--%s: needs --rw=write",
			 o->append ? "append" : "fsync");
	else if (o->append && o->streams > 1)
		snprintf(msg, size, "--append=1: needs --streams=1");
	else if (o->one_ring && o->registerfiles)
		snprintf(msg, size,
			 "--one_ring=1: does not go with --registerfiles=1");
	else if (o->onebuf && !o->fixedbufs)
		snprintf(msg, size, "--onebuf=1: needs --fixedbufs=1");
	else if (o->defer_taskrun && !o->single_issuer)
		snprintf(msg, size,
			 "--defer_taskrun=1: needs --single_issuer=1");
	else if (o->split && o->userspace_reap)
		snprintf(msg, size,
			 "--split=%" PRIu64 ": does not go with --userspace_reap",
			 o->split);
	else if (o->split && o->bs % o->split)
		snprintf(msg, size,
			 "--split=%" PRIu64 ": must divide --bs=%" PRIu64,
			 o->split, o->bs);
	else if (o->segments && o->bs % o->segments)
		snprintf(msg, size,
			 "--segments=%" PRIu64 ": must divide --bs=%" PRIu64,
			 o->segments, o->bs);
	else if (o->mem_offset && o->registermem)
		snprintf(msg, size,
			 "--mem_offset=%" PRIu64
			 ": does not go with --registermem=1, whose pages are whole",
			 o->mem_offset);
	else if (o->iodepth * o->bs > MAX_BUFFERS / o->numjobs)
		snprintf(msg, size,
			 "--bs=%" PRIu64
			 ": --iodepth times --numjobs such buffers exceed %"
			 PRIu64 " bytes", o->bs, MAX_BUFFERS);
	else
		return (!o->filename || list_files(o, msg, size)) &&
		       (!o->cpus_allowed || list_cpus(o, msg, size)) &&
		       check_one_ring(o, msg, size);
	return false;
}
