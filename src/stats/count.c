/*-------------------------------------------------------------------------
 *
 * count.c
 *	  What was counted, as rows of a table.
 *
 * The counters (counters.c) and past hours (history.c) are tables of such rows.  Each lists
 * its columns, in order.  This file writes, reads and adds up the columns of each kind.
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
ttl_count_open(const char *name, int ncolumns, LOCKMODE lockmode)
{
	Relation	rel = table_open(ttl_count_relid(name), lockmode);

	ttl_args_check_columns(RelationGetDescr(rel), ncolumns, name);
	return rel;
}

/* Sets the value of a column.  Returns false for NULL: no time, or no text. */
static bool
column_datum(const TtlCount *count, const TtlCountColumn *column, Datum *datum)
{
	const char *text;

	switch (column->kind)
	{
		case TTL_COUNT_OID:
		case TTL_COUNT_ERROR_OID:
			*datum = ObjectIdGetDatum(FIELD(Oid, count, column));
			return true;
		case TTL_COUNT_COUNT:
			*datum = Int64GetDatum(FIELD(int64, count, column));
			return true;
		case TTL_COUNT_MILLISECONDS:
			*datum = Float8GetDatum(FIELD(double, count, column));
			return true;
		case TTL_COUNT_HOUR:
		case TTL_COUNT_TIME:
		case TTL_COUNT_RESET_TIME:
			*datum = TimestampTzGetDatum(FIELD(TimestampTz, count, column));
			return FIELD(TimestampTz, count, column) != 0;
		case TTL_COUNT_NAME:
		case TTL_COUNT_ERROR_TEXT:
			text = FIELD(const char *, count, column);
			if (text != NULL)
				*datum = CStringGetTextDatum(text);
			return text != NULL;
	}
	return false;
}

/*
 * Inserts a row into a table that has these columns.  Logical decoding leaves it out: a
 * publication FOR ALL TABLES has this table in it, and a subscriber without it would stop at
 * the first row.
 */
void
ttl_count_insert(Relation rel, const TtlCount *count, const TtlCountColumn *columns)
{
	TupleDesc	desc = RelationGetDescr(rel);
	HeapTuple	tuple;
	Datum		values[MaxTupleAttributeNumber];
	bool		nulls[MaxTupleAttributeNumber];

	for (int i = 0; i < desc->natts; i++)
	{
		values[i] = (Datum) 0;
		nulls[i] = !column_datum(count, &columns[i], &values[i]);
	}
	tuple = heap_form_tuple(desc, values, nulls);
	heap_insert(rel, tuple, GetCurrentCommandId(true), HEAP_INSERT_NO_LOGICAL, NULL);
	heap_freetuple(tuple);
}

/* Reads a row of a table that has these columns. */
void
ttl_count_read(HeapTuple tuple, const TtlCountColumn *columns, TupleDesc desc,
			   TtlCount *count)
{
	Datum		values[MaxTupleAttributeNumber];
	bool		nulls[MaxTupleAttributeNumber];

	memset(count, 0, sizeof(*count));
	heap_deform_tuple(tuple, desc, values, nulls);
	for (int i = 0; i < desc->natts; i++)
	{
		const TtlCountColumn *column = &columns[i];

		if (nulls[i])
			continue;
		switch (column->kind)
		{
			case TTL_COUNT_OID:
			case TTL_COUNT_ERROR_OID:
				FIELD(Oid, count, column) = DatumGetObjectId(values[i]);
				break;
			case TTL_COUNT_COUNT:
				FIELD(int64, count, column) = DatumGetInt64(values[i]);
				break;
			case TTL_COUNT_MILLISECONDS:
				FIELD(double, count, column) = DatumGetFloat8(values[i]);
				break;
			case TTL_COUNT_HOUR:
			case TTL_COUNT_TIME:
			case TTL_COUNT_RESET_TIME:
				FIELD(TimestampTz, count, column) = DatumGetTimestampTz(values[i]);
				break;
			case TTL_COUNT_NAME:
			case TTL_COUNT_ERROR_TEXT:
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
ttl_count_add(TtlCount *sum, const TtlCount *row, const TtlCountColumn *columns,
			  int ncolumns, TimestampTz now)
{
	bool		has_last_error = row->last_error_time != 0 &&
	row->last_error_time <= now &&
	row->last_error_time >= sum->last_error_time;

	for (int i = 0; i < ncolumns; i++)
	{
		const TtlCountColumn *column = &columns[i];

		switch (column->kind)
		{
			case TTL_COUNT_OID:
			case TTL_COUNT_HOUR:
				break;
			case TTL_COUNT_NAME:
				if (sum->hour != 0 && FIELD(const char *, row, column) != NULL)
					FIELD(const char *, sum, column) = FIELD(const char *, row, column);
				break;
			case TTL_COUNT_COUNT:
				FIELD(int64, sum, column) += FIELD(int64, row, column);
				break;
			case TTL_COUNT_MILLISECONDS:
				FIELD(double, sum, column) += FIELD(double, row, column);
				break;
			case TTL_COUNT_TIME:
			case TTL_COUNT_RESET_TIME:
				if (column->kind == TTL_COUNT_RESET_TIME ||
					FIELD(TimestampTz, row, column) <= now)
					FIELD(TimestampTz, sum, column) = Max(FIELD(TimestampTz, sum, column),
														  FIELD(TimestampTz, row, column));
				break;
			case TTL_COUNT_ERROR_TEXT:
				if (has_last_error)
					FIELD(const char *, sum, column) = FIELD(const char *, row, column);
				break;
			case TTL_COUNT_ERROR_OID:
				if (has_last_error)
					FIELD(Oid, sum, column) = FIELD(Oid, row, column);
				break;
		}
	}
}
