// SPDX-License-Identifier: GPL-2.0
/*
 * Which of the planted bugs there is: only in a build that has all of them; see
 * mutant.h.
 */
#include <linux/module.h>

#include "mutant.h"

unsigned int fairwq_mutant_now;
EXPORT_SYMBOL_GPL(fairwq_mutant_now);
module_param_named(mutant, fairwq_mutant_now, uint, 0444);
MODULE_PARM_DESC(mutant, "Which planted bug to have, by its number in mutant.h; 0: none");
