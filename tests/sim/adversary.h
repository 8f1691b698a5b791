/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Adversaries: clients that try to get more than their share.
 *
 * Each plot is a pool with a victim, which is client 0, and an adversary, which
 * is all other clients. The victim has a backlog at all times. @share is the
 * most that the adversary may get: of turns, or of time.
 */
#ifndef FAIRWQ_SIM_ADVERSARY_H
#define FAIRWQ_SIM_ADVERSARY_H

#include "sim.h"

struct plot {
	const char *name;
	double share;		/* that the adversary must not exceed */
	bool by_time;		/* only makes sense where time counts */
	bool by_chance;		/* draws numbers: it is played with several seeds */
	bool weight_flaps;
	bool strict_ranks;	/* a lower priority has no share */
	u64 turns;		/* needed to see it; 0: as many as usual */
	/* Add the adversary's clients. @time: of the victim's items. */
	void (*enter)(struct sim *sim, u64 time);
	void (*ended)(struct sim *sim, int client);
	void (*woken)(struct sim *sim, int client);
	struct sim_client_attrs victim;	/* except its owner and @time */
};

extern const struct plot plots[];
extern const unsigned int nr_plots;

const struct plot *plot_find(const char *name);
/* Make a pool with @attrs, and both clients in it. */
struct sim *plot_begin(const struct plot *plot, const struct sim_attrs *attrs, u64 time);
/* Return the adversary's share, and by how much one more item would raise it. */
double plot_share(const struct sim *sim);
double plot_slack(const struct sim *sim);

#endif /* FAIRWQ_SIM_ADVERSARY_H */
