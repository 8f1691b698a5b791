/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Adversaries: clients that try to get more than their share.
 *
 * Each plot is a pool with a victim, which is client 0, and an adversary, which
 * is all other clients. The victim has a backlog at all times. What the plot
 * says is the most that the adversary may get: of turns, or of time.
 */
#ifndef FAIRWQ_SIM_ADVERSARY_H
#define FAIRWQ_SIM_ADVERSARY_H

#include "sim.h"

struct plot {
	const char *name;
	double share;		/* that the adversary must not exceed */
	bool by_time;		/* makes no sense where turns are counted */
	bool by_chance;		/* it draws numbers: it is played with several seeds */
	bool weight_flaps;
	bool strict_ranks;	/* a lower priority has no share */
	u64 turns;		/* that it takes to see it; 0: as many as usual */
	/* Add the adversary's clients; @time is what the victim's items take. */
	void (*enter)(struct sim *sim, u64 time);
	void (*ended)(struct sim *sim, int client);
	void (*woken)(struct sim *sim, int client);
	struct sim_client_attrs victim;	/* but for its items */
};

extern const struct plot plots[];
extern const unsigned int nr_plots;

const struct plot *plot_find(const char *name);
/* A pool with both; @attrs says what pool. */
struct sim *plot_begin(const struct plot *plot, const struct sim_attrs *attrs, u64 time);
/* What the adversary got of it, and what one item more would make of that. */
double plot_share(const struct sim *sim);
double plot_slack(const struct sim *sim);

#endif /* FAIRWQ_SIM_ADVERSARY_H */
