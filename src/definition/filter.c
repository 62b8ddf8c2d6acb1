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

#include "compute.h"
#include "definition/option.h"
#include "ttl_index.h"

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
	folded = ttl_compute_folded((Node *) make_ands_explicit(members));
	folded = (Node *) canonicalize_qual((Expr *) folded, false);
	return (Node *) make_ands_implicit((Expr *) folded);
}

/* Core's logic takes a constant for an unknown condition. */
static bool
is_never(List *folded)
{
	Const	   *condition = folded != NIL && IsA(linitial(folded), Const) ? linitial(folded) : NULL;

	return condition != NULL && (condition->constisnull || !DatumGetBool(condition->constvalue));
}

static bool
exclude(const void *a, const void *b)
{
	List	   *first = (List *) fold_predicate((List *) a);
	List	   *second = (List *) fold_predicate((List *) b);

	return is_never(first) || is_never(second) || predicate_refuted_by(second, first, true);
}

static bool
are_same(const void *a, const void *b)
{
	return equal(fold_predicate((List *) a), fold_predicate((List *) b));
}

static bool
are_same_expressions(const void *a, const void *b)
{
	return equal(ttl_compute_folded((Node *) a), ttl_compute_folded((Node *) b));
}

/* The arguments and the result of comparing what two indexes of a table say. */
typedef struct CompareWork
{
	const void *a;
	const void *b;
	bool		(*compare) (const void *a, const void *b);
	bool		result;
} CompareWork;

static void
compare_work(void *arg)
{
	CompareWork *work = arg;

	work->result = work->compare(work->a, work->b);
}

/*
 * Compares as the owner of the table, whose code leaves nothing for that of the owner of the next
 * one, or for the session.
 */
static bool
compare(Oid relid, const void *a, const void *b, bool (*how) (const void *a, const void *b))
{
	CompareWork work = {.a = a,.b = b,.compare = how};

	ttl_owner_look(ttl_owner_of(relid), compare_work, &work);
	return work.result;
}

/*
 * Can no row of a table be in both of two indexes, as far as core's logic for the
 * planner can tell?
 */
bool
ttl_filter_excludes(Oid relid, List *a, List *b)
{
	return a != NIL && b != NIL && compare(relid, a, b, exclude);
}

/* Are two filters of a table the same once folded? */
bool
ttl_filter_same(Oid relid, List *a, List *b)
{
	return compare(relid, a, b, are_same);
}

/* Are two expressions over a table, which need not be conditions, the same once folded? */
bool
ttl_filter_same_expression(Oid relid, Node *a, Node *b)
{
	return compare(relid, a, b, are_same_expressions);
}
