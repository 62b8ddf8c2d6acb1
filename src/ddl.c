/*-------------------------------------------------------------------------
 *
 * ddl.c
 *	  The functions that declare, change and drop TTL indexes.
 *
 * create_index() writes the CREATE INDEX command that a user could have written
 * and runs it as the caller.  coll_mod() and remove_ttl() change the predicate
 * of an index in place, which is allowed because the option is always true: the
 * folded predicate, by which the index was built, stays the same, and they make
 * sure of that.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ddl.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "compat.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_create_index);
PG_FUNCTION_INFO_V1(ttl_create_index_command);
PG_FUNCTION_INFO_V1(ttl_coll_mod);
PG_FUNCTION_INFO_V1(ttl_coll_mod_index);
PG_FUNCTION_INFO_V1(ttl_remove_ttl);
PG_FUNCTION_INFO_V1(ttl_remove_all_ttl);
PG_FUNCTION_INFO_V1(ttl_drop_index);

/* What create_index() and create_index_command() were asked for. */
typedef struct CreateArgs
{
	Oid			relid;
	char	   *key;
	int32		seconds;
	char	   *filter;			/* SQL text, or NULL */
	char	   *time_zone;
	char	   *ttl_field;		/* document_ttl_field */
	char	   *name;
} CreateArgs;

static void
require_arguments(FunctionCallInfo fcinfo, int count, const char *const *names)
{
	for (int i = 0; i < count; i++)
	{
		if (PG_ARGISNULL(i))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("%s must not be null", names[i])));
	}
}

static char *
text_argument(FunctionCallInfo fcinfo, int i)
{
	return PG_ARGISNULL(i) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(i));
}

static void
read_create_args(FunctionCallInfo fcinfo, CreateArgs *args)
{
	static const char *const names[] = {"relation", "key", "expire_after_seconds"};

	require_arguments(fcinfo, 3, names);
	args->relid = PG_GETARG_OID(0);
	args->key = text_argument(fcinfo, 1);
	args->seconds = PG_GETARG_INT32(2);
	args->filter = text_argument(fcinfo, 3);
	args->time_zone = text_argument(fcinfo, 4);
	args->ttl_field = text_argument(fcinfo, 5);
	args->name = PG_ARGISNULL(6) ? NULL : pstrdup(NameStr(*PG_GETARG_NAME(6)));
	ttl_check_seconds(args->seconds, args->ttl_field != NULL);
}

/* Opens the table for an index to be created on it by its owner. */
static Relation
open_table(Oid relid, LOCKMODE lockmode)
{
	Relation	rel;
	char		relkind;

	/* before the lock: nobody else may queue here */
	ttl_check_owner(relid);
	rel = relation_open(relid, lockmode);
	relkind = rel->rd_rel->relkind;
	if (relkind != RELKIND_RELATION && relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table", RelationGetRelationName(rel)),
				 errhint("Only ordinary and partitioned tables can have TTL indexes.")));
	return rel;
}

/* Are two filters the same once folded?  Folds as the table's owner. */
static bool
same_filter(Oid owner, List *a, List *b)
{
	TtlUser		saved;
	bool		same;

	ttl_become_owner(owner, &saved);
	same = equal(ttl_fold_predicate(a), ttl_fold_predicate(b));
	ttl_restore_user(&saved);
	return same;
}

static char *
qualified_name(Oid relid)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									  get_rel_name(relid));
}

static bool
is_usable(Oid indexrelid)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	Form_pg_index form;
	bool		usable;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_index) GETSTRUCT(tuple);
	usable = form->indisvalid && form->indisready && form->indislive;
	ReleaseSysCache(tuple);
	return usable;
}

static void
raise_not_usable(Oid indexrelid)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("index \"%s\" is not valid", get_rel_name(indexrelid)),
			 errhint("Drop and create it again, or REINDEX it, or attach an index of each partition.")));
}

/* An index on the same key and filter: no-op, or an error. */
static void
check_existing(Oid indexrelid, const CreateArgs *args, const TtlIndex *index)
{
	const TtlOption *option = &index->option;

	if (index->state == TTL_CONSTRAINT_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("key \"%s\" of table \"%s\" is the key of constraint index \"%s\"",
						args->key, get_rel_name(args->relid),
						get_rel_name(indexrelid)),
				 errhint("The key of a constraint does not expire.")));
	if (!is_usable(indexrelid))
		raise_not_usable(indexrelid);
	if (option->present && option->problem == NULL &&
		option->seconds == args->seconds &&
		(option->time_zone == args->time_zone ||
		 (option->time_zone && args->time_zone &&
		  pg_strcasecmp(option->time_zone, args->time_zone) == 0)))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_OBJECT),
			 option->present ?
			 errmsg("TTL index \"%s\" on the same key has other options",
					get_rel_name(indexrelid)) :
			 errmsg("index \"%s\" on the same key already exists",
					get_rel_name(indexrelid)),
			 option->present ?
			 errhint("Change it with ttl_index.coll_mod() or ttl_index.coll_mod_index().") :
			 errhint("Turn it into a TTL index with ttl_index.coll_mod() or ttl_index.coll_mod_index().")));
}

/*
 * The index on the same key with the same filter that makes the call a no-op;
 * invalid where there is none.  One that could only stand beside a TTL index
 * (a unique one, another operator class) is in nobody's way.
 */
static Oid
find_existing(Relation rel, const CreateArgs *args, List *filter)
{
	ListCell   *lc;

	foreach(lc, ttl_key_indexes(rel, args->key))
	{
		Oid			indexrelid = lfirst_oid(lc);
		TtlIndex	index;

		if (!ttl_catalog_describe(indexrelid, true, &index))
			continue;
		if (index.state == TTL_UNIQUE_INDEX || index.state == TTL_NOT_BTREE ||
			index.state == TTL_OPERATOR_CLASS ||
			!same_filter(index.owner, index.option.filter, filter))
			continue;
		check_existing(indexrelid, args, &index);
		return indexrelid;
	}
	return InvalidOid;
}

/* One of the commands that make up a TTL index. */
typedef struct Command
{
	char	   *name;			/* of the index */
	char	   *sql;
} Command;

/*
 * The CREATE INDEX command for a key, with a condition beside the user's filter
 * or NULL.  A name that is not given is chosen.
 */
static Command *
create_command(Relation rel, const CreateArgs *args, const char *name,
			   const char *label, const char *key_sql, const char *condition,
			   int32 seconds, bool concurrently)
{
	Command    *command = palloc(sizeof(Command));
	StringInfoData sql;

	command->name = name ? pstrdup(name) :
		ChooseRelationName(RelationGetRelationName(rel), label, "ttl",
						   RelationGetNamespace(rel), false);
	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE INDEX %s%s ON %s (%s) WHERE ",
					 concurrently ? "CONCURRENTLY " : "",
					 quote_identifier(command->name),
					 qualified_name(args->relid), key_sql);
	/* the filter may end in a comment */
	if (args->filter != NULL)
		appendStringInfo(&sql, "(%s%s) AND ", args->filter,
						 strstr(args->filter, "--") ? "\n" : "");
	if (condition != NULL)
		appendStringInfo(&sql, "%s AND ", condition);
	appendStringInfo(&sql, TTL_SCHEMA ".expire_after_seconds(%d)", seconds);
	if (args->time_zone != NULL)
		appendStringInfo(&sql, " AND " TTL_SCHEMA ".time_zone(%s)",
						 quote_literal_cstr(args->time_zone));
	command->sql = sql.data;
	return command;
}

/* The key as part of an index name: the column and the path. */
static char *
key_label(const char *key)
{
	char	   *label = pstrdup(key);

	for (char *c = label; *c != '\0'; c++)
	{
		if (*c == '.')
			*c = '_';
	}
	return label;
}

/*
 * Checks everything and writes the commands.  *existing is the index that is
 * there already, so that no command or that of its pair alone is left.
 */
static List *
prepare_create(Relation rel, const CreateArgs *args, bool concurrently,
			   Oid *existing)
{
	TtlKey		key;
	List	   *filter = NIL;
	List	   *commands = NIL;
	char	   *ttl = NULL;
	char	   *label = key_label(args->key);

	ttl_key_resolve(rel, args->key, &key);
	ttl_check_key(key.type, args->time_zone);
	if (args->ttl_field != NULL && key.type != TIMESTAMPTZOID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("document_ttl_field needs a key of type timestamp with time zone, not %s",
						format_type_be(key.type)),
				 errhint("Change the type of the column.")));
	if (args->filter != NULL)
		filter = make_ands_implicit((Expr *)
									ttl_parse_expression(rel, args->filter,
														 true,
														 "partial_filter_expression"));
	if (args->ttl_field != NULL)
	{
		ttl = ttl_pair_field_sql(rel, args->ttl_field);
		filter = lappend(filter,
						 ttl_parse_expression(rel, psprintf("%s IS NULL", ttl),
											  true, "document_ttl_field"));
	}

	*existing = find_existing(rel, args, filter);
	if (!OidIsValid(*existing))
		commands = lappend(commands,
						   create_command(rel, args, args->name, label, key.sql,
										  ttl ? psprintf("%s IS NULL", ttl) : NULL,
										  args->seconds, concurrently));
	if (ttl != NULL &&
		(!OidIsValid(*existing) || !OidIsValid(ttl_pair_other(*existing))))
		commands = lappend(commands,
						   create_command(rel, args, NULL,
										  psprintf("%s_own", label),
										  psprintf("(" TTL_SCHEMA ".expire_at(%s, %s))",
												   key.sql, ttl),
										  psprintf("%s IS NOT NULL", ttl),
										  0, concurrently));
	return commands;
}

/* create_index_command(relation, key, ..., concurrently) returns setof text */
Datum
ttl_create_index_command(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	CreateArgs	args;
	Relation	rel;
	Oid			existing;
	bool		concurrently;
	List	   *commands;
	ListCell   *lc;

	read_create_args(fcinfo, &args);
	concurrently = !PG_ARGISNULL(7) && PG_GETARG_BOOL(7);
	rel = open_table(args.relid, AccessShareLock);
	if (concurrently && rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot create an index on partitioned table \"%s\" concurrently",
						RelationGetRelationName(rel)),
				 errhint("Create one concurrently on each partition, then one on the table, which takes them over.")));
	commands = prepare_create(rel, &args, concurrently, &existing);
	relation_close(rel, NoLock);
	if (commands == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("TTL index \"%s\" on the same key with the same options already exists",
						get_rel_name(existing))));
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	foreach(lc, commands)
	{
		Datum		value = CStringGetTextDatum(((Command *) lfirst(lc))->sql);
		bool		isnull = false;

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &value,
							 &isnull);
	}
	return (Datum) 0;
}

/* Runs a command as the caller, and makes sure of the index that it made. */
static Oid
run_create(const CreateArgs *args, const Command *command)
{
	TtlIndex	index;
	Oid			indexrelid;

	SPI_connect();
	if (SPI_execute(command->sql, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not run: %s", command->sql);
	SPI_finish();

	indexrelid = get_relname_relid(command->name,
								   get_rel_namespace(args->relid));
	if (!ttl_catalog_describe(indexrelid, true, &index))
		elog(ERROR, "index \"%s\" was not created", command->name);
	/* the event trigger did this already, unless it is disabled */
	if (index.state != TTL_ACTIVE)
		ttl_state_raise(&index);
	ttl_memory_write(indexrelid, &index.option);
	return indexrelid;
}

/* create_index(relation, key, expire_after_seconds, ...) returns regclass */
Datum
ttl_create_index(PG_FUNCTION_ARGS)
{
	CreateArgs	args;
	Relation	rel;
	Oid			main;
	List	   *commands;
	ListCell   *lc;

	read_create_args(fcinfo, &args);
	/* conflicts with itself: two calls at once must not make two indexes */
	rel = open_table(args.relid, ShareRowExclusiveLock);
	commands = prepare_create(rel, &args, false, &main);
	relation_close(rel, NoLock);
	if (commands == NIL)
		ereport(NOTICE,
				(errmsg("TTL index \"%s\" with the same options already exists, skipping",
						get_rel_name(main))));
	foreach(lc, commands)
	{
		Oid			indexrelid = run_create(&args, lfirst(lc));

		if (!OidIsValid(main))
			main = indexrelid;
		ttl_report_due(indexrelid);
	}
	PG_RETURN_OID(main);
}

/* Locks the table, then the index, each with its partitions. */
static void
lock_tree(Oid relid, Oid indexrelid)
{
	LockRelationOid(relid, ShareUpdateExclusiveLock);
	(void) find_all_inheritors(relid, ShareUpdateExclusiveLock, NULL);
	LockRelationOid(indexrelid, ShareUpdateExclusiveLock);
	(void) find_all_inheritors(indexrelid, ShareUpdateExclusiveLock, NULL);
}

/* Locks an index whose option this user may change, and describes it. */
static void
lock_for_change(Oid indexrelid, TtlIndex *index)
{
	Oid			relid;

	ttl_check_is_index(indexrelid);
	relid = IndexGetRelation(indexrelid, false);
	ttl_check_owner(relid);
	if (IsCatalogRelationOid(relid) ||
		IsToastNamespace(get_rel_namespace(relid)))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is an index of a system catalog",
						get_rel_name(indexrelid))));
	lock_tree(relid, indexrelid);
	if (!ttl_catalog_describe(indexrelid, true, index))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("index with OID %u does not exist", indexrelid)));
}

/* Refuses a part of a TTL index, where the whole is to be changed. */
static void
check_not_part(const TtlIndex *index)
{
	Oid			whole = index->root;

	if (!OidIsValid(index->parent))
		return;
	if (get_rel_relispartition(index->indexrelid))
		whole = llast_oid(get_partition_ancestors(index->indexrelid));
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("index \"%s\" is a part of index \"%s\"",
					get_rel_name(index->indexrelid), get_rel_name(whole)),
			 errhint("Change index \"%s\".", get_rel_name(whole))));
}

/*
 * Gives an index and its partitions the option, or none.  Refuses where that
 * would change what the index holds.
 */
static void
change_option(Oid indexrelid, Oid owner, bool present, int32 seconds,
			  const char *time_zone)
{
	ListCell   *lc;

	LockRelationOid(indexrelid, ShareUpdateExclusiveLock);
	foreach(lc, find_all_inheritors(indexrelid, ShareUpdateExclusiveLock, NULL))
	{
		Oid			member = lfirst_oid(lc);
		TtlOption	option;
		List	   *old;

		if (!ttl_option_read(member, &option))
			continue;
		old = ttl_option_members(&option);
		option.present = present;
		option.seconds = seconds;
		option.time_zone = unconstify(char *, time_zone);
		if (!same_filter(owner, old, ttl_option_members(&option)))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("the change would alter what index \"%s\" holds",
							get_rel_name(member)),
					 errhint("Drop and create the index.")));
		ttl_option_write(member, &option);
	}
}

/* The seconds before, for the result; false where it was a plain index. */
static bool
coll_mod(Oid indexrelid, int32 seconds, char *time_zone, int32 *old)
{
	TtlIndex	index;
	Oid			other;
	bool		was_ttl;

	lock_for_change(indexrelid, &index);
	ttl_check_seconds(seconds,
					  ttl_pair_document_ttl(index.option.filter) != NULL);
	check_not_part(&index);
	if (!is_usable(indexrelid))
		raise_not_usable(indexrelid);
	was_ttl = index.option.present && index.option.problem == NULL;
	*old = index.option.seconds;

	/* What the new option repairs is no reason to refuse it. */
	if (TTL_STATE_IS_WRONG(index.state) &&
		index.state != TTL_TIME_ZONE_MISSING &&
		index.state != TTL_TIME_ZONE_INVALID &&
		index.state != TTL_TIME_ZONE_UNUSED)
		ttl_state_raise(&index);
	if (time_zone == NULL && index.keytype != TIMESTAMPTZOID)
		time_zone = index.option.time_zone;
	ttl_check_key(index.keytype, time_zone);
	change_option(indexrelid, index.owner, true, seconds, time_zone);
	other = ttl_pair_other(indexrelid);
	if (OidIsValid(other) && !was_ttl)
		change_option(other, index.owner, true, 0, NULL);
	if (!was_ttl || seconds < *old || *old < 0)
		ttl_report_due(indexrelid);
	return was_ttl;
}

static Datum
coll_mod_result(FunctionCallInfo fcinfo, bool was_ttl, int32 old, int32 new)
{
	TupleDesc	desc;
	Datum		values[2];
	bool		nulls[2];

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int32GetDatum(old);
	nulls[0] = !was_ttl;
	values[1] = Int32GetDatum(new);
	nulls[1] = false;
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values,
											 nulls));
}

/* The one index on a key.  With only_ttl, plain ones do not count. */
static Oid
index_by_key(Oid relid, const char *key, bool only_ttl)
{
	Relation	rel;
	List	   *found = NIL;
	ListCell   *lc;

	rel = open_table(relid, ShareUpdateExclusiveLock);
	foreach(lc, ttl_key_indexes(rel, key))
	{
		TtlOption	option;

		if (!only_ttl ||
			(ttl_option_read(lfirst_oid(lc), &option) && option.present))
			found = lappend_oid(found, lfirst_oid(lc));
	}
	relation_close(rel, NoLock);
	if (found == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("table \"%s\" has no %sindex with the only key \"%s\"",
						get_rel_name(relid), only_ttl ? "TTL " : "", key),
				 only_ttl ?
				 errhint("The view ttl_index.indexes lists the TTL indexes.") :
				 errhint("Create one with ttl_index.create_index().")));
	if (list_length(found) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_AMBIGUOUS_PARAMETER),
				 errmsg("table \"%s\" has more than one %sindex with the only key \"%s\"",
						get_rel_name(relid), only_ttl ? "TTL " : "", key),
				 only_ttl ?
				 errhint("Name the index in DROP INDEX.") :
				 errhint("Name the index with ttl_index.coll_mod_index().")));
	return linitial_oid(found);
}

/* coll_mod(relation, key, expire_after_seconds, time_zone) */
Datum
ttl_coll_mod(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"relation", "key", "expire_after_seconds"};
	int32		seconds;
	int32		old;
	bool		was_ttl;

	PreventCommandIfReadOnly("ttl_index.coll_mod()");
	require_arguments(fcinfo, 3, names);
	seconds = PG_GETARG_INT32(2);
	ttl_check_seconds(seconds, true);
	was_ttl = coll_mod(index_by_key(PG_GETARG_OID(0), text_argument(fcinfo, 1),
									false),
					   seconds, text_argument(fcinfo, 3), &old);
	return coll_mod_result(fcinfo, was_ttl, old, seconds);
}

/* coll_mod_index(index, expire_after_seconds, time_zone) */
Datum
ttl_coll_mod_index(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"index", "expire_after_seconds"};
	int32		seconds;
	int32		old;
	bool		was_ttl;

	PreventCommandIfReadOnly("ttl_index.coll_mod_index()");
	require_arguments(fcinfo, 2, names);
	seconds = PG_GETARG_INT32(1);
	was_ttl = coll_mod(PG_GETARG_OID(0), seconds, text_argument(fcinfo, 2),
					   &old);
	return coll_mod_result(fcinfo, was_ttl, old, seconds);
}

/*
 * Makes a TTL index, and the other one of its pair, plain ones, if the option can
 * be read.
 */
static void
remove_option(const TtlIndex *index, int elevel)
{
	Oid			other = ttl_pair_other(index->indexrelid);

	if (index->option.problem != NULL)
	{
		ereport(elevel,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot remove the TTL of index \"%s\": %s",
						get_rel_name(index->indexrelid),
						index->option.problem),
				 errhint("Drop the index.")));
		return;
	}
	if (OidIsValid(other))
		change_option(other, index->owner, false, 0, NULL);
	change_option(index->indexrelid, index->owner, false, 0, NULL);
}

/* remove_ttl(index) returns void */
Datum
ttl_remove_ttl(PG_FUNCTION_ARGS)
{
	Oid			indexrelid = PG_GETARG_OID(0);
	TtlIndex	index;

	PreventCommandIfReadOnly("ttl_index.remove_ttl()");
	lock_for_change(indexrelid, &index);
	/* one below a plain parent has an option of its own */
	if (index.root != indexrelid)
		check_not_part(&index);
	if (!index.option.present && !ttl_is_dependent(indexrelid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("index \"%s\" is not a TTL index",
						get_rel_name(indexrelid))));
	remove_option(&index, ERROR);
	PG_RETURN_VOID();
}

/* Is one of the indexes above this one in the list? */
static bool
is_below(Oid indexrelid, const List *indexes)
{
	ListCell   *lc;

	if (!get_rel_relispartition(indexrelid))
		return false;
	foreach(lc, get_partition_ancestors(indexrelid))
	{
		if (list_member_oid(indexes, lfirst_oid(lc)))
			return true;
	}
	return false;
}

/* remove_all_ttl() returns bigint */
Datum
ttl_remove_all_ttl(PG_FUNCTION_ARGS)
{
	List	   *dependents = ttl_catalog_dependents();
	int64		count = 0;
	ListCell   *lc;

	PreventCommandIfReadOnly("ttl_index.remove_all_ttl()");
	foreach(lc, dependents)
	{
		Oid			indexrelid = lfirst_oid(lc);
		TtlIndex	index;

		/* children go with their parent */
		if (is_below(indexrelid, dependents) ||
			!OidIsValid(IndexGetRelation(indexrelid, true)))
			continue;
		lock_for_change(indexrelid, &index);
		/* so does the other one of a pair */
		if (index.root != indexrelid || !ttl_is_dependent(indexrelid))
			continue;
		remove_option(&index, WARNING);
		count += index.option.problem == NULL ? 1 : 0;
	}
	PG_RETURN_INT64(count);
}

/* drop_index(relation, key) returns void */
Datum
ttl_drop_index(PG_FUNCTION_ARGS)
{
	Oid			indexrelid = index_by_key(PG_GETARG_OID(0),
										  text_argument(fcinfo, 1), true);
	Oid			other = ttl_pair_other(indexrelid);
	char	   *command = psprintf("DROP INDEX %s%s%s",
								   qualified_name(indexrelid),
								   OidIsValid(other) ? ", " : "",
								   OidIsValid(other) ? qualified_name(other) : "");

	SPI_connect();
	if (SPI_execute(command, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not run: %s", command);
	SPI_finish();
	PG_RETURN_VOID();
}
