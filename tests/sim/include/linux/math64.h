/* SPDX-License-Identifier: GPL-2.0 */
/* What older kernels have of this for their tools, and what is missing there. */
#ifndef FAIRWQ_SIM_MATH64_H
#define FAIRWQ_SIM_MATH64_H

#include_next <linux/math64.h>

static inline u64 fairwq_sim_div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline s64 fairwq_sim_div_s64_rem(s64 dividend, s32 divisor, s32 *remainder)
{
	*remainder = dividend % divisor;
	return dividend / divisor;
}

static inline s64 fairwq_sim_div_s64(s64 dividend, s32 divisor)
{
	return dividend / divisor;
}

static inline u64 fairwq_sim_div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

/* Newer ones have functions of the names, so this goes by the preprocessor. */
#define div_u64		fairwq_sim_div_u64
#define div_s64		fairwq_sim_div_s64
#define div_s64_rem	fairwq_sim_div_s64_rem
#define div64_u64	fairwq_sim_div64_u64

#endif /* FAIRWQ_SIM_MATH64_H */
