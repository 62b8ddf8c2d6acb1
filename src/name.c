/*-------------------------------------------------------------------------
 *
 * name.c
 *	  Names that cannot change while SQL text uses them.
 *
 * A lock on a table keeps its name, but not that of its schema: ALTER SCHEMA ...  RENAME takes
 * no lock that conflicts.  The owner of the schema could swap it with another one between the
 * lookup of a name and the parsing of a command with that name.
 *
 * Renaming or dropping a schema changes a key column of its row in pg_namespace.  So a KEY
 * SHARE lock on that row makes both wait until the end of the transaction, but not GRANT or
 * other work in the schema.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/name.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "commands/dbcommands.h"
#include "common/hashfn.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

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

static void
raise_gone(Oid relid)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_TABLE),
			 errmsg("could not open relation with OID %u", relid)));
}

/* Returns the name of a table for SQL text; ttl_name_keep() keeps it from changing. */
char *
ttl_name_qualified(Oid relid)
{
	char	   *name = ttl_name_find(relid);

	if (name == NULL)
		raise_gone(relid);
	return name;
}

/*
 * Names an index for the log: "events_ttl" of table "database.schema.events", with the
 * quotes.  The log of a background worker says of no line which database it is about.
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
 * Keeps the name of a relation, which is locked against renaming, until the end of the
 * transaction.  Waits if its schema is being renamed, dropped or granted on.
 */
void
ttl_name_keep(Oid relid)
{
	Oid			schema = get_rel_namespace(relid);
	Relation	rel = table_open(NamespaceRelationId, RowShareLock);
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	TM_FailureData failure;
	TM_Result	result;
	char	   *name;

	/* near the last number this reads catalogs, so no page may be locked */
	(void) GetCurrentTransactionId();
	do
	{
		HeapTuple	tuple;
		ItemPointerData tid;

		CHECK_FOR_INTERRUPTS();
		AcceptInvalidationMessages();
		tuple = SearchSysCache1(NAMESPACEOID, ObjectIdGetDatum(schema));
		if (!HeapTupleIsValid(tuple))
			raise_gone(relid);
		tid = tuple->t_self;
		ReleaseSysCache(tuple);
		result = table_tuple_lock(rel, &tid, SnapshotAny, slot,
								  GetCurrentCommandId(true), LockTupleKeyShare,
								  LockWaitBlock, TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS,
								  &failure);
		ExecClearTuple(slot);
		/* if it was updated in the meantime, lock the new version */
	} while (result == TM_Updated);
	ExecDropSingleTupleTableSlot(slot);
	table_close(rel, NoLock);
	/* it may have been dropped while its schema was locked */
	name = get_rel_name(relid);
	if (result != TM_Ok || name == NULL || get_relname_relid(name, schema) != relid)
		raise_gone(relid);
}

/*
 * Makes a name of another object's name and a suffix.  If it is too long, it is cut and a hash
 * is appended, so that names of similar objects differ.
 */
char *
ttl_name_with_suffix(const char *name, const char *suffix)
{
	int			length = strlen(name);
	int			room = NAMEDATALEN - 1 - strlen(suffix);

	if (length <= room)
		return psprintf("%s%s", name, suffix);
	return psprintf("%.*s_%08x%s",
					pg_mbcliplen(name, length, room - 9), name,
					hash_bytes((const unsigned char *) name, length), suffix);
}

/*
 * relation_name(relation oid) returns record (schemaname, relname, relowner): NULLs if it is
 * gone.  Citus hides shards from queries of pg_class.
 */
Datum
ttl_relation_name(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	TupleDesc	desc;
	Datum		values[3] = {0};
	bool		nulls[3] = {true, true, true};
	NameData	schema;
	NameData	name;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);
		char	   *nspname = get_namespace_name(form->relnamespace);

		name = form->relname;
		namestrcpy(&schema, nspname ? nspname : "");
		values[0] = NameGetDatum(&schema);
		values[1] = NameGetDatum(&name);
		values[2] = ObjectIdGetDatum(form->relowner);
		memset(nulls, false, sizeof(nulls));
		nulls[0] = nspname == NULL;
		ReleaseSysCache(tuple);
	}
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}
