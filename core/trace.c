// SPDX-License-Identifier: GPL-2.0
/* Tracepoints: the one place that instantiates those of trace.h. */
#define CREATE_TRACE_POINTS
#include "trace.h"

fairwq_func_t fairwq_sequenced_func;
