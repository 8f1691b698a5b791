/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's limits that the sources under test use; its tools have none. */
#ifndef FAIRWQ_SIM_LIMITS_H
#define FAIRWQ_SIM_LIMITS_H

#include <limits.h>

#define U16_MAX	((u16)~0U)
#define U32_MAX	((u32)~0U)
#define U64_MAX	((u64)~0ULL)
#define S64_MAX	((s64)(U64_MAX >> 1))
#define S64_MIN	((s64)(-S64_MAX - 1))

#endif /* FAIRWQ_SIM_LIMITS_H */
