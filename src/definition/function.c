/*-------------------------------------------------------------------------
 *
 * function.c
 *	  The functions of the extension that predicates and keys are read by.
 *
 * Everything that reads a definition compares function OIDs, so they are looked up once
 * and again after whatever may have changed them.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/function.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_language.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/syscache.h"

#include "compat.h"
#include "definition/option.h"
#include "ttl_index.h"

static Oid
lookup_function(Oid schema, const char *name, int nargs, Oid type1, Oid type2)
{
	Oid			args[2] = {type1, type2};

	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
						   CStringGetDatum(name),
						   PointerGetDatum(buildoidvector(args, nargs)),
						   ObjectIdGetDatum(schema));
}

static uint64 definitions_version = 0;

static void
definitions_changed(Datum arg, SysCacheIdentifier cacheid, uint32 hashvalue)
{
	definitions_version++;
}

/*
 * Is this an alias of a built-in, as option functions are?  Only a superuser can make one, so
 * a schema of our name that somebody else made is not taken for the extension.
 */
bool
ttl_function_is_alias(Oid funcid)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	bool		is_alias;

	if (!HeapTupleIsValid(tuple))
		return false;
	is_alias = ((Form_pg_proc) GETSTRUCT(tuple))->prolang == INTERNALlanguageId;
	ReleaseSysCache(tuple);
	return is_alias;
}

/*
 * False if the extension is not installed.  This is not read from pg_extension, because any
 * role can lock that, and all DDL and the views would wait for it.
 */
static bool
look_up_functions(TtlFunctions *functions)
{
	Oid			schema = get_namespace_oid(TTL_SCHEMA, true);

	memset(functions, 0, sizeof(*functions));
	if (!OidIsValid(schema))
		return false;
	functions->expire_after_seconds =
		lookup_function(schema, "expire_after_seconds", 2, INT4OID, INT4OID);
	functions->time_zone =
		lookup_function(schema, "time_zone", 2, TEXTOID, TEXTOID);
	functions->drop_expired_partitions =
		lookup_function(schema, "drop_expired_partitions", 2, BOOLOID, BOOLOID);
	functions->bucket_max_span_seconds =
		lookup_function(schema, "bucket_max_span_seconds", 2, INT4OID, INT4OID);
	functions->paused =
		lookup_function(schema, "paused", 2, BOOLOID, BOOLOID);
	functions->archive_to =
		lookup_function(schema, "archive_to", 2, REGCLASSOID, REGCLASSOID);
	functions->detach_expired_partitions =
		lookup_function(schema, "detach_expired_partitions", 2, BOOLOID, BOOLOID);
	functions->seconds =
		lookup_function(schema, "seconds", 1, INTERVALOID, InvalidOid);
	functions->document_ttl =
		lookup_function(schema, "document_ttl", 2, JSONBOID, TEXTOID);
	functions->column_ttl =
		lookup_function(schema, "column_ttl", 1, INT8OID, InvalidOid);
	functions->expire_at =
		lookup_function(schema, "expire_at", 2, TIMESTAMPTZOID, INT4OID);
	functions->document_date =
		lookup_function(schema, "document_date", 2, JSONBOID, TEXTARRAYOID);
	functions->earliest =
		lookup_function(schema, "earliest", 1, TIMESTAMPTZARRAYOID, InvalidOid);
	return ttl_function_is_alias(functions->expire_after_seconds) &&
		ttl_function_is_alias(functions->time_zone);
}

/* Returns the OIDs of the option functions; false if the extension is not installed. */
bool
ttl_function_lookup(TtlFunctions *functions)
{
	static TtlFunctions known;
	static uint64 known_version = 0;
	uint64		version;

	if (definitions_version == 0)
	{
		CacheRegisterSyscacheCallback(PROCOID, definitions_changed, 0);
		CacheRegisterSyscacheCallback(NAMESPACEOID, definitions_changed, 0);
		definitions_version = 1;
	}
	version = definitions_version;
	if (version == known_version)
	{
		*functions = known;
		return true;
	}
	if (!look_up_functions(functions))
		return false;
	known = *functions;
	known_version = version;
	return true;
}

/* The option functions, and behind them seconds(), one by one. */
Oid
ttl_function_option(const TtlFunctions *functions, int i)
{
	const Oid	oids[TTL_REMOVED_FUNCTIONS] = {
		functions->expire_after_seconds,
		functions->time_zone,
		functions->drop_expired_partitions,
		functions->bucket_max_span_seconds,
		functions->paused,
		functions->archive_to,
		functions->detach_expired_partitions,
		functions->seconds
	};

	return oids[i];
}

/* The argument of a call at a position; NULL where it is omitted. */
static Node *
argument_at(const FuncExpr *call, int position)
{
	for (int i = 0; i < list_length(call->args); i++)
	{
		Node	   *argument = list_nth(call->args, i);
		NamedArgExpr *named = (NamedArgExpr *) argument;

		if (!IsA(argument, NamedArgExpr) && i == position)
			return argument;
		if (IsA(argument, NamedArgExpr) && named->argnumber == position)
			return (Node *) named->arg;
	}
	return NULL;
}

/* The arguments of a call by position, also named ones, up to the first omitted one. */
List *
ttl_function_arguments(const FuncExpr *call)
{
	List	   *arguments = NIL;
	Node	   *argument;

	while ((argument = argument_at(call, list_length(arguments))) != NULL)
		arguments = lappend(arguments, argument);
	return arguments;
}
