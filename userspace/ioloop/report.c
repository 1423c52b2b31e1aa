// SPDX-License-Identifier: GPL-2.0
/*
 * Where the report goes, and what failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"
#include "report_json.h"
#include "report_normal.h"
#include "run.h"

/**
 * report_open() - open --output
 * @o: the options
 *
 * Return: a file descriptor, or a negative number with errno set.
 */
int report_open(const struct options *o)
{
	if (!o->output)
		return STDOUT_FILENO;
	return open(o->output, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
}

/**
 * report_errors() - print what failed, one line for each job
 * @r: what to report
 * @out: where to
 */
void report_errors(const struct run *r, FILE *out)
{
	const struct io_error *e;
	unsigned int i;

	for (i = 0; i < r->nr_jobs; i++) {
		e = &r->results[i].first_error;
		if (!r->results[i].errors)
			continue;
		fprintf(out, "ioloop: job %u", i);
		if (r->jobs[i].dev)
			fprintf(out, ": %s", r->jobs[i].dev->name);
		fprintf(out, ": %s", e->op);
		if (e->size)
			fprintf(out, " of %" PRIu64 " bytes at offset %" PRIu64,
				e->size, e->offset);
		if (e->errnum)
			fprintf(out, ": %s (errno %d)", strerror(e->errnum),
				e->errnum);
		else
			fprintf(out, ": only %" PRId64 " bytes", e->result);
		if (r->results[i].errors > 1)
			fprintf(out, "; %" PRIu64 " errors in all",
				r->results[i].errors);
		fputc('\n', out);
	}
}

/**
 * report_write() - write the report
 * @r: what to report
 * @fd: where to
 *
 * Everything is written at once, at the end, so a report is never incomplete.
 *
 * Return: false with errno set if it could not be written.
 */
bool report_write(const struct run *r, int fd)
{
	char *text = NULL;
	size_t size = 0;
	size_t done = 0;
	ssize_t n = 0;
	FILE *out;

	out = open_memstream(&text, &size);
	if (!out)
		return false;
	if (r->o->output_format == FORMAT_JSON)
		report_json(r, out);
	else
		report_normal(r, out);
	if (fclose(out)) {
		free(text);
		return false;
	}
	while (done < size) {
		n = write(fd, text + done, size - done);
		if (n < 0)
			break;
		done += (size_t)n;
	}
	free(text);
	return n >= 0;
}

/**
 * report_close() - close --output
 * @o: the options
 * @fd: the file descriptor
 *
 * If the file was longer than the report, the rest is cut off.
 *
 * Return: false with errno set if that failed.
 */
bool report_close(const struct options *o, int fd)
{
	struct stat st;

	if (!o->output)
		return true;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    ftruncate(fd, lseek(fd, 0, SEEK_CUR)))
		return false;
	return !close(fd);
}
