/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random: numbers that look random and are the same for the same seed:
 * splitmix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast Splittable Pseudorandom
 * Number Generators", OOPSLA 2014).
 */
#ifndef FAIRWQ_SIM_RANDOM_H
#define FAIRWQ_SIM_RANDOM_H

#include <stdint.h>

struct random {
	uint64_t state;
};

static inline uint64_t random_next(struct random *rnd)
{
	uint64_t z = rnd->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Return a number from 0 to @n - 1. @n must not be above 2^32. */
static inline uint32_t random_below(struct random *rnd, uint64_t n)
{
	return ((random_next(rnd) >> 32) * n) >> 32;
}

/* Return a number from @from to @to, both included. */
static inline uint64_t random_between(struct random *rnd, uint64_t from, uint64_t to)
{
	return from + random_below(rnd, to - from + 1);
}

/* Return 1 once in @n calls, on average; never if @n is 0. */
static inline int random_one_in(struct random *rnd, uint32_t n)
{
	return n && !random_below(rnd, n);
}

#endif /* FAIRWQ_SIM_RANDOM_H */
