/*-------------------------------------------------------------------------
 *
 * args.c
 *	  Arguments of SQL functions, and the columns of their results.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "definition/option.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_duration_in);

/* Raises an error if one of the first `count` arguments is NULL. */
void
ttl_args_require(FunctionCallInfo fcinfo, int count, const char *const *names)
{
	for (int i = 0; i < count; i++)
	{
		if (PG_ARGISNULL(i))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("%s must not be null", names[i])));
	}
}

/* Returns an argument of type text as a string, or NULL. */
char *
ttl_args_text(FunctionCallInfo fcinfo, int i)
{
	return PG_ARGISNULL(i) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(i));
}

/* Returns an argument of type boolean, or NULL. */
const bool *
ttl_args_bool(FunctionCallInfo fcinfo, int i)
{
	bool	   *value = palloc(sizeof(bool));

	*value = PG_GETARG_BOOL(i);
	return PG_ARGISNULL(i) ? NULL : value;
}

/* Returns an argument of type regclass, or NULL. */
const Oid  *
ttl_args_oid(FunctionCallInfo fcinfo, int i)
{
	Oid		   *value = palloc(sizeof(Oid));

	*value = PG_GETARG_OID(i);
	return PG_ARGISNULL(i) ? NULL : value;
}

/* The input of ttl_index.duration, the type of arguments that are seconds or an interval. */
Datum
ttl_duration_in(PG_FUNCTION_ARGS)
{
	char	   *text = PG_GETARG_CSTRING(0);
	TtlFunctions functions;
	Datum		span;

	if (strspn(text, "+-0123456789 ") == strlen(text))
		return DirectFunctionCall1(int8in, CStringGetDatum(text));
	span = DirectFunctionCall3(interval_in, CStringGetDatum(text),
							   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	if (!ttl_option_functions(&functions))
		elog(ERROR, "could not find the functions of extension \"%s\"", TTL_EXTENSION);
	PG_RETURN_INT64(DatumGetInt32(OidFunctionCall1(functions.seconds, span)));
}

/*
 * Raises an error if a table of the extension, or the result of one of its functions, does not
 * have the columns that the library expects.  That happens between the installation of a new
 * library and ALTER EXTENSION UPDATE.
 */
void
ttl_args_check_columns(TupleDesc desc, int expected, const char *name)
{
	if (desc->natts != expected)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the objects of extension \"%s\" do not fit its library",
						TTL_EXTENSION),
				 errdetail("%s.%s has %d columns where the library expects %d.",
						   TTL_SCHEMA, name, desc->natts, expected),
				 errhint("Restart the server if it preloads an older library. ALTER EXTENSION %s UPDATE;",
						 TTL_EXTENSION)));
}
