/*-------------------------------------------------------------------------
 *
 * name.c
 *	  Names of relations, for SQL text and for messages.
 *
 * A lock on a table keeps its name, but not that of its schema: ALTER SCHEMA ... RENAME takes
 * no lock that conflicts.  Two schemas can be swapped between the lookup of a name and the
 * parsing of a command that uses it.  The caller of such a command checks by OID that it
 * changed the right relation, and otherwise raises an error.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "commands/dbcommands.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_relation_name);

/* Returns the name of a relation with its schema, as in SQL; NULL if it is gone. */
char *
ttl_name_find(Oid relid)
{
	char	   *name = get_rel_name(relid);
	char	   *schema = get_namespace_name(get_rel_namespace(relid));

	return name && schema ? quote_qualified_identifier(schema, name) : NULL;
}

/* Returns the same, or raises an error if the relation is gone. */
char *
ttl_name_qualified(Oid relid)
{
	char	   *name = ttl_name_find(relid);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("could not open relation with OID %u", relid)));
	return name;
}

/*
 * Names an index for the log: "events_ttl" of table "database.schema.events", with the
 * quotes.  Lines that a background worker logs do not name its database.
 */
char *
ttl_name_index(Oid indexrelid)
{
	Oid			relid = IndexGetRelation(indexrelid, true);
	char	   *index = get_rel_name(indexrelid);
	char	   *table = get_rel_name(relid);
	char	   *schema = get_namespace_name(get_rel_namespace(relid));

	return psprintf("\"%s\" of table \"%s.%s.%s\"", index ? index : "?",
					get_database_name(MyDatabaseId), schema ? schema : "?",
					table ? table : "?");
}

/*
 * relation_name(relation oid) returns record (schemaname, relname, relowner), all NULL if the
 * relation is gone.  Citus hides shards from queries of pg_class.
 */
Datum
ttl_relation_name(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Oid			owner = ttl_owner_of(relid);
	char	   *values[] = {
		get_namespace_name(get_rel_namespace(relid)), get_rel_name(relid),
		OidIsValid(owner) ? psprintf("%u", owner) : NULL
	};
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return HeapTupleGetDatum(BuildTupleFromCStrings(TupleDescGetAttInMetadata(desc), values));
}
