/* SPDX-License-Identifier: GPL-2.0 */
/* Where the kernel's tools have min() and max(). */
#include <linux/kernel.h>
