/*-------------------------------------------------------------------------
 *
 * args.c
 *	  Arguments of SQL functions.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/args.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "ttl_index.h"

/* Raises an error if one of the first arguments is NULL. */
void
ttl_require_arguments(FunctionCallInfo fcinfo, int count, const char *const *names)
{
	for (int i = 0; i < count; i++)
	{
		if (PG_ARGISNULL(i))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("%s must not be null", names[i])));
	}
}

/* An argument of type text, or NULL. */
char *
ttl_text_argument(FunctionCallInfo fcinfo, int i)
{
	return PG_ARGISNULL(i) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(i));
}
