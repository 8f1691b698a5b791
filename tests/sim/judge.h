/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The judge: did each client with a backlog get its share?
 *
 * The meter compares two clients that both stay eligible. It cannot see that a
 * client starves behind others that come and go. The judge compares what a
 * client got with what an ideal server would have given it: a server that
 * serves all clients at once, each by its weight (generalized processor
 * sharing: A. K. Parekh, R. G. Gallager, "A Generalized Processor Sharing
 * Approach to Flow Control in Integrated Services Networks", IEEE/ACM
 * Transactions on Networking 1(3), 1993).
 *
 * It is told from outside what has arrived, what starts and what ends. It knows
 * nothing of virtual times, and of what is eligible. Its clock is the
 * service that was given: with each item that starts, the ideal server gives
 * the same amount to the clients that have an item waiting and may run it, by
 * weight. What a client's own limits keep back is therefore no loss. A client
 * that is ahead of the ideal server takes part, too, until it is no longer: the
 * ideal server has not come to the end of its items. The children of an owner
 * share what the owner got, and the clients of a priority what that priority
 * got.
 *
 * Between priorities there is no ideal server. While a higher one has an item
 * that may start, a lower one gets at most its part of all service, 1 in 64 or
 * nothing, over any window; and as much more as it has in flight, and eight
 * turns.
 *
 * A new client owes nothing. What the client before it in the same place owed is
 * forgotten, so that newcomers have to be served as slowly as one client.
 *
 * For each window in which a client has a backlog, what it got is at least what
 * the ideal server gave it, less a bound: its share of eight turns for each
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

/* What clients of one priority got, while those of a higher one waited. */
struct judge_rank {
	double over;		/* its part, in this window */
	double least;		/* of that */
	double largest;		/* the most that one of its clients gets at once */
	bool guilty;
};

struct judge_entry {
	int parent;		/* an entry, or JUDGE_NOBODY */
	int group;		/* entries with the same one share */
	double weight;
	double largest;		/* the most that it gets at once */
	double item;		/* the longest of its items, or bursts */
	double ideal, got;
	double least;		/* of ideal - got, in this window */
	double bound;		/* of what that may grow by */
	unsigned int busy;	/* has a backlog, or so many children have one */
	unsigned int ready;	/* has an item that may start, likewise */
	bool guilty;		/* this window was counted as a violation */
};

struct judge_group {
	int nr;
	int *member;
};

struct judge {
	int nr, max;
	unsigned int taken;	/* so many turns are in flight at most */
	bool surprised;		/* costs are guesses: it may be ahead by that, then behind */
	struct judge_entry *entry;
	struct judge_group *group;	/* the first ones are those of the ranks */
	struct judge_rank rank[JUDGE_RANKS];
	double low_part;	/* of the service: a lower priority's */

	/* What was found. */
	uint64_t windows;
	uint64_t violations;	/* of these, beyond the bound */
	double worst;		/* the worst deficit, as a share of the bound */
	int worst_client;
};

struct judge *judge_new(int max, unsigned int taken);
void judge_free(struct judge *judge);
int judge_add(struct judge *judge, int parent, unsigned int rank, uint32_t weight);
/* The longest item or burst of a client, and the most that it gets at once. */
void judge_set_largest(struct judge *judge, int i, int64_t item, int64_t largest);

/* A client has a backlog or not, and in it an item that may start or not. */
void judge_set_state(struct judge *judge, int i, bool busy, bool ready);
/* Another client comes in its place, of that weight. */
void judge_replace(struct judge *judge, int i, uint32_t weight);
void judge_set_weight(struct judge *judge, int i, uint32_t weight);
/* An item of that length starts; to be called before it is ready no longer. */
void judge_serve(struct judge *judge, int i, int64_t amount);

#endif /* FAIRWQ_SIM_JUDGE_H */
