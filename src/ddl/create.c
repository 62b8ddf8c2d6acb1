/*-------------------------------------------------------------------------
 *
 * create.c
 *	  create_index and drop_index.
 *
 * create_index() writes the CREATE INDEX command that a user could have written
 * and runs it as the caller.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ddl/create.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "access/relation.h"
#include "catalog/index.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/scansup.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/tuplestore.h"

#include "ddl/ddl.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "state/state.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_create_index);
PG_FUNCTION_INFO_V1(ttl_create_index_command);
PG_FUNCTION_INFO_V1(ttl_drop_index);

static void
read_create_args(FunctionCallInfo fcinfo, TtlCreate *args)
{
	static const char *const names[] = {"relation", "key", "expire_after_seconds"};

	ttl_args_require(fcinfo, 3, names);
	memset(args, 0, sizeof(*args));
	args->relid = PG_GETARG_OID(0);
	args->key = ttl_args_text(fcinfo, 1);
	args->filter = ttl_args_text(fcinfo, 3);
	args->ttl_field = ttl_args_text(fcinfo, 5);
	args->name = PG_ARGISNULL(6) ? NULL : pstrdup(NameStr(*PG_GETARG_NAME(6)));
	args->change.seconds = ttl_state_read_seconds(fcinfo, 2);
	args->change.time_zone = ttl_args_text(fcinfo, 4);
	args->change.drop_partitions = ttl_args_bool(fcinfo, 7);
	args->change.boundary_rows = ttl_args_bool(fcinfo, 8);
	args->change.paused = ttl_args_bool(fcinfo, 10);
	args->change.archive_to = ttl_args_oid(fcinfo, 11);
	args->change.detach_partitions = ttl_args_bool(fcinfo, 12);
	ttl_state_check_seconds(*args->change.seconds, args->ttl_field != NULL);
}

static void
add_difference(StringInfo text, const char *name, const char *has, const char *instead)
{
	if (pg_strcasecmp(has, instead) != 0)
		appendStringInfo(text, "%s%s is %s instead of %s",
						 text->len > 0 ? ", " : "", name, has, instead);
}

/* What the one has instead of what the other has, but for the filter; an empty text for nothing. */
static char *
differences(const TtlOption *has, const TtlOption *instead)
{
	StringInfoData text;

	initStringInfo(&text);
	add_difference(&text, "expire_after_seconds", psprintf("%d", has->seconds),
				   psprintf("%d", instead->seconds));
	add_difference(&text, "time_zone", has->time_zone ? has->time_zone : "none",
				   instead->time_zone ? instead->time_zone : "none");
	add_difference(&text, "paused", has->paused ? "true" : "false",
				   instead->paused ? "true" : "false");
	add_difference(&text, "archive_to",
				   OidIsValid(has->archive_to) ? ttl_archive_name(has->archive_to) : "none",
				   OidIsValid(instead->archive_to) ? ttl_archive_name(instead->archive_to) : "none");
	add_difference(&text, "drop_expired_partitions",
				   has->drop_partitions && !has->detach_partitions ? "true" : "false",
				   instead->drop_partitions && !instead->detach_partitions ? "true" : "false");
	add_difference(&text, "detach_expired_partitions",
				   has->detach_partitions ? "true" : "false",
				   instead->detach_partitions ? "true" : "false");
	add_difference(&text, "delete_boundary_rows",
				   has->boundary_rows ? "true" : "false",
				   instead->boundary_rows ? "true" : "false");
	add_difference(&text, "bucket_max_span_seconds", psprintf("%d", has->bucket_seconds),
				   psprintf("%d", instead->bucket_seconds));
	return text.data;
}

/* What create_index() is to do. */
typedef struct Creation
{
	TtlIndex	index;			/* with the options that it is to have */
	TtlOption	has;			/* what it has, if it is there */
	bool		change;			/* it is there, and to be changed */
	List	   *commands;		/* of what is not there */
} Creation;

static bool
has_name(Oid indexrelid, const char *name)
{
	const char *present = get_rel_name(indexrelid);

	return present != NULL && strcmp(present, name) == 0;
}

/* Has the index that is there the name that was given, if one was? */
static bool
is_named(const Creation *creation, const TtlCreate *args)
{
	return args->name == NULL || has_name(creation->index.indexrelid, args->name);
}

/* Does the existing index differ?  Raises an error unless its options may be changed to fit. */
static bool
differs(const Creation *creation, const TtlCreate *args)
{
	Oid			indexrelid = creation->index.indexrelid;
	bool		named = is_named(creation, args);
	char	   *text;

	if (!creation->has.present || creation->has.problem != NULL)
		return true;
	text = differences(&creation->has, &creation->index.option);
	if (named && (text[0] == '\0' || args->or_change))
		return text[0] != '\0';
	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_OBJECT),
			 errmsg("TTL index \"%s\" on the same key has other options",
					get_rel_name(indexrelid)),
			 named ? errdetail_internal("%s.", text) :
			 errdetail("%s%sname is %s instead of %s.", text, text[0] != '\0' ? ", " : "",
					   get_rel_name(indexrelid), args->name),
			 !named ?
			 errhint("Leave name out, or rename the index: ALTER INDEX %s RENAME TO %s;",
					 ttl_name_qualified(indexrelid), quote_identifier(args->name)) :
			 creation->has.bucket_seconds == creation->index.option.bucket_seconds ?
			 errhint("Change it with ttl_index.coll_mod() or ttl_index.coll_mod_index()%s.",
					 creation->has.bucket_seconds != 0 ? "" : ", or by or_change => true") :
			 creation->has.bucket_seconds == 0 ?
			 errhint("Drop it first: DROP INDEX %s;", ttl_name_qualified(indexrelid)) :
			 errhint("The span of its partitions cannot be changed. Leave granularity and bucket_max_span_seconds out.")));
	return true;
}

/*
 * With or_change, refuses a second TTL index on the key beside one that differs in nothing
 * but where documents have a TTL of their own: rows would go by both.
 */
static void
check_other_field(Oid indexrelid, const TtlIndex *index, List *filter)
{
	Node	   *has = ttl_own_ttl_asked_for(index->option.filter);
	Node	   *asked = ttl_own_ttl_asked_for(filter);
	const char *has_name = has ? ttl_own_ttl_field_name(has, index->relid) : "none";
	const char *asked_name = asked ? ttl_own_ttl_field_name(asked, index->relid) : "none";

	if (!index->option.present)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_OBJECT),
			 errmsg("TTL index \"%s\" on the same key has another document_ttl_field",
					get_rel_name(indexrelid)),
			 errdetail("document_ttl_field is %s instead of %s.",
					   has_name ? has_name : "an expression",
					   asked_name ? asked_name : "an expression"),
			 errhint("Drop it with ttl_index.drop_index() first: this needs new indexes.")));
}

/*
 * Finds the index on the same key with the same filter that is meant: the one of the name that
 * was given, else the TTL index, else the plain one.  False where there is none.  One that could
 * only stand beside a TTL index (of a constraint, a unique one, another operator class) is
 * ignored.  An option that REINDEX CONCURRENTLY has lost counts as long as it is saved.
 */
static bool
find_existing(Relation rel, const TtlCreate *args, List *filter, TtlIndex *index)
{
	List	   *found = NIL;
	bool		named = false;
	ListCell   *lc;

	foreach(lc, ttl_key_indexes(rel, args->key))
	{
		Oid			indexrelid = lfirst_oid(lc);

		if (!ttl_state_describe(indexrelid, true, index))
			continue;
		if (index->state == TTL_UNSUITABLE_INDEX ||
			!equal(ttl_own_ttl_plain_filter(index->option.filter),
				   ttl_own_ttl_plain_filter(filter)))
			continue;
		if (equal(ttl_own_ttl_asked_for(index->option.filter),
				  ttl_own_ttl_asked_for(filter)))
		{
			if (args->name != NULL && has_name(indexrelid, args->name))
			{
				named = true;
				found = list_make1_oid(indexrelid);
			}
			else if (!named)
				found = lappend_oid(found, indexrelid);
		}
		else if (args->or_change)
			check_other_field(indexrelid, index, filter);
	}
	if (!named)
		found = ttl_key_prefer_ttl(found);
	if (found == NIL || !ttl_state_describe(linitial_oid(found), true, index))
		return false;
	/* with or without a TTL, that is an error */
	ttl_state_check_usable(index->indexrelid);
	if (!index->option.present)
		(void) ttl_saved_option_apply(index->indexrelid, &index->option);
	if (list_length(found) > 1 && (args->or_change || index->option.present))
		ereport(ERROR,
				(errcode(ERRCODE_AMBIGUOUS_PARAMETER),
				 errmsg("table \"%s\" has more than one %sindex with this key and filter",
						RelationGetRelationName(rel), index->option.present ? "TTL " : ""),
				 errhint("Say which one is meant by its name, as in name => %s, or drop the others.",
						 quote_literal_cstr(get_rel_name(index->indexrelid)))));
	return true;
}

/* Raises an error where partitions cannot be dropped, or rows not be moved, as was asked for. */
static void
check_options(Relation rel, const TtlCreate *args, const TtlKey *key)
{
	const TtlChange *change = &args->change;
	TtlIndex	index = {.relid = args->relid,.owner = rel->rd_rel->relowner};

	if ((change->drop_partitions != NULL && *change->drop_partitions) ||
		(change->detach_partitions != NULL && *change->detach_partitions))
		ttl_state_check_partitions(args->relid, key->attnum, getBaseType(key->type),
								   args->filter != NULL || args->ttl_field != NULL);
	if (change->archive_to != NULL && OidIsValid(*change->archive_to))
	{
		index.option.present = true;
		index.option.archive_to = *change->archive_to;
		ttl_archive_check(&index);
	}
}

/* A name as part of another one that can be typed without quotes. */
static char *
unquoted(const char *name)
{
	char	   *part = downcase_identifier(name, strlen(name), false, false);

	for (char *c = part; *c != '\0'; c++)
	{
		if (!IS_HIGHBIT_SET(*c) && !isalnum((unsigned char) *c))
			*c = '_';
	}
	return isdigit((unsigned char) *part) ? psprintf("_%s", part) : part;
}

/* One of the commands that make up a TTL index. */
typedef struct Command
{
	char	   *name;			/* of the index */
	char	   *table;
	char	   *sql;
} Command;

/* The CREATE INDEX command.  The condition, or NULL, is added to the user's filter. */
static Command *
create_command(Relation rel, const TtlCreate *args, const char *name,
			   const char *label, const char *key_sql, const char *condition,
			   const TtlOption *option, bool concurrently)
{
	Command    *command = palloc(sizeof(Command));
	StringInfoData sql;

	command->name = name ? pstrdup(name) :
		ChooseRelationName(unquoted(RelationGetRelationName(rel)), label, "ttl",
						   RelationGetNamespace(rel), false);
	command->table = ttl_name_qualified(args->relid);
	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE INDEX %s%s ON %s (%s) WHERE ",
					 concurrently ? "CONCURRENTLY " : "",
					 quote_identifier(command->name), command->table, key_sql);
	/* the filter may end in a comment */
	if (args->filter != NULL)
		appendStringInfo(&sql, "(%s%s) AND ", args->filter,
						 strstr(args->filter, "--") ? "\n" : "");
	if (condition != NULL)
		appendStringInfo(&sql, "%s AND ", condition);
	appendStringInfo(&sql, TTL_SCHEMA ".expire_after_seconds(%d)", option->seconds);
	if (option->time_zone != NULL)
		appendStringInfo(&sql, " AND " TTL_SCHEMA ".time_zone(%s)",
						 quote_literal_cstr(option->time_zone));
	if (option->detach_partitions)
		appendStringInfoString(&sql, " AND " TTL_SCHEMA ".detach_expired_partitions()");
	else if (option->drop_partitions)
		appendStringInfo(&sql, " AND " TTL_SCHEMA ".drop_expired_partitions(%s)",
						 option->boundary_rows ? "true" : "");
	if (option->bucket_seconds != 0)
		appendStringInfo(&sql, " AND " TTL_SCHEMA ".bucket_max_span_seconds(%d)",
						 option->bucket_seconds);
	if (option->paused)
		appendStringInfoString(&sql, " AND " TTL_SCHEMA ".paused()");
	if (OidIsValid(option->archive_to))
	{
		/* the command uses its name, so that must not change */
		LockRelationOid(option->archive_to, AccessShareLock);
		ttl_name_keep(option->archive_to);
		appendStringInfo(&sql, " AND " TTL_SCHEMA ".archive_to(%s)",
						 quote_literal_cstr(ttl_name_qualified(option->archive_to)));
	}
	command->sql = sql.data;
	return command;
}

/* The fourth argument is the time zone of coll_mod(), but the filter here. */
static void
refuse_zone_as_filter(const TtlCreate *args)
{
	/* listing zones is slow, and no zone has a blank or a sign in its name */
	if (args->filter == NULL || args->change.time_zone != NULL ||
		!isalpha((unsigned char) args->filter[0]) ||
		strpbrk(args->filter, " ().,;:'\"$=<>") != NULL ||
		ttl_time_zone_problem(args->filter) != NULL ||
		get_attnum(args->relid, args->filter) != InvalidAttrNumber)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("partial_filter_expression is the name of a time zone: %s",
					args->filter),
			 errhint("Write time_zone => %s. The fourth argument is partial_filter_expression here, and time_zone in ttl_index.coll_mod().",
					 quote_literal_cstr(args->filter))));
}

/* Checks everything and writes the commands; those of what is there are left out. */
static void
prepare_create(Relation rel, const TtlCreate *args, bool concurrently, Creation *creation)
{
	TtlKey		key;
	List	   *filter = NIL;
	TtlIndex   *index = &creation->index;
	TtlOption	own;
	bool		is_there;
	char	   *ttl = NULL;
	Oid			other = InvalidOid;
	char	   *label = unquoted(args->key);

	ttl_state_check_table(args->relid);
	ttl_key_resolve(rel, args->key, &key);
	refuse_zone_as_filter(args);
	check_options(rel, args, &key);
	if (args->ttl_field != NULL && key.type != TIMESTAMPTZOID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("document_ttl_field needs a key of type timestamp with time zone, not %s",
						format_type_be(key.type)),
				 errhint("Change the type of the column.")));
	if (args->filter != NULL)
		filter = make_ands_implicit((Expr *)
									ttl_parse_expression(rel, args->filter, true,
														 "partial_filter_expression"));
	if (args->ttl_field != NULL)
	{
		Node	   *is_null;

		ttl = ttl_own_ttl_field_sql(rel, args->ttl_field);
		is_null = ttl_parse_expression(rel, psprintf("%s IS NULL", ttl), true,
									   "document_ttl_field");
		other = ttl_own_ttl_find(args->relid, key.attnum, key.expression,
							  ttl_own_ttl_asked_for(list_make1(is_null)),
							  filter);
		filter = lappend(list_copy(filter), is_null);
	}

	memset(creation, 0, sizeof(*creation));
	is_there = find_existing(rel, args, filter, index);
	if (!is_there)
		memset(index, 0, sizeof(*index));
	index->relid = args->relid;
	/* create_time_series() without seconds */
	if (!index->option.present)
		index->option.seconds = -1;
	index->keyattnum = key.attnum;
	index->keytype = key.type;
	creation->has = index->option;
	ttl_coll_mod_merge(index, other, &args->change);
	creation->change = is_there && differs(creation, args);
	if (!is_there || (creation->change && !(args->or_change && is_named(creation, args))))
	{
		const char *name = is_there && is_named(creation, args) ? NULL : args->name;
		Command    *main = create_command(rel, args, name, label, key.sql,
										  ttl ? psprintf("%s IS NULL", ttl) : NULL,
										  &index->option, concurrently);

		/* a plain index, which is not to be changed */
		if (is_there)
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_OBJECT),
					 errmsg("index \"%s\" on the same key already exists",
							get_rel_name(index->indexrelid)),
					 index->option.bucket_seconds != 0 ?
					 errhint("Drop it if it is yours. If it belongs to an application or its migrations, create a second one, and call this again: %s;",
							 main->sql) :
					 errhint("If it is yours, ttl_index.create_index(..., or_change => true)%s makes it a TTL index. If it belongs to an application or its migrations, create a second one: %s;",
							 is_named(creation, args) ? "" : " without name", main->sql)));
		/* the index for documents with a TTL of their own may be all that is there of a pair */
		if (OidIsValid(other) && ttl_option_read(other, &own) &&
			(!own.present || own.problem != NULL || own.paused != index->option.paused ||
			 own.archive_to != index->option.archive_to))
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_OBJECT),
					 errmsg("index \"%s\", for documents with a TTL of their own, has other options",
							get_rel_name(other)),
					 errhint("Drop it first, then both are created: DROP INDEX %s;",
							 ttl_name_qualified(other))));
		creation->commands = list_make1(main);
	}
	if (!is_there || (ttl != NULL && !OidIsValid(other)))
		ttl_beside_check_new(args->relid, &key, filter);
	if (ttl == NULL || OidIsValid(other))
		return;
	own = index->option;
	own.seconds = 0;
	creation->commands = lappend(creation->commands,
								 create_command(rel, args, NULL, psprintf("%s_own", label),
												psprintf("(" TTL_SCHEMA ".expire_at(%s, %s))",
														 key.sql, ttl),
												psprintf("%s IS NOT NULL", ttl),
												&own, concurrently));
}

/* create_index_command(relation, key, ..., concurrently) returns setof text */
Datum
ttl_create_index_command(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	TtlCreate	args;
	Relation	rel;
	Creation	creation;
	bool		concurrently;
	ListCell   *lc;

	read_create_args(fcinfo, &args);
	concurrently = !PG_ARGISNULL(9) && PG_GETARG_BOOL(9);
	rel = ttl_owner_open(args.relid, AccessShareLock);
	if (concurrently && rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot create an index on partitioned table \"%s\" concurrently",
						RelationGetRelationName(rel)),
				 errhint("Create one concurrently on each partition, then one on the table, which takes them over.")));
	prepare_create(rel, &args, concurrently, &creation);
	relation_close(rel, NoLock);
	if (creation.commands == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("TTL index \"%s\" on the same key with the same options already exists",
						get_rel_name(creation.index.indexrelid))));
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	foreach(lc, creation.commands)
	{
		Datum		value = CStringGetTextDatum(((Command *) lfirst(lc))->sql);
		bool		isnull = false;

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &value,
							 &isnull);
	}
	return (Datum) 0;
}

static void
add_filter_hint(void *arg)
{
	if (geterrcode() == ERRCODE_INVALID_OBJECT_DEFINITION)
		errhint(TTL_FILTER_HINT);
}

/*
 * The lock for create_index().  To make an index it must conflict with itself; a call that
 * finds the index, or changes it, must not block writes.  So it looks first.
 */
static LOCKMODE
lock_needed(const TtlCreate *args)
{
	Relation	rel;
	Creation	creation;

	if (!args->or_change)
		return ShareRowExclusiveLock;
	rel = ttl_owner_open(args->relid, AccessShareLock);
	prepare_create(rel, args, false, &creation);
	relation_close(rel, AccessShareLock);
	return creation.commands == NIL ? ShareUpdateExclusiveLock : ShareRowExclusiveLock;
}

/* Creates what create_index() was asked for, as the caller; returns the index. */
Oid
ttl_create_index_for(const TtlCreate *args)
{
	Relation	rel;
	Creation	creation;
	Oid			main;
	Oid			taken = InvalidOid;
	ListCell   *lc;

	rel = ttl_owner_open(args->relid, lock_needed(args));
	ttl_name_keep(args->relid);
	prepare_create(rel, args, false, &creation);
	relation_close(rel, NoLock);
	main = creation.index.indexrelid;
	if (creation.change)
	{
		bool		was_ttl;
		int32		old;

		PreventCommandIfReadOnly("ttl_index.create_index()");
		was_ttl = ttl_coll_mod_apply(main, &args->change, &old);
		ereport(NOTICE,
				(was_ttl ?
				 errmsg("changed TTL index \"%s\": %s", get_rel_name(main),
						differences(&creation.index.option, &creation.has)) :
				 errmsg("made index \"%s\" a TTL index", get_rel_name(main))));
	}
	else if (creation.commands == NIL)
		ereport(NOTICE,
				(errmsg("TTL index \"%s\" with the same options already exists, skipping",
						get_rel_name(main))));
	/* with or_change, say what the name belongs to */
	if (!OidIsValid(main) && args->or_change && args->name != NULL)
		taken = get_relname_relid(args->name, get_rel_namespace(args->relid));
	if (OidIsValid(taken))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_TABLE),
				 errmsg("relation \"%s\" already exists", args->name),
				 IndexGetRelation(taken, true) == args->relid ?
				 errdetail("It is an index of the table with another key, filter or kind than asked for.") :
				 errdetail("It is no index of table \"%s\".", get_rel_name(args->relid)),
				 errhint("Rename it, or give another name.")));
	foreach(lc, creation.commands)
	{
		const Command *command = lfirst(lc);
		ErrorContextCallback callback = {error_context_stack, add_filter_hint, NULL};
		Oid			indexrelid;

		/* building the index before can have called functions that rename a schema */
		if (strcmp(command->table, ttl_name_qualified(args->relid)) != 0)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("table \"%s\" was renamed while its index was created",
							get_rel_name(args->relid))));
		error_context_stack = &callback;
		ttl_citus_run_command(command->sql);
		error_context_stack = callback.previous;
		indexrelid = get_relname_relid(command->name, get_rel_namespace(args->relid));
		if (!OidIsValid(indexrelid))
			elog(ERROR, "could not find index \"%s\"", command->name);
		if (args->or_change)
			ereport(NOTICE,
					(errmsg("created TTL index \"%s\"", get_rel_name(indexrelid))));
		if (!OidIsValid(main))
			main = indexrelid;
		/* else the event trigger has done so */
		if (client_min_messages > NOTICE)
			ttl_notice_report_due(indexrelid, true);
	}
	return main;
}

/* create_index(relation, key, expire_after_seconds, ..., or_change) returns regclass */
Datum
ttl_create_index(PG_FUNCTION_ARGS)
{
	TtlCreate	args;

	read_create_args(fcinfo, &args);
	args.or_change = !PG_ARGISNULL(9) && PG_GETARG_BOOL(9);
	PG_RETURN_OID(ttl_create_index_for(&args));
}

/* drop_index(relation, key) returns void */
Datum
ttl_drop_index(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Oid			indexrelid = ttl_key_index(relid, ttl_args_text(fcinfo, 1),
										   true);
	Oid			other = ttl_own_ttl_sibling(indexrelid);
	char	   *command;

	/* with the weaker lock, the indexes and the owner have stayed */
	LockRelationOid(relid, AccessExclusiveLock);
	ttl_name_keep(relid);
	command = psprintf("DROP INDEX %s", ttl_name_qualified(indexrelid));
	if (OidIsValid(other))
		command = psprintf("%s, %s", command, ttl_name_qualified(other));
	ttl_citus_run_command(command);
	PG_RETURN_VOID();
}
