/*-------------------------------------------------------------------------
 *
 * filter.c
 *	  Comparing the filters of indexes.
 *
 * Two filters are the same, or exclude each other, by what they are once folded, as
 * the relation cache folds them.  That runs immutable functions of users, so it
 * happens as the owner of the table.
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
#include "ttl_index.h"

/* Folds an expression, of which the caller keeps the original. */
static Node *
fold(Node *expression)
{
	return eval_const_expressions(NULL, copyObject(expression));
}

/*
 * Folds a predicate as the relation cache does.  This can run immutable
 * functions of users: call it as the table's owner.
 */
static Node *
fold_predicate(List *members)
{
	Node	   *folded;

	if (members == NIL)
		return NULL;
	folded = fold((Node *) make_ands_explicit(members));
	folded = (Node *) canonicalize_qual((Expr *) folded, false);
	return (Node *) make_ands_implicit((Expr *) folded);
}

/*
 * Can no row of a table be in both of two indexes, as far as core's logic for the
 * planner can tell?  Folds as its owner.
 */
bool
ttl_filter_excludes(Oid relid, List *a, List *b)
{
	TtlUser		saved;
	bool		exclude;

	if (a == NIL || b == NIL)
		return false;
	ttl_owner_become(ttl_owner_of(relid), &saved);
	exclude = predicate_refuted_by((List *) fold_predicate(b),
								   (List *) fold_predicate(a), true);
	ttl_owner_restore(&saved);
	return exclude;
}

/* Are two filters of a table the same once folded?  Folds as its owner. */
bool
ttl_filter_same(Oid relid, List *a, List *b)
{
	TtlUser		saved;
	bool		same;

	ttl_owner_become(ttl_owner_of(relid), &saved);
	same = equal(fold_predicate(a), fold_predicate(b));
	ttl_owner_restore(&saved);
	return same;
}

/* Are two expressions over a table, which need not be conditions, the same once folded? */
bool
ttl_filter_same_expression(Oid relid, Node *a, Node *b)
{
	TtlUser		saved;
	bool		same;

	ttl_owner_become(ttl_owner_of(relid), &saved);
	same = equal(fold(a), fold(b));
	ttl_owner_restore(&saved);
	return same;
}
