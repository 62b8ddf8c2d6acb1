/*-------------------------------------------------------------------------
 *
 * count.c
 *	  What was counted, as rows of a table.
 *
 * The counters and past hours (counters.c) are tables of such rows.  This file lists their
 * columns, and writes, reads and adds up those of each kind.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "stats/stats.h"
#include "ttl_index.h"

/* How a column is stored, and for some kinds how two rows of an index become one. */
typedef enum Kind
{
	KIND_OID,
	KIND_TEXT,
	KIND_COUNT,					/* an int64, added up */
	KIND_MILLISECONDS,			/* a double, added up */
	KIND_TIME,					/* the latest one that is not in the future */
	KIND_OTHER_TIME
} Kind;

typedef struct Column
{
	Kind		kind;
	size_t		offset;			/* in TtlCount */
} Column;

/* The columns of ttl_index.counters, in order.  The first ones are those of past_hours. */
#define PAST_HOURS_COLUMNS 16

static const Column columns[] = {
	{KIND_OID, offsetof(TtlCount, indexrelid)},
	{KIND_OID, offsetof(TtlCount, relid)},
	{KIND_OTHER_TIME, offsetof(TtlCount, hour)},
	{KIND_TEXT, offsetof(TtlCount, schemaname)},
	{KIND_TEXT, offsetof(TtlCount, relname)},
	{KIND_TEXT, offsetof(TtlCount, indexrelname)},
	{KIND_COUNT, offsetof(TtlCount, batches)},
	{KIND_COUNT, offsetof(TtlCount, deleted_documents)},
	{KIND_COUNT, offsetof(TtlCount, deleted_buckets)},
	{KIND_COUNT, offsetof(TtlCount, estimated_documents)},
	{KIND_COUNT, offsetof(TtlCount, archived_documents)},
	{KIND_COUNT, offsetof(TtlCount, archived_buckets)},
	{KIND_COUNT, offsetof(TtlCount, skipped_locked)},
	{KIND_COUNT, offsetof(TtlCount, skipped_failed)},
	{KIND_COUNT, offsetof(TtlCount, errors)},
	{KIND_MILLISECONDS, offsetof(TtlCount, delete_time)},
	{KIND_COUNT, offsetof(TtlCount, skipped_kept)},
	{KIND_COUNT, offsetof(TtlCount, visits)},
	{KIND_TIME, offsetof(TtlCount, last_deleted)},
	{KIND_TEXT, offsetof(TtlCount, last_error)},
	{KIND_TEXT, offsetof(TtlCount, last_error_sqlstate)},
	{KIND_OID, offsetof(TtlCount, last_error_role)},
	{KIND_TIME, offsetof(TtlCount, last_error_time)},
	{KIND_COUNT, offsetof(TtlCount, passes)},
	{KIND_COUNT, offsetof(TtlCount, sub_passes)},
	{KIND_TIME, offsetof(TtlCount, last_pass_start)},
	{KIND_TIME, offsetof(TtlCount, last_pass_end)},
	{KIND_TIME, offsetof(TtlCount, last_cutoff)},
	{KIND_OTHER_TIME, offsetof(TtlCount, stats_reset)},
	{KIND_COUNT, offsetof(TtlCount, lag_pauses)},
	{KIND_TIME, offsetof(TtlCount, last_call)},
	{KIND_TIME, offsetof(TtlCount, recovered)},
	{KIND_TIME, offsetof(TtlCount, last_kept)},
	{KIND_TIME, offsetof(TtlCount, approved)},
	{KIND_TIME, offsetof(TtlCount, shortened)},
};

StaticAssertDecl(lengthof(columns) == TTL_COUNTERS_COLUMNS, "all columns are listed");

/* The field of a TtlCount for a column. */
#define FIELD(type, count, column) (*(type *) ((char *) (count) + (column)->offset))

/* Finds a table of such rows; InvalidOid if the extension has just been dropped. */
Oid
ttl_count_relid(const char *name)
{
	Oid			schema = get_namespace_oid(TTL_SCHEMA, true);

	return OidIsValid(schema) ? get_relname_relid(name, schema) : InvalidOid;
}

/* Opens a table of such rows.  Raises an error if it does not fit this library. */
Relation
ttl_count_open(const char *name, LOCKMODE lockmode)
{
	Relation	rel = table_open(ttl_count_relid(name), lockmode);

	ttl_args_check_columns(RelationGetDescr(rel),
						   strcmp(name, "counters") == 0 ? TTL_COUNTERS_COLUMNS : PAST_HOURS_COLUMNS,
						   name);
	return rel;
}

/*
 * Inserts a row.  Logical decoding leaves it out: a publication FOR ALL TABLES has this table in
 * it, and a subscriber without it would stop at the first row.
 */
void
ttl_count_insert(Relation rel, const TtlCount *count)
{
	TupleDesc	desc = RelationGetDescr(rel);
	HeapTuple	tuple;
	Datum		values[MaxTupleAttributeNumber];
	bool		nulls[MaxTupleAttributeNumber] = {0};

	for (int i = 0; i < desc->natts; i++)
	{
		const Column *column = &columns[i];

		switch (column->kind)
		{
			case KIND_OID:
				values[i] = ObjectIdGetDatum(FIELD(Oid, count, column));
				break;
			case KIND_COUNT:
				values[i] = Int64GetDatum(FIELD(int64, count, column));
				break;
			case KIND_MILLISECONDS:
				values[i] = Float8GetDatum(FIELD(double, count, column));
				break;
			case KIND_TIME:
			case KIND_OTHER_TIME:
				values[i] = TimestampTzGetDatum(FIELD(TimestampTz, count, column));
				nulls[i] = FIELD(TimestampTz, count, column) == 0;
				break;
			case KIND_TEXT:
				nulls[i] = FIELD(const char *, count, column) == NULL;
				if (!nulls[i])
					values[i] = CStringGetTextDatum(FIELD(const char *, count, column));
				break;
		}
	}
	tuple = heap_form_tuple(desc, values, nulls);
	heap_insert(rel, tuple, GetCurrentCommandId(true), HEAP_INSERT_NO_LOGICAL, NULL);
	heap_freetuple(tuple);
}

/* Reads a row. */
void
ttl_count_read(HeapTuple tuple, TupleDesc desc, TtlCount *count)
{
	Datum		values[MaxTupleAttributeNumber];
	bool		nulls[MaxTupleAttributeNumber];

	memset(count, 0, sizeof(*count));
	heap_deform_tuple(tuple, desc, values, nulls);
	for (int i = 0; i < desc->natts; i++)
	{
		const Column *column = &columns[i];

		if (nulls[i])
			continue;
		switch (column->kind)
		{
			case KIND_OID:
				FIELD(Oid, count, column) = DatumGetObjectId(values[i]);
				break;
			case KIND_COUNT:
				FIELD(int64, count, column) = DatumGetInt64(values[i]);
				break;
			case KIND_MILLISECONDS:
				FIELD(double, count, column) = DatumGetFloat8(values[i]);
				break;
			case KIND_TIME:
			case KIND_OTHER_TIME:
				FIELD(TimestampTz, count, column) = DatumGetTimestampTz(values[i]);
				break;
			case KIND_TEXT:
				FIELD(const char *, count, column) = TextDatumGetCString(values[i]);
				break;
		}
	}
}

/*
 * Adds a row to the sum of its index.  A time in the future is ignored: a clock that was set
 * back since has written it, and it would hide later ones.
 */
void
ttl_count_add(TtlCount *sum, const TtlCount *row, TimestampTz now)
{
	/* the names of an hour are any that there are */
	if (sum->hour != 0 && row->indexrelname != NULL)
	{
		sum->schemaname = row->schemaname;
		sum->relname = row->relname;
		sum->indexrelname = row->indexrelname;
	}
	if (row->last_error_time != 0 && row->last_error_time <= now &&
		row->last_error_time >= sum->last_error_time)
	{
		sum->last_error = row->last_error;
		sum->last_error_sqlstate = row->last_error_sqlstate;
		sum->last_error_role = row->last_error_role;
	}
	sum->stats_reset = Max(sum->stats_reset, row->stats_reset);
	for (int i = 0; i < lengthof(columns); i++)
	{
		const Column *column = &columns[i];

		if (column->kind == KIND_COUNT)
			FIELD(int64, sum, column) += FIELD(int64, row, column);
		else if (column->kind == KIND_MILLISECONDS)
			FIELD(double, sum, column) += FIELD(double, row, column);
		else if (column->kind == KIND_TIME && FIELD(TimestampTz, row, column) <= now)
			FIELD(TimestampTz, sum, column) = Max(FIELD(TimestampTz, sum, column),
												  FIELD(TimestampTz, row, column));
	}
}
