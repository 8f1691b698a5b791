// SPDX-License-Identifier: GPL-2.0
/*
 * Where the tracepoints are instantiated, once.
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
