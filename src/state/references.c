/*-------------------------------------------------------------------------
 *
 * references.c
 *	  The foreign keys that act when rows of a table are deleted.
 *
 * These reference the table itself, or one whose rows a foreign key deletes along with it.
 * PostgreSQL looks for the referencing rows of each row that is deleted.  Without an index on
 * the referencing columns it reads the whole table for that.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_am.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "state/state.h"
#include "ttl_index.h"

/* Describes a foreign key to a table; NULL if it is gone. */
static TtlReference *
read_reference(Oid constraint)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraint));
	TtlReference *reference = palloc0(sizeof(TtlReference));

	if (!HeapTupleIsValid(tuple))
		return NULL;
	reference->constraint = constraint;
	reference->relid = ((Form_pg_constraint) GETSTRUCT(tuple))->conrelid;
	reference->to = ((Form_pg_constraint) GETSTRUCT(tuple))->confrelid;
	reference->action = ((Form_pg_constraint) GETSTRUCT(tuple))->confdeltype;
	DeconstructFkConstraintRow(tuple, &reference->ncolumns, reference->columns, reference->keys,
							   NULL, NULL, NULL, NULL, NULL);
	ReleaseSysCache(tuple);
	return reference;
}

/* Adds the foreign keys to a table that act when its rows are deleted, each once. */
static void
add_references(Oid relid, List **references)
{
	Relation	rel;

	CHECK_FOR_INTERRUPTS();
	if (!ConditionalLockRelationOid(relid, AccessShareLock))
		return;
	rel = try_relation_open(relid, NoLock);
	for (int i = 0; rel != NULL && rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		const Trigger *trigger = &rel->trigdesc->triggers[i];
		TtlReference *reference;
		bool		known = false;
		ListCell   *lc;

		if (!TRIGGER_FOR_DELETE(trigger->tgtype) || trigger->tgenabled == TRIGGER_DISABLED ||
			RI_FKey_trigger_type(trigger->tgfoid) != RI_TRIGGER_PK)
			continue;
		foreach(lc, *references)
			known = known || ((TtlReference *) lfirst(lc))->constraint == trigger->tgconstraint;
		if (!known && (reference = read_reference(trigger->tgconstraint)) != NULL)
			*references = lappend(*references, reference);
	}
	if (rel != NULL)
		relation_close(rel, NoLock);
	UnlockRelationOid(relid, AccessShareLock);
}

/*
 * Lists the foreign keys (TtlReference) that act when rows of a table are deleted.  What
 * somebody has locked exclusively is left out.
 */
List *
ttl_references_to(Oid relid)
{
	List	   *references = NIL;

	add_references(relid, &references);
	for (int i = 0; i < list_length(references); i++)
	{
		const TtlReference *reference = list_nth(references, i);

		if (reference->action == FKCONSTR_ACTION_CASCADE)
			add_references(reference->relid, &references);
	}
	return references;
}

/* Can an index find the rows that reference one?  A locked one is taken for one that can. */
static bool
can_find(Oid indexrelid, const TtlReference *reference)
{
	Relation	index;
	List	   *not_null = NIL;
	bool		found = false;

	if (!ConditionalLockRelationOid(indexrelid, AccessShareLock))
		return true;
	index = try_relation_open(indexrelid, NoLock);
	if (index == NULL)
		return false;
	for (int i = 0; i < reference->ncolumns; i++)
	{
		NullTest   *test = makeNode(NullTest);
		Oid			type;
		int32		typmod;
		Oid			collation;

		get_atttypetypmodcoll(reference->relid, reference->columns[i], &type, &typmod, &collation);
		test->arg = (Expr *) makeVar(1, reference->columns[i], type, typmod, collation, 0);
		test->nulltesttype = IS_NOT_NULL;
		test->location = -1;
		not_null = lappend(not_null, test);
		found = found || index->rd_index->indkey.values[0] == reference->columns[i];
	}
	found = found && index->rd_index->indisvalid &&
		(index->rd_rel->relam == BTREE_AM_OID || index->rd_rel->relam == HASH_AM_OID) &&
		predicate_implied_by(RelationGetIndexPredicate(index), not_null, false);
	relation_close(index, AccessShareLock);
	return found;
}

/* The command that creates the index that a foreign key lacks; NULL if there is one. */
char *
ttl_references_missing_index(const TtlReference *reference)
{
	Oid			relid = reference->relid;
	Relation	rel;
	bool		found = false;
	StringInfoData sql;
	ListCell   *lc;

	if (!ConditionalLockRelationOid(relid, AccessShareLock))
		return NULL;
	rel = try_relation_open(relid, NoLock);
	foreach(lc, rel != NULL ? RelationGetIndexList(rel) : NIL)
		found = found || can_find(lfirst_oid(lc), reference);
	initStringInfo(&sql);
	if (rel != NULL && !found)
	{
		appendStringInfo(&sql, "CREATE INDEX ON %s (", ttl_name_qualified(relid));
		for (int i = 0; i < reference->ncolumns; i++)
			appendStringInfo(&sql, "%s%s", i > 0 ? ", " : "",
							 quote_identifier(get_attname(relid, reference->columns[i], false)));
		appendStringInfoChar(&sql, ')');
	}
	if (rel != NULL)
		relation_close(rel, NoLock);
	UnlockRelationOid(relid, AccessShareLock);
	return sql.len > 0 ? sql.data : NULL;
}

/*
 * Finds a foreign key without an index that makes the deletes from a table slow, with the
 * command that creates the index; NULL if there is none.
 */
TtlReference *
ttl_references_slow(Oid relid, char **command)
{
	ListCell   *lc;

	foreach(lc, ttl_references_to(relid))
	{
		*command = ttl_references_missing_index(lfirst(lc));
		if (*command != NULL)
			return lfirst(lc);
	}
	return NULL;
}
