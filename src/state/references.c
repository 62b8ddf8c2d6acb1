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

#include "state/state.h"
#include "ttl_index.h"

/*
 * Foreign keys have triggers on the referenced table, which are found by an index.  An index on
 * one of the referencing columns helps if it has all rows but those with NULL: pg_get_expr() of
 * the predicate would wait for locks of the table.
 */
#define REFERENCES_QUERY \
"WITH RECURSIVE f AS (SELECT 0::oid AS oid, %u::oid AS conrelid, 'c'::\"char\" AS confdeltype, '{}'::int2[] AS conkey " \
"UNION SELECT c.oid, c.conrelid, c.confdeltype, c.conkey FROM f " \
"JOIN pg_trigger ON tgrelid = f.conrelid AND tgtype & 8 <> 0 AND tgenabled <> 'D' " \
"JOIN pg_constraint AS c ON c.oid = tgconstraint AND c.contype = 'f' WHERE f.confdeltype = 'c') " \
"SELECT oid, conrelid, confdeltype, CASE WHEN NOT EXISTS (" \
"SELECT FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid JOIN pg_am AS am ON am.oid = relam " \
"WHERE indrelid = conrelid AND indisvalid AND indkey[0] = ANY (conkey) AND amname IN ('btree', 'hash') " \
"AND (indpred IS NULL OR (indpred::text ~ '^([{]BOOLEXPR :boolop and :args [(])?[{]NULLTEST ' " \
"AND indpred::text !~ 'OPEXPR|:nulltesttype 0'))) " \
"THEN (SELECT format('CREATE INDEX ON %%s (%%s)', conrelid::regclass, string_agg(quote_ident(attname), ', ' ORDER BY n)) " \
"FROM unnest(conkey) WITH ORDINALITY AS k (attnum, n) JOIN pg_attribute AS a USING (attnum) WHERE attrelid = conrelid) END " \
"FROM f WHERE oid <> 0 ORDER BY oid"

/* Lists the foreign keys (TtlReference) that act when rows of a table are deleted. */
List *
ttl_references_to(Oid relid)
{
	List	   *references = NIL;
	FormData_pg_class form;
	ListCell   *lc;

	/* most tables are not referenced, and this is quick */
	if (!ttl_catalog_class(relid, &form) || !form.relhastriggers)
		return NIL;
	foreach(lc, ttl_select_rows(psprintf(REFERENCES_QUERY, relid), 0))
	{
		char	  **values = lfirst(lc);
		TtlReference *reference = palloc(sizeof(TtlReference));

		*reference = (TtlReference) {
			.constraint = atooid(values[0]),.relid = atooid(values[1]),.action = values[2][0],
			.missing_index = values[3]
		};
		references = lappend(references, reference);
	}
	return references;
}

/* Finds a foreign key without an index, which makes the deletes from a table slow, or NULL. */
const TtlReference *
ttl_references_slow(Oid relid)
{
	ListCell   *lc;

	foreach(lc, ttl_references_to(relid))
	{
		const TtlReference *reference = lfirst(lc);

		if (reference->missing_index != NULL)
			return reference;
	}
	return NULL;
}
