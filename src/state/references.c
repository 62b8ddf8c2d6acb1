/*-------------------------------------------------------------------------
 *
 * references.c
 *	  The foreign keys that act when rows of a table are deleted.
 *
 * These reference the table itself, or one whose rows a foreign key deletes along with it.
 * PostgreSQL looks for the referencing rows of each row that is deleted.  Without an index on
 * the referencing columns it reads the whole table for that.  Nothing is locked here.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "state/state.h"
#include "ttl_index.h"

/* Adds a foreign key, unless it is known or gone. */
static List *
add_reference(List *references, Oid constraint)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraint));
	TtlReference *reference = palloc0(sizeof(TtlReference));
	ListCell   *lc;

	if (!HeapTupleIsValid(tuple))
		return references;
	reference->constraint = constraint;
	reference->relid = ((Form_pg_constraint) GETSTRUCT(tuple))->conrelid;
	reference->to = ((Form_pg_constraint) GETSTRUCT(tuple))->confrelid;
	reference->action = ((Form_pg_constraint) GETSTRUCT(tuple))->confdeltype;
	DeconstructFkConstraintRow(tuple, &reference->ncolumns, reference->columns, reference->keys,
							   NULL, NULL, NULL, NULL, NULL);
	ReleaseSysCache(tuple);
	foreach(lc, references)
	{
		if (((TtlReference *) lfirst(lc))->constraint == constraint)
			return references;
	}
	return lappend(references, reference);
}

/* Lists the foreign keys (TtlReference) that act when rows of a table are deleted. */
List *
ttl_references_to(Oid relid)
{
	Relation	rel = table_open(TriggerRelationId, AccessShareLock);
	List	   *references = NIL;
	int			next = 0;

	while (OidIsValid(relid))
	{
		ScanKeyData key;
		SysScanDesc scan;
		HeapTuple	tuple;

		CHECK_FOR_INTERRUPTS();
		ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
					ObjectIdGetDatum(relid));
		scan = systable_beginscan(rel, TriggerRelidNameIndexId, true, NULL, 1, &key);
		while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		{
			Form_pg_trigger trigger = (Form_pg_trigger) GETSTRUCT(tuple);

			if (TRIGGER_FOR_DELETE(trigger->tgtype) && trigger->tgenabled != TRIGGER_DISABLED &&
				RI_FKey_trigger_type(trigger->tgfoid) == RI_TRIGGER_PK)
				references = add_reference(references, trigger->tgconstraint);
		}
		systable_endscan(scan);

		/* go on with the next table whose rows are deleted along */
		for (relid = InvalidOid; !OidIsValid(relid) && next < list_length(references); next++)
		{
			const TtlReference *reference = list_nth(references, next);

			if (reference->action == FKCONSTR_ACTION_CASCADE)
				relid = reference->relid;
		}
	}
	table_close(rel, AccessShareLock);
	return references;
}

/* Can an index find the rows that reference one? */
static bool
has_index(const TtlReference *reference)
{
	bool		found = false;
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(reference->relid))
	{
		HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(lc)));

		for (int i = 0; HeapTupleIsValid(tuple) && i < reference->ncolumns; i++)
		{
			Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);

			found = found || (form->indisvalid && form->indkey.values[0] == reference->columns[i]);
		}
		if (HeapTupleIsValid(tuple))
			ReleaseSysCache(tuple);
	}
	return found;
}

/* The command that creates the index that a foreign key lacks; NULL if there is one. */
char *
ttl_references_missing_index(const TtlReference *reference)
{
	char	   *table = ttl_name_find(reference->relid);
	StringInfoData columns;

	if (table == NULL || has_index(reference))
		return NULL;
	initStringInfo(&columns);
	for (int i = 0; i < reference->ncolumns; i++)
	{
		char	   *name = get_attname(reference->relid, reference->columns[i], true);

		appendStringInfo(&columns, "%s%s", i > 0 ? ", " : "", quote_identifier(name ? name : ""));
	}
	return psprintf("CREATE INDEX ON %s (%s)", table, columns.data);
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
