/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The judge: check that each client with a backlog gets its share.
 *
 * The meter compares two clients that both stay eligible. It cannot see that a
 * client starves behind others that come and go. The judge compares what a
 * client got with what an ideal server would have given it: a server that
 * serves all clients at once, each by its weight (generalized processor
 * sharing: A. K. Parekh, R. G. Gallager, "A Generalized Processor Sharing
 * Approach to Flow Control in Integrated Services Networks", IEEE/ACM
 * Transactions on Networking 1(3), 1993).
 *
 * The input of the judge is which items arrive, start and end. It does not know
 * virtual times, nor which clients are eligible.
 *
 * Its clock is the service that was given. With each item that starts, the
 * ideal server gives the same amount to clients, by weight. A client takes part
 * if it has an item that waits and may start. Items that its own limits hold
 * back are therefore no loss. A client also takes part while it is ahead of the
 * ideal server, because that still has items of it. The children of an owner
 * share what the owner got. The clients of a priority share what that priority
 * got.
 *
 * Between priorities there is no ideal server. While a higher one has an item
 * that may start, a lower one has a part of all service: 1 in 64, or nothing.
 * Over any window it may get that, what it has in flight, and eight turns.
 *
 * A new client owes nothing: the debt of the client before it in the same place
 * is forgotten. So newcomers must be served as slowly as one client.
 *
 * In each window in which a client has a backlog, it must get what the ideal
 * server gave it, less a bound. The bound is its share of eight turns for each
 * client, and what is in flight. Let D(t) be the ideal less the real service.
 * The worst window up to t is D(t) - min D, as in meter.h.
 */
#ifndef FAIRWQ_SIM_JUDGE_H
#define FAIRWQ_SIM_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#define JUDGE_NOBODY	(-1)
#define JUDGE_TURNS	8	/* for each client */
#define JUDGE_RANKS	3

/* Service of the clients of one priority, while clients of a higher one waited. */
struct judge_rank {
	double over;		/* service beyond its part, in this window */
	double least;		/* the least of @over */
	double largest;		/* the most that one of its clients gets at once */
	bool guilty;		/* this window was counted as a violation */
};

struct judge_entry {
	int parent;		/* an entry, or JUDGE_NOBODY */
	int group;		/* entries with the same one share */
	double weight;
	double largest;		/* the most that it gets at once */
	double item;		/* the longest of its items, or bursts */
	double ideal, got;
	double least;		/* the least of ideal - got, in this window */
	double bound;		/* the most that ideal - got may be above that */
	unsigned int busy;	/* 1: has a backlog; of an owner: children with one */
	unsigned int ready;	/* the same for an item that may start */
	bool guilty;		/* this window was counted as a violation */
};

struct judge_group {
	int nr;
	int *member;
};

struct judge {
	int nr, max;
	unsigned int taken;	/* most turns in flight */
	bool surprised;		/* costs are guesses: the bound is doubled */
	struct judge_entry *entry;
	struct judge_group *group;	/* the first ones are those of the ranks */
	struct judge_rank rank[JUDGE_RANKS];
	double low_part;	/* a lower priority's part of all service */

	/* Results. */
	uint64_t windows;
	uint64_t violations;	/* windows beyond the bound */
	double worst;		/* the worst deficit, as a share of the bound */
	int worst_client;
};

struct judge *judge_new(int max, unsigned int taken);
void judge_free(struct judge *judge);
int judge_add(struct judge *judge, int parent, unsigned int rank, uint32_t weight);
/* Set the longest item or burst of a client, and the most that it gets at once. */
void judge_set_largest(struct judge *judge, int i, int64_t item, int64_t largest);

/* Note whether a client has a backlog, and in it an item that may start. */
void judge_set_state(struct judge *judge, int i, bool busy, bool ready);
/* Put a new client with @weight in the place of @i. */
void judge_replace(struct judge *judge, int i, uint32_t weight);
void judge_set_weight(struct judge *judge, int i, uint32_t weight);
/* Note that an item starts. Must be called before judge_set_state() says so. */
void judge_serve(struct judge *judge, int i, int64_t amount);

#endif /* FAIRWQ_SIM_JUDGE_H */
