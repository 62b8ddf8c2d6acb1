/*-------------------------------------------------------------------------
 *
 * by_value.c
 *	  Deleting rows of a table of Citus that is on several nodes, in all copies at once.
 *
 * Copies of a row have only their values in common.  So the coordinator alone deletes, by a
 * DELETE that Citus runs on all copies in one two-phase commit:
 *
 *		DELETE FROM ONLY ref WHERE (at, id) >= ('...', 1) AND (at, id) <= ('...', 99) AND ...
 *
 * A batch is a range in the order of the key and the primary key, or of the key alone if there
 * is no primary key.  Its ends are found by a query and are constants in the DELETE, so no
 * copy uses a clock or a collation.  Meanwhile writers are locked out: otherwise a writer that
 * waited would use an older snapshot on its own node than on the others.
 *
 * The lock does not keep out a transaction that has committed here and is still prepared on
 * another node, after a crash say.  A due row of it goes from all copies but that node's.
 *
 * The position in the cursor is the number of rows with that key to skip, not a tuple ID.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/by_value.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/catalog.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "nodes/makefuncs.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

#include "expire/expirer.h"
#include "state/state.h"
#include "ttl_index.h"

/* In place of a block number: all rows with the key of a position are passed over. */
#define ALL_OF_KEY MaxBlockNumber

/*
 * Is the order of a type the same on all nodes?  Types not of core, enums and domains can
 * differ; so can regclass, by OID, and money.
 */
static bool
has_common_order(Oid type)
{
	char		category;
	bool		preferred;

	switch (type)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case FLOAT4OID:
		case FLOAT8OID:
		case NUMERICOID:
		case OIDOID:
		case UUIDOID:
			return true;
	}
	if (type >= FirstGenbkiObjectId)
		return false;
	get_type_category_preferred(type, &category, &preferred);
	return strchr("BDIST", category) != NULL;
}

/* The key of an index, and the columns of the primary key if these can be put in order. */
static char *
list_columns(Relation rel, const char *key, bool *has_primary)
{
	StringInfoData list;
	Oid			constraint;
	Bitmapset  *primary = get_primary_key_attnos(RelationGetRelid(rel), true, &constraint);
	int			member = -1;

	*has_primary = primary != NULL;
	initStringInfo(&list);
	appendStringInfoString(&list, key);
	while ((member = bms_next_member(primary, member)) >= 0)
	{
		AttrNumber	attnum = member + FirstLowInvalidHeapAttributeNumber;
		Form_pg_attribute attr = TupleDescAttr(RelationGetDescr(rel), attnum - 1);

		if (!has_common_order(attr->atttypid))
		{
			*has_primary = false;
			return pstrdup(key);
		}
		appendStringInfo(&list, ", %s%s", quote_identifier(NameStr(attr->attname)),
						 OidIsValid(attr->attcollation) ? " COLLATE \"C\"" : "");
	}
	return list.data;
}

/* The values of a row that was found, as a list of constants. */
static char *
list_values(HeapTuple row)
{
	TupleDesc	desc = SPI_tuptable->tupdesc;
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 1; i <= desc->natts; i++)
	{
		char	   *value = SPI_getvalue(row, desc, i);

		if (value == NULL)
			elog(ERROR, "the key of a row that is due is NULL");
		appendStringInfo(&list, "%s%s::%s", i > 1 ? ", " : "", quote_literal_cstr(value),
						 format_type_be_qualified(SPI_gettypeid(desc, i)));
	}
	return list.data;
}

/* Takes up to so many due rows, up to this key, from a position on, and advances the position. */
static void
take_range(TtlExpirer *x, const TtlIndex *index, TtlScanPosition *position, int64 bound,
		   int max_docs)
{
	TtlBatch   *batch = x->batch;
	List	   *context = deparse_context_for(RelationGetRelationName(x->heap), index->relid);
	char	   *key = psprintf("(%s)", deparse_expression(ttl_query_key(index->indexrelid, x->heap, index->keytype),
														  context, false, false));
	char	   *table = ttl_name_qualified(index->relid);
	BlockNumber skip = position->set ? ItemPointerGetBlockNumberNoCheck(&position->tid) : 0;
	Oid			types[] = {index->keytype, index->keytype};
	Datum		values[] = {
		ttl_index_scan_datum(index->keytype, bound),
		ttl_index_scan_datum(index->keytype, position->key)
	};
	bool		has_primary;
	char	   *columns = list_columns(x->heap, key, &has_primary);
	TtlOption	own;
	char	   *filter;
	char	   *first;
	char	   *last;
	int64		last_key;
	bool		isnull;

	if (!ttl_option_read(index->indexrelid, &own))
		elog(ERROR, "cache lookup failed for index %u", index->indexrelid);
	filter = deparse_expression((Node *) make_ands_explicit(own.filter), context, false, false);
	if (SPI_execute_with_args(psprintf("SELECT %s FROM ONLY %s WHERE %s <= $1 AND %s %s AND (%s) "
									   "ORDER BY %s OFFSET %u LIMIT %d",
									   columns, table, key, key,
									   !position->set ? "IS NOT NULL" : skip == ALL_OF_KEY ? "> $2" : ">= $2",
									   filter, columns, skip == ALL_OF_KEY ? 0 : skip, max_docs),
							  position->set ? 2 : 1, types, values, NULL, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not select what is due by index %u", index->indexrelid);
	batch->candidates = batch->live = SPI_processed;
	batch->exhausted = batch->live < max_docs;
	batch->from_before = true;
	if (batch->live == 0)
		return;
	first = list_values(SPI_tuptable->vals[0]);
	last = list_values(SPI_tuptable->vals[batch->live - 1]);
	last_key = ttl_index_scan_key(index->keytype,
								  SPI_getbinval(SPI_tuptable->vals[batch->live - 1],
												SPI_tuptable->tupdesc, 1, &isnull));
	if (position->key != last_key)
		skip = 0;
	position->set = true;
	position->key = last_key;
	/* where the batch fails */
	ItemPointerSet(&position->tid, has_primary ? skip + 1 : ALL_OF_KEY, FirstOffsetNumber);
	batch->locks_copies = true;
	ttl_citus_lock_copies(index->relid);
	batch->locks_copies = false;
	if (RelationIsLogicallyLogged(x->heap))
		ttl_announce_to_wal(x->root, NULL, NULL);
	if (SPI_execute(psprintf("DELETE FROM ONLY %s WHERE (%s) >= (%s) AND (%s) <= (%s) AND (%s)",
							 table, columns, first, columns, last, filter),
					false, 0) != SPI_OK_DELETE)
		elog(ERROR, "could not delete what is due by index %u", index->indexrelid);
	/* a schema may have been renamed meanwhile, and another table lost the rows */
	if (strcmp(table, ttl_name_qualified(index->relid)) != 0)
		elog(ERROR, "table %s was renamed", table);
	batch->deleted = SPI_processed;
	ItemPointerSet(&position->tid, skip, FirstOffsetNumber);
}

/* Takes up to so many rows from the cursor on. */
void
ttl_by_value_take(TtlExpirer *x, const TtlIndex *index, int max_docs)
{
	static const char *const formats[][2] = {
		{"datestyle", "ISO, YMD"}, {"intervalstyle", "postgres"}, {"extra_float_digits", "1"},
		{"array_nulls", "on"}, {"xmloption", "content"}
	};
	TtlBatch   *batch = x->batch;
	TtlCursor  *cursor = &batch->cursor;
	bool		forward = cursor->phase != TTL_CATCH_UP;
	int64		bound = x->cutoff->sure;

	batch->by_value = batch->elsewhere = true;

	/*
	 * Forced row security applies on the other nodes, where they would keep
	 * rows that are deleted here.
	 */
	if (x->heap->rd_rel->relrowsecurity && x->heap->rd_rel->relforcerowsecurity &&
		!has_bypassrls_privilege(index->owner))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("row security of table \"%s\", which has copies on other nodes, is forced for its owner",
						RelationGetRelationName(x->heap)),
				 errhint("ALTER TABLE ... NO FORCE ROW LEVEL SECURITY.")));
	/* each row that is due from now on is behind the position */
	ttl_cursor_pull_back(cursor, bound);
	if (!forward)
		bound = Min(bound, cursor->forward.key);
	/* those before it that failed are tried again by a round that is thorough */
	batch->exhausted = !forward && !cursor->thorough && cursor->nfailures > 0;
	if (batch->exhausted)
		return;
	/* values are written as each node reads them, whatever is set there */
	for (int i = 0; i < lengthof(formats); i++)
		ttl_settings_set(formats[i][0], formats[i][1]);
	SPI_connect();
	take_range(x, index, forward ? &cursor->forward : &cursor->catch_up, bound, max_docs);
	SPI_finish();
}
