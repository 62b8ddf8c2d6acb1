/*-------------------------------------------------------------------------
 *
 * filter.c
 *	  Which rows the filters of two indexes leave out.
 *
 * The filters are compared as they are stored, by core's logic for the planner.  Nothing is
 * folded, so that no function of a user is called.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/filter.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"

#include "definition/option.h"

/*
 * Can no row of a table be in both of two indexes, as far as core's logic for the
 * planner can tell?
 */
bool
ttl_filter_excludes(List *a, List *b)
{
	return a != NIL && b != NIL && predicate_refuted_by(b, a, true);
}
