/*-------------------------------------------------------------------------
 *
 * last_modified.c
 *	  A column that holds the time of a row's last change, as Azure Cosmos DB's
 *	  _ts does.
 *
 * track_last_modified() gives the table an ordinary column and an ordinary
 * trigger, which pg_dump dumps and untrack_last_modified() drops.  The trigger
 * overwrites what the client wrote.  PostgreSQL fires triggers in the order of
 * their names, and the name of this one begins with the last character of ASCII,
 * so that no other trigger has the last word, unless its owner means it to.
 *
 * The time is the clock's when the row is written, not the beginning of the
 * transaction: a row must not be born due because its transaction took long.
 * Rows that a subscriber of logical replication gets keep their time, since
 * triggers do not fire for them.
 *
 * The rows that are there when the column is added get the time of that, for
 * then they were last known to be what they are.  Without it they would never
 * expire.
 *
 * The trigger knows its column by name, as an argument: the numbers of a column
 * differ between partitions.  So after a rename it raises an error that says
 * what to do, rather than leave rows without a time.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ddl/last_modified.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/attnum.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/sysattr.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_partitioned_table.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/value.h"
#include "optimizer/optimizer.h"
#include "parser/parse_func.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "compute.h"
#include "definition/citus.h"
#include "leftover.h"
#include "ttl_index.h"

#define TRIGGER_FUNCTION "set_last_modified"
#define TRIGGER_PREFIX "~ttl_index_"

PG_FUNCTION_INFO_V1(ttl_set_last_modified);
TTL_FUNCTION(ttl_track_last_modified);
TTL_FUNCTION(ttl_untrack_last_modified);

static void
check_called_by_trigger(FunctionCallInfo fcinfo)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" was not called by trigger manager",
						TRIGGER_FUNCTION)));
	if (!TRIGGER_FIRED_BEFORE(trigger->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
		TRIGGER_FIRED_BY_DELETE(trigger->tg_event) ||
		trigger->tg_trigger->tgnargs != 1)
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" must be fired before INSERT or UPDATE for each row, with the name of a column",
						TRIGGER_FUNCTION),
				 errhint("Call ttl_index.track_last_modified() to create the trigger.")));
}

/* The column that the trigger is to set. */
static AttrNumber
trigger_column(const TriggerData *trigger)
{
	Relation	rel = trigger->tg_relation;
	const char *name = trigger->tg_trigger->tgargs[0];
	int			attnum = SPI_fnumber(RelationGetDescr(rel), name);

	if (attnum <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist",
						name, RelationGetRelationName(rel)),
				 errdetail("Trigger \"%s\" sets this column to the time of the last change.",
						   trigger->tg_trigger->tgname),
				 errhint("Call ttl_index.untrack_last_modified() with this name; where the column was renamed, then ttl_index.track_last_modified() with the new one.")));
	if (SPI_gettypeid(RelationGetDescr(rel), attnum) != TIMESTAMPTZOID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of relation \"%s\" is not of type timestamp with time zone",
						name, RelationGetRelationName(rel)),
				 errhint("Call ttl_index.untrack_last_modified(), or change the type of the column.")));
	return attnum;
}

/* set_last_modified('column') returns trigger */
Datum
ttl_set_last_modified(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	TupleDesc	desc;
	int			attnum;
	int32		typmod;
	Datum		now;
	bool		isnull = false;

	check_called_by_trigger(fcinfo);
	desc = RelationGetDescr(trigger->tg_relation);
	attnum = trigger_column(trigger);
	now = TimestampTzGetDatum(GetCurrentTimestamp());
	typmod = TupleDescAttr(desc, attnum - 1)->atttypmod;
	if (typmod >= 0)
		now = DirectFunctionCall2(timestamptz_scale, now, Int32GetDatum(typmod));

	return PointerGetDatum(heap_modify_tuple_by_cols(TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
													 trigger->tg_newtuple :
													 trigger->tg_trigtuple,
													 desc, 1, &attnum, &now,
													 &isnull));
}

/* A trigger such as track_last_modified() creates, not one made for less. */
static bool
sets_always(const Trigger *trigger)
{
	return trigger->tgtype == (TRIGGER_TYPE_ROW | TRIGGER_TYPE_BEFORE |
							   TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE) &&
		trigger->tgnattr == 0 && trigger->tgqual == NULL;
}

/*
 * The name of the trigger that sets this column, or NULL.  It is a copy: what the relation
 * cache has of triggers lasts no longer than the next message about the table, which comes
 * with any lock.
 */
static char *
find_trigger(Relation rel, const char *column, bool *disabled)
{
	Oid			function = LookupFuncName(list_make2(makeString(TTL_SCHEMA),
													 makeString(TRIGGER_FUNCTION)),
										  0, NULL, false);

	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		Trigger    *trigger = &rel->trigdesc->triggers[i];

		if (trigger->tgfoid == function && sets_always(trigger) &&
			trigger->tgnargs == 1 && strcmp(trigger->tgargs[0], column) == 0)
		{
			*disabled = trigger->tgenabled == TRIGGER_DISABLED;
			return pstrdup(trigger->tgname);
		}
	}
	return NULL;
}

/*
 * Is this the key, or part of it, by which the table is partitioned?  Reads the
 * catalog: the relation cache would compute the key.
 */
static bool
partitions_by(Oid relid, const char *column)
{
	AttrNumber	attnum = get_attnum(relid, column);
	HeapTuple	tuple = SearchSysCache1(PARTRELID, ObjectIdGetDatum(relid));
	Form_pg_partitioned_table form;
	Bitmapset  *attnums = NULL;
	Datum		datum;
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_partitioned_table) GETSTRUCT(tuple);
	for (int i = 0; i < form->partnatts; i++)
		attnums = bms_add_member(attnums,
								 form->partattrs.values[i] - FirstLowInvalidHeapAttributeNumber);
	datum = SysCacheGetAttr(PARTRELID, tuple,
							Anum_pg_partitioned_table_partexprs, &isnull);
	if (!isnull)
		pull_varattnos(stringToNode(TextDatumGetCString(datum)), 1, &attnums);
	ReleaseSysCache(tuple);
	return bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, attnums);
}

/*
 * Refuses what the trigger cannot set.  A row cannot change its partition in a
 * trigger, so the column cannot be a key on any level of partitions.
 */
static void
check_column(Relation rel, AttrNumber attnum)
{
	Form_pg_attribute attr = TupleDescAttr(RelationGetDescr(rel), attnum - 1);
	Oid			relid = RelationGetRelid(rel);
	const char *column = NameStr(attr->attname);
	List	   *tree = find_all_inheritors(relid, AccessShareLock, NULL);
	ListCell   *lc;

	if (attr->atttypid != TIMESTAMPTZOID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of relation \"%s\" is of type %s",
						column, RelationGetRelationName(rel),
						format_type_be(attr->atttypid)),
				 errhint("The time of the last change needs a column of type timestamp with time zone. Give the name of one that does not exist to have it added.")));
	if (attr->attgenerated != '\0')
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("column \"%s\" of relation \"%s\" is a generated column",
						column, RelationGetRelationName(rel)),
				 errhint("Give the name of another column, or of one that does not exist to have it added.")));

	if (rel->rd_rel->relispartition)
		tree = list_concat(tree, get_partition_ancestors(relid));
	foreach(lc, tree)
	{
		if (partitions_by(lfirst_oid(lc), column))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("table \"%s\" is partitioned by column \"%s\"",
							get_rel_name(lfirst_oid(lc)), column),
					 errhint("A trigger cannot move a row to another partition. Give the name of another column.")));
	}
}

/*
 * Refuses where a partition is another role's.  Core computes its partition key, to give it the
 * trigger, as the owner of the table, and where that is a superuser, it asks for no rights.
 */
static void
check_partitions(Relation rel)
{
	ListCell   *lc;

	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return;
	foreach(lc, find_all_inheritors(RelationGetRelid(rel), AccessShareLock, NULL))
	{
		if (!has_privs_of_role(ttl_owner_of(lfirst_oid(lc)), rel->rd_rel->relowner))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("partition \"%s\" of table \"%s\" belongs to another role",
							get_rel_name(lfirst_oid(lc)), RelationGetRelationName(rel)),
					 errhint("Give both the same owner with ALTER TABLE ... OWNER TO.")));
	}
}

static void
run_work(void *arg)
{
	ttl_compute_command(arg);
}

/*
 * Runs a command as the table's owner: core computes the partition key when it
 * gives a trigger to partitions.
 */
static void
run(Oid owner, char *command)
{
	ttl_owner_do(owner, run_work, command);
}

/* Refuses where the column is missing and cannot be added. */
static void
check_can_add(Relation rel, const char *column)
{
	Oid			root;

	if (column[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("column_name must not be empty")));
	if (!rel->rd_rel->relispartition)
		return;
	root = ttl_inherit_top(RelationGetRelid(rel));
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("cannot add column \"%s\" to partition \"%s\"",
					column, RelationGetRelationName(rel)),
			 root != RelationGetRelid(rel) ?
			 errhint("Track the column in table \"%s\".", get_rel_name(root)) :
			 errhint("Detach it to the end, with ALTER TABLE ... DETACH PARTITION ... FINALIZE.")));
}

/* Refuses what Citus would refuse, in its own words and after the column was added. */
static void
check_allows_triggers(Relation rel)
{
	const char *unsafe = GetConfigOption("citus.enable_unsafe_triggers", true, false);

	if (ttl_citus_kind(RelationGetRelid(rel)) != TTL_CITUS_NONE &&
		(unsafe == NULL || strcmp(unsafe, "on") != 0))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot track the last change of rows of table \"%s\"",
						RelationGetRelationName(rel)),
				 errdetail("Citus allows no triggers on its tables."),
				 errhint("Let the column have DEFAULT now(), and set it in each UPDATE.")));
}

/*
 * Makes sure of column and trigger, in the table that is locked; the relcache
 * entry must not be open when ALTER TABLE runs.
 */
static void
track(Relation rel, const char *column)
{
	char	   *table;
	AttrNumber	attnum = get_attnum(RelationGetRelid(rel), column);
	bool		disabled = false;
	char	   *trigger = find_trigger(rel, column, &disabled);
	Oid			owner = rel->rd_rel->relowner;

	check_allows_triggers(rel);
	check_partitions(rel);
	if (attnum < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
				 errmsg("\"%s\" is a system column", column)));
	if (attnum == InvalidAttrNumber)
		check_can_add(rel, column);
	else
		check_column(rel, attnum);
	if (attnum > 0 && trigger != NULL && !disabled)
		ereport(NOTICE,
				(errmsg("column \"%s\" of relation \"%s\" is already tracked, skipping",
						column, RelationGetRelationName(rel))));
	ttl_name_keep(RelationGetRelid(rel));
	table = ttl_name_qualified(RelationGetRelid(rel));
	relation_close(rel, NoLock);

	if (attnum == InvalidAttrNumber)
		run(owner,
			psprintf("ALTER TABLE %s ADD COLUMN %s pg_catalog.timestamptz DEFAULT pg_catalog.now()",
					 table, quote_identifier(column)));
	if (disabled)
		run(owner,
			psprintf("ALTER TABLE %s ENABLE TRIGGER %s",
					 table, quote_identifier(trigger)));
	if (trigger == NULL)
		run(owner,
			psprintf("CREATE TRIGGER %s BEFORE INSERT OR UPDATE ON %s "
					 "FOR EACH ROW EXECUTE FUNCTION " TTL_SCHEMA "." TRIGGER_FUNCTION "(%s)",
					 quote_identifier(ttl_name_with_suffix(psprintf(TRIGGER_PREFIX "%s", column), "")),
					 table,
					 quote_literal_cstr(column)));
}

/* track_last_modified(relation regclass, column_name name) returns void */
static Datum
ttl_track_last_modified_called(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	const char *column = NameStr(*PG_GETARG_NAME(1));
	bool		add = get_attnum(relid, column) == InvalidAttrNumber;

	/* what ALTER TABLE or CREATE TRIGGER will take */
	track(ttl_owner_open(relid, add ? AccessExclusiveLock : ShareRowExclusiveLock),
		  column);
	PG_RETURN_VOID();
}

/* untrack_last_modified(relation regclass, column_name name) returns void */
static Datum
ttl_untrack_last_modified_called(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	const char *column = NameStr(*PG_GETARG_NAME(1));
	Relation	rel = ttl_owner_open(relid, AccessExclusiveLock);
	bool		disabled;
	char	   *trigger = find_trigger(rel, column, &disabled);
	Oid			owner = rel->rd_rel->relowner;
	char	   *command;

	if (trigger == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("column \"%s\" of relation \"%s\" is not tracked",
						column, RelationGetRelationName(rel)),
				 errhint("Give the name that was given to ttl_index.track_last_modified().")));
	ttl_name_keep(relid);
	command = psprintf("DROP TRIGGER %s ON %s",
					   quote_identifier(trigger),
					   ttl_name_qualified(relid));
	relation_close(rel, NoLock);
	run(owner, command);
	PG_RETURN_VOID();
}
