/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the supported kernels, each once, each found by what
 * the headers define and not by the version number: stable kernels carry
 * backports. What only the bench and the torture need of that is theirs: see
 * bench/sides.c, and the Kbuild files there.
 */
#ifndef FAIRWQ_COMPAT_H
#define FAIRWQ_COMPAT_H

#include <linux/prefetch.h>

/*
 * __assign_str(dst, src) became __assign_str(dst) in 6.10. What both of them
 * do, in words that both headers know.
 */
#define fairwq_assign_str(dst, src)					\
	({								\
		const char *__src = (src);				\
									\
		memcpy(__get_str(dst), __src, strlen(__src) + 1);	\
	})

/*
 * Where the compiler is told not to use SSE, as for user-mode Linux, its own
 * prefetch is nothing.
 */
static inline void fairwq_prefetchw(const void *p)
{
#if defined(CONFIG_UML) && defined(__x86_64__)
	asm volatile("prefetchw %0" : : "m" (*(const char *)p));
#else
	prefetchw(p);
#endif
}

/*
 * User-mode Linux has the generic smp_load_acquire(), with a fence that takes as long as a
 * whole queue call. On x86 a load is one.
 */
static inline unsigned int fairwq_load_acquire(const unsigned int *p)
{
#if defined(CONFIG_UML) && defined(__x86_64__)
	unsigned int value = READ_ONCE(*p);

	barrier();	/* the compiler's part of it */
	return value;
#else
	/* Pairs with what the caller says. */
	return smp_load_acquire(p);
#endif
}

#endif /* FAIRWQ_COMPAT_H */
