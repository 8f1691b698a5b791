/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: forks of a runner that makes no fork or join for long. fairwq_forks_look() in
 * core/fork.c, __fairwq_forks_begin() in fairwq.h, __fairwq_forks_unshare(). The runner
 * changes its list of forks with preemption off, or under pool->lock. The timer changes
 * it under pool->lock, when the runner shares it.
 *
 * A section here is one with preemption off. A grace period ends when the section that
 * was under way at its beginning has ended. It orders memory as well, so the model has
 * one memory.
 *
 * Holds:
 *	the runner and the timer never change the list at the same time.
 *
 * Case STUCK: the runner makes all its changes before the timer looks. Then the
 *	timer changes the list.
 *
 * Broken NO_GRACE (assertion): the timer does not wait for the grace period.
 * Broken ASKED_AGAIN (assertion): the timer asks while it waits for a grace period,
 *	and takes the end of that one for an answer.
 * Broken SEEN_OUTSIDE (assertion): the runner reads @shared with preemption on.
 * Broken UNSHARED_UNLOCKED (assertion): the runner clears @shared without the lock.
 * Broken SHARED_BLIND (assertion): the timer shares the list after the grace period,
 *	also if the runner has answered meanwhile.
 * Broken STUCK NOT_ASKED (assertion): the timer asks no runner.
 */
#define RUNS	3		/* changes of the runner */
#define LOOKS	4		/* of the timer */

bool shared;			/* forks.shared */
bool sharing;			/* pool->sharing */
bool locked;			/* pool->lock */
bool off;			/* the runner has preemption off */
bool awaited;			/* a grace period waits for that section */
bool changing;			/* the list of forks */
bool taken;			/* the timer has changed it */
bool over;			/* the runner has made all its changes */

inline lock()
{
	atomic { !locked -> locked = true }
}

inline unlock()
{
	locked = false
}

inline change()
{
	atomic { assert(!changing); changing = true };
	changing = false
}

inline unshare()
{
#ifdef UNSHARED_UNLOCKED
	shared = false
#else
	lock();
	shared = false;
	unlock()
#endif
}

/* fairwq_fork() and fairwq_unfork() */
inline change_privately()
{
#ifdef SEEN_OUTSIDE
	if
	:: shared -> unshare()
	:: else
	fi;
	off = true;
#else
	off = true;
	if
	:: shared -> unshare()
	:: else
	fi;
#endif
	change();
	atomic { off = false; awaited = false }
}

/* promote_oldest() */
inline change_locked()
{
	lock();
	change();
	unlock()
}

active proctype runner()
{
	byte runs;

	do
	:: runs < RUNS ->
		runs++;
		if
		:: change_privately()
		:: change_locked()
		fi
	:: break
	od;
	over = true
}

inline end_grace()
{
	sharing = false;
#ifdef SHARED_BLIND
	shared = true
#endif
}

inline ask_runner()
{
#ifdef NOT_ASKED
	skip
#else
	if
	:: !shared ->
		shared = true;
		if
		:: !sharing ->
			sharing = true;
			awaited = off	/* get_state_synchronize_rcu() */
		:: else
		fi
#ifndef STUCK
	:: skip			/* it has looked */
#endif
	:: shared
	fi
#endif
}

#ifdef NO_GRACE
#define GRACE_OVER	true
#else
#define GRACE_OVER	!awaited
#endif

#ifdef ASKED_AGAIN
#define MAY_ASK		true
#else
#define MAY_ASK		!sharing
#endif

active proctype timer()
{
	byte looks;

#ifdef STUCK
	over;
#endif
	do
	:: looks < LOOKS ->
		looks++;
		lock();			/* promote_shared() */
		if
		:: sharing && GRACE_OVER -> end_grace()
		:: else
		fi;
		if
		:: shared && !sharing -> change(); taken = true
		:: else
		fi;
		unlock();
		lock();			/* ask_to_share() */
		if
		:: MAY_ASK -> ask_runner()
		:: else
		fi;
		unlock()
	:: else -> break
	od;
#ifdef STUCK
	assert(taken)
#endif
}
