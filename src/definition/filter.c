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

/*
 * Does a filter leave out all rows in which an expression, a key, is not NULL?  Not whether it
 * contradicts itself: that takes time that doubles with each few levels of AND within OR.
 */
bool
ttl_filter_excludes_key(List *filter, Node *key)
{
	NullTest   *has_key = makeNode(NullTest);

	has_key->arg = (Expr *) key;
	has_key->nulltesttype = IS_NOT_NULL;
	has_key->location = -1;
	return ttl_filter_excludes(list_make1(has_key), filter);
}
