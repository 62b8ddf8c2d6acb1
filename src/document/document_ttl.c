/*-------------------------------------------------------------------------
 *
 * document_ttl.c
 *	  The time to live that a document brings along, as in Azure Cosmos DB.
 *
 * A valid TTL is a whole number of seconds from 1 to 2147483647, or -1 for never, as a number
 * of JSON or Extended JSON, or in an integer column.  Anything else is NULL, as if it were
 * missing. document_ttl() and column_ttl() have two names, because an untyped literal could
 * not choose.
 *
 * definition/pair.c has the two indexes: expire_at() must be NULL for -1, and for all that is
 * in the main index.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/document/document_ttl.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/int.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "document/document.h"
#include "ttl_index.h"

#define TTL_NEVER (-1)

PG_FUNCTION_INFO_V1(ttl_document_ttl);
PG_FUNCTION_INFO_V1(ttl_column_ttl);
PG_FUNCTION_INFO_V1(ttl_expire_at);

static bool
is_valid_ttl(int64 ttl)
{
	return ttl == TTL_NEVER || (ttl >= 1 && ttl <= PG_INT32_MAX);
}

/* document_ttl(document jsonb, field text) returns integer */
Datum
ttl_document_ttl(PG_FUNCTION_ARGS)
{
	Jsonb	   *document = PG_GETARG_JSONB_P(0);
	text	   *field = PG_GETARG_TEXT_PP(1);
	JsonbValue	value;
	int64		ttl;

	if (!JB_ROOT_IS_OBJECT(document) ||
		getKeyJsonValueFromContainer(&document->root, VARDATA_ANY(field),
									 VARSIZE_ANY_EXHDR(field),
									 &value) == NULL ||
		!ttl_document_date_integer(&value, &ttl) || !is_valid_ttl(ttl))
		PG_RETURN_NULL();
	PG_RETURN_INT32((int32) ttl);
}

/* column_ttl(ttl bigint) returns integer */
Datum
ttl_column_ttl(PG_FUNCTION_ARGS)
{
	int64		ttl = PG_GETARG_INT64(0);

	if (!is_valid_ttl(ttl))
		PG_RETURN_NULL();
	PG_RETURN_INT32((int32) ttl);
}

/* expire_at(since timestamptz, ttl integer) returns timestamptz: infinity if out of range */
Datum
ttl_expire_at(PG_FUNCTION_ARGS)
{
	TimestampTz since = PG_GETARG_TIMESTAMPTZ(0);
	int32		ttl = PG_GETARG_INT32(1);
	TimestampTz at;

	if (!is_valid_ttl(ttl) || ttl == TTL_NEVER)
		PG_RETURN_NULL();
	if (TIMESTAMP_NOT_FINITE(since))
		PG_RETURN_TIMESTAMPTZ(since);
	if (pg_add_s64_overflow(since, (int64) ttl * USECS_PER_SEC, &at) ||
		!IS_VALID_TIMESTAMP(at))
		PG_RETURN_TIMESTAMPTZ(DT_NOEND);
	PG_RETURN_TIMESTAMPTZ(at);
}
