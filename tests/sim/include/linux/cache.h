/* SPDX-License-Identifier: GPL-2.0 */
/* Lines, which mean nothing to the simulator. */
#ifndef SIM_LINUX_CACHE_H
#define SIM_LINUX_CACHE_H

#define ____cacheline_aligned_in_smp

#endif /* SIM_LINUX_CACHE_H */
