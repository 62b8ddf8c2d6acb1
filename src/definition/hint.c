/*-------------------------------------------------------------------------
 *
 * hint.c
 *	  Hints for keys that hold no dates: the statement that works.
 *
 * Dates are often kept as numbers, text or UUIDs.  A TTL index can be on an expression that
 * makes a date of them, but which expression is right, and immutable, is not obvious.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/hint.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "parser/scansup.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "definition/key.h"
#include "ttl_index.h"

#define OPTION "ttl_index.expire_after_seconds(...)"

/* CREATE INDEX on an expression over the column of a table. */
static char *
command(const char *table, const char *expression, const char *filter)
{
	return psprintf("CREATE INDEX ON %s (%s) WHERE %s%s", table, expression,
					filter, OPTION);
}

/* What to do about a key that names no column. */
char *
ttl_hint_key_name(Oid relid, const char *name)
{
	char	   *lower = downcase_identifier(name, strlen(name), false, false);

	if (strpbrk(name, "(:") != NULL)
		return psprintf("Index the expression: %s. Then ttl_index.coll_mod() changes its seconds.",
						command(ttl_name_qualified(relid), psprintf("(%s)", name), ""));
	if (get_attnum(relid, lower) > 0)
		return psprintf("There is a column \"%s\": a key is written as the name is stored.",
						lower);
	return pstrdup("The key of a TTL index is a column, or a jsonb column and a path: 'doc.createdAt'. For an expression, use CREATE INDEX.");
}

/* What to do about a column (invalid: an expression) of a type that is no date. */
char *
ttl_hint_key_type(Oid relid, AttrNumber attnum, Oid type)
{
	char	   *name = attnum != InvalidAttrNumber ? get_attname(relid, attnum, true) : NULL;
	const char *column = name ? quote_identifier(name) : "...";
	char	   *found = ttl_name_find(relid);
	const char *table = found ? found : "...";
	char	   *seconds = command(table, psprintf("to_timestamp(%s)", column), "");

	switch (type)
	{
		case INT4OID:
			return psprintf("Index the date that the seconds since 1970 stand for: %s.", seconds);
		case INT8OID:
		case NUMERICOID:
		case FLOAT8OID:
			return psprintf("Index the date that the number stands for. Milliseconds since 1970: %s. Seconds: %s.",
							command(table, psprintf("to_timestamp(%s / 1000.0)", column), ""),
							seconds);
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
			return psprintf("Index an immutable function of it. A cast is none, as it depends on settings. "
							"For RFC 3339 text with an offset: "
							"CREATE FUNCTION text_date(text) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE "
							"RETURN ttl_index.document_date(jsonb_build_object('date', $1), 'date'); %s.",
							command(table, psprintf("text_date(%s)", column), ""));
		case UUIDOID:
			return psprintf("Index the date that a UUID of version 7 begins with: %s.",
							command(table, UUID_V7_DATE(column), UUID_V7_FILTER(column)));
		case JSONBOID:
			return psprintf("Index a date in the documents: %s.",
							command(table, psprintf("ttl_index.document_date(%s, 'createdAt')",
													column), ""));
		case JSONOID:
			return psprintf("Index a date in the documents: %s. Or make the column jsonb: ALTER TABLE %s ALTER COLUMN %s TYPE jsonb.",
							command(table, psprintf("ttl_index.document_date(%s::jsonb, 'createdAt')",
													column), ""),
							table, column);
		case DATEARRAYOID:
		case TIMESTAMPARRAYOID:
			return psprintf("Make it an array of instants: ALTER TABLE %s ALTER COLUMN %s TYPE timestamptz[]. "
							"Then index ttl_index.earliest(%s).",
							table, column, column);
		case TSTZRANGEOID:
			return psprintf("Index the end of the range: %s.",
							command(table, psprintf("upper(%s)", column), ""));
		default:
			return pstrdup("The key must be of type timestamp with time zone, or an expression that is; "
						   "or of type timestamp or date, with a time zone.");
	}
}
