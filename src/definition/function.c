/*-------------------------------------------------------------------------
 *
 * function.c
 *	  The functions of the extension by which predicates and keys are recognized.
 *
 * Everything that reads a definition compares function OIDs, so they are looked up once, and
 * again after an invalidation of functions or schemas.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/syscache.h"

#include "compat.h"
#include "definition/option.h"
#include "ttl_index.h"

/* The functions, in the order of the members of TtlFunctions. */
static const struct
{
	const char *name;
	int			nargs;
	Oid			types[3];
}			signatures[] =
{
	{"expire_after_seconds", 2, {INT4OID, INT4OID}},
	{"time_zone", 2, {TEXTOID, TEXTOID}},
	{"drop_expired_partitions", 2, {BOOLOID, BOOLOID}},
	{"bucket_max_span_seconds", 2, {INT4OID, INT4OID}},
	{"paused", 2, {BOOLOID, BOOLOID}},
	{"archive_to", 2, {REGCLASSOID, REGCLASSOID}},
	{"detach_expired_partitions", 2, {BOOLOID, BOOLOID}},
	{"unit", 2, {TEXTOID, TEXTOID}},
	{"seconds", 1, {INTERVALOID}},
	{"document_ttl", 2, {JSONBOID, TEXTOID}},
	{"column_ttl", 1, {INT8OID}},
	{"expire_at", 2, {TIMESTAMPTZOID, INT4OID}},
	{"document_date", 2, {JSONBOID, TEXTARRAYOID}},
	{"document_date_in", 3, {JSONBOID, TEXTOID, TEXTARRAYOID}}
};

StaticAssertDecl(sizeof(TtlFunctions) == lengthof(signatures) * sizeof(Oid),
				 "one signature for each function");

static uint64 definitions_version = 0;

static void
definitions_changed(Datum arg, SysCacheIdentifier cacheid, uint32 hashvalue)
{
	definitions_version++;
}

/*
 * Is this an alias of a built-in function, as option functions are?  Only a superuser can make one, so
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
 * Returns the OIDs of the functions; false if the extension is not installed.  This is not read
 * from pg_extension, because any role can lock that, and all DDL and the views would wait.
 */
bool
ttl_function_lookup(TtlFunctions *functions)
{
	static TtlFunctions known;
	static uint64 known_version = 0;
	uint64		version;
	Oid			schema;

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
	memset(functions, 0, sizeof(*functions));
	schema = get_namespace_oid(TTL_SCHEMA, true);
	if (!OidIsValid(schema))
		return false;
	for (int i = 0; i < lengthof(signatures); i++)
		((Oid *) functions)[i] =
			GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
							CStringGetDatum(signatures[i].name),
							PointerGetDatum(buildoidvector(signatures[i].types,
														   signatures[i].nargs)),
							ObjectIdGetDatum(schema));
	if (!ttl_function_is_alias(functions->expire_after_seconds) ||
		!ttl_function_is_alias(functions->time_zone))
		return false;
	known = *functions;
	known_version = version;
	return true;
}

/* The option functions, and after them seconds(), one by one. */
Oid
ttl_function_option(const TtlFunctions *functions, int i)
{
	Assert(i < TTL_REMOVED_FUNCTIONS);
	return ((const Oid *) functions)[i];
}

/* The arguments of a call by position, also named ones, up to the first omitted one. */
List *
ttl_function_arguments(const FuncExpr *call)
{
	Node	   *by_position[FUNC_MAX_ARGS + 1] = {0};
	List	   *arguments = NIL;
	ListCell   *lc;

	foreach(lc, call->args)
	{
		NamedArgExpr *named = lfirst(lc);

		if (IsA(named, NamedArgExpr))
			by_position[named->argnumber] = (Node *) named->arg;
		else
			by_position[foreach_current_index(lc)] = lfirst(lc);
	}
	for (int i = 0; by_position[i] != NULL; i++)
		arguments = lappend(arguments, by_position[i]);
	return arguments;
}
