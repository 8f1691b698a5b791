// SPDX-License-Identifier: GPL-2.0
/*
 * Prints how much each client of /dev/fairhash has had so far.
 *
 *   fairhash_monitor MILLISECONDS NAME=COUNT...
 *
 * COUNT is the file of fairhash_client -c. Once in so many milliseconds, until
 * SIGTERM, it prints a line for each client: the time in milliseconds, its
 * name, its writes, and for how many microseconds 99 in 100 items waited at
 * most. That is of the first batch whose name begins with the client's, or of
 * the one that all clients share.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCHES	"/sys/kernel/debug/fairwq/fairhash/batches"
#define COLUMNS	64	/* more than words in a line */

static unsigned long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ULL + t.tv_nsec / 1000000;
}

/* Cut a line into words. Return how many there are. */
static int split(char *line, char **words)
{
	char *rest;
	int nr = 0;

	words[0] = strtok_r(line, "\n ", &rest);
	while (words[nr] && nr < COLUMNS - 1)
		words[++nr] = strtok_r(NULL, "\n ", &rest);
	return nr;
}

/* How far from the end of the table's head a name is; 0: it is not there. */
static int column_of(char **head, int nr, const char *name)
{
	for (int i = 0; i < nr; i++) {
		if (!strcmp(head[i], name))
			return nr - i;
	}
	return 0;
}

/* Find how long items of the client waited. *@wait stays where no batch is its own. */
static void wait_of(const char *client, char *wait, size_t size)
{
	FILE *table = fopen(BATCHES, "r");
	char *words[COLUMNS], line[512];
	int nr, name, column;

	if (!table) {
		perror(BATCHES);
		exit(1);
	}
	nr = fgets(line, sizeof(line), table) ? split(line, words) : 0;
	name = column_of(words, nr, "name");
	column = column_of(words, nr, "wait99us");
	/* A name may have any number of words. What is behind it has one each. */
	while (name && column && fgets(line, sizeof(line), table)) {
		nr = split(line, words);
		if (nr >= name && (!strncmp(words[1], client, strlen(client)) ||
				   !strcmp(words[1], "all")))
			snprintf(wait, size, "%s", words[nr - column]);
	}
	fclose(table);
}

static void sample(const char *client, const char *count, unsigned long long now)
{
	FILE *file = fopen(count, "r");
	unsigned long long writes;
	char wait[24] = "-";

	if (!file)
		return;
	if (fread(&writes, sizeof(writes), 1, file) == 1) {
		wait_of(client, wait, sizeof(wait));
		printf("%llu %s %llu %s\n", now, client, writes, wait);
	}
	fclose(file);
}

int main(int argc, char **argv)
{
	unsigned int interval = argc > 2 ? atoi(argv[1]) : 0;

	for (int i = 2; i < argc; i++) {
		if (!strchr(argv[i], '='))
			interval = 0;
		else
			*strchr(argv[i], '=') = '\0';
	}
	if (!interval) {
		fputs("usage: fairhash_monitor MILLISECONDS NAME=COUNT...\n", stderr);
		return 2;
	}
	for (;;) {
		unsigned long long now = now_ms();

		for (int i = 2; i < argc; i++)
			sample(argv[i], argv[i] + strlen(argv[i]) + 1, now);
		fflush(stdout);
		usleep(interval * 1000);
	}
}
