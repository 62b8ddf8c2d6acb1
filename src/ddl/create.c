/*-------------------------------------------------------------------------
 *
 * create.c
 *	  create_index() and drop_index().
 *
 * create_index() writes the CREATE INDEX command that a user could have written, and runs it
 * as the caller.
 *
 * Copyright (c) 2026, ttl_index contributors
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
#include "utils/ruleutils.h"
#include "utils/tuplestore.h"

#include "ddl/ddl.h"
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
	args->change.unit = ttl_coll_mod_read_unit(fcinfo, 13);
	ttl_state_check_seconds(*args->change.seconds, args->ttl_field != NULL);
}

/* AND members of a predicate as SQL text that means the same with any search_path. */
static char *
members_sql(List *members)
{
	int			level = NewGUCNestLevel();
	StringInfoData sql;
	ListCell   *lc;

	ttl_settings_set("search_path", "pg_catalog");
	initStringInfo(&sql);
	foreach(lc, members)
		appendStringInfo(&sql, "%s%s", sql.len > 0 ? " AND " : "",
						 deparse_expression(lfirst(lc), NIL, false, false));
	AtEOXact_GUC(false, level);
	return members == NIL ? "nothing" : sql.data;
}

/* The option as SQL text, without the filter. */
char *
ttl_create_option_sql(const TtlOption *option)
{
	TtlOption	alone = *option;

	alone.filter = NIL;
	return members_sql(ttl_option_members(&alone));
}

/* Says in which options one index differs from another one; NULL if they are the same. */
static char *
differences(const TtlOption *has, const TtlOption *instead)
{
	List	   *lacks = list_difference(ttl_option_members(instead), ttl_option_members(has));
	List	   *more = list_difference(ttl_option_members(has), ttl_option_members(instead));

	if (lacks == NIL && more == NIL)
		return NULL;
	return psprintf("It has %s instead of %s.", members_sql(more), members_sql(lacks));
}

/* What create_index() is to do. */
typedef struct Creation
{
	TtlIndex	index;			/* with the options that it is to have */
	TtlOption	has;			/* what it has, if it exists */
	TtlChange	options;		/* what to set, without what is in the key */
	bool		change;			/* it exists, and its options are to be changed */
	List	   *commands;		/* these create what does not exist */
} Creation;

/* The call that gives an index these options. */
static char *
change_call(const char *index, int32 seconds, const TtlChange *change)
{
	const struct
	{
		const char *name;
		const bool *value;
	}			options[] = {
		{"drop_expired_partitions", change->drop_partitions},
		{"detach_expired_partitions", change->detach_partitions},
		{"delete_boundary_rows", change->boundary_rows},
		{"paused", change->paused}
	};
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT * FROM ttl_index.coll_mod_index(%s, %d",
					 quote_literal_cstr(index), seconds);
	if (change->time_zone != NULL)
		appendStringInfo(&sql, ", time_zone => %s", quote_literal_cstr(change->time_zone));
	if (change->unit != TTL_UNIT_NONE)
		appendStringInfo(&sql, ", unit => '%s'", ttl_keytype_units[change->unit]);
	for (int i = 0; i < lengthof(options); i++)
	{
		if (options[i].value != NULL)
			appendStringInfo(&sql, ", %s => %s", options[i].name, *options[i].value ? "true" : "false");
	}
	if (change->archive_to != NULL)
		appendStringInfo(&sql, ", archive_to => %s",
						 quote_literal_cstr(OidIsValid(*change->archive_to) ? ttl_name_qualified(*change->archive_to) : "-"));
	appendStringInfoString(&sql, ");");
	return sql.data;
}

/*
 * Compares an index that exists with what was asked for.  Returns true if its options are to be
 * changed, and raises an error if that was not asked for.
 */
static bool
check_existing(const TtlCreate *args, const Creation *creation)
{
	const TtlOption *has = &creation->has;
	const TtlOption *wanted = &creation->index.option;
	char	   *name = get_rel_name(creation->index.indexrelid);
	char	   *qualified = ttl_name_qualified(creation->index.indexrelid);
	bool		is_ttl = has->present && has->problem == NULL;
	char	   *difference = is_ttl ? differences(has, wanted) : NULL;

	if (args->name != NULL && strcmp(name, args->name) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("index \"%s\" on the same key has another name", name),
				 errhint("ALTER INDEX %s RENAME TO %s;", qualified, quote_identifier(args->name))));
	if (args->or_change || (is_ttl && difference == NULL))
		return !is_ttl || difference != NULL;
	if (!is_ttl)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("index \"%s\" on the same key already exists", name),
				 errdetail("It is not a TTL index."),
				 wanted->bucket_seconds != 0 ?
				 errhint("DROP INDEX %s;", qualified) :
				 errhint("%s", change_call(qualified, wanted->seconds, &creation->options))));
	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_OBJECT),
			 errmsg("TTL index \"%s\" on the same key has other options", name),
			 errdetail_internal("%s", difference),
			 has->bucket_seconds == wanted->bucket_seconds ?
			 errhint("%s", change_call(qualified, wanted->seconds, &creation->options)) :
			 has->bucket_seconds == 0 ?
			 errhint("DROP INDEX %s;", qualified) :
			 errhint("Leave out granularity and bucket_max_span_seconds: the span cannot be changed.")));
}

/*
 * Finds the index on the same key with the same filter that is meant: the one of the name that
 * was given, else the TTL index, else the plain one.  Returns false if there is none.  An index
 * that cannot be a TTL index (of a constraint, a unique one, another operator class) is
 * ignored.  An option that REINDEX CONCURRENTLY has lost counts as long as it is saved.
 */
static bool
find_existing(Relation rel, const TtlCreate *args, const TtlKey *key, const TtlSide *side, TtlIndex *index)
{
	List	   *found = NIL;
	ListCell   *lc;

	foreach(lc, ttl_key_indexes(rel, args->key))
	{
		Oid			indexrelid = lfirst_oid(lc);
		AttrNumber	attnum;
		Node	   *expression;

		if (!ttl_key_read(indexrelid, &attnum, &expression) ||
			strcmp(ttl_key_format(expression), ttl_key_format(key->expression)) != 0 ||
			!ttl_state_describe(indexrelid, true, index) ||
			index->state == TTL_UNSUITABLE_INDEX ||
			!equal(ttl_own_ttl_plain_filter(index->option.filter), side->filter) ||
			!equal(ttl_own_ttl_asked_for(index->option.filter), side->ttl))
			continue;
		if (args->name != NULL && strcmp(get_rel_name(indexrelid), args->name) == 0)
		{
			found = list_make1_oid(indexrelid);
			break;
		}
		found = lappend_oid(found, indexrelid);
	}
	found = ttl_key_prefer_ttl(found);
	if (found == NIL || !ttl_state_describe(linitial_oid(found), true, index))
		return false;
	ttl_state_check_usable(index->indexrelid);
	if (!index->option.present)
		(void) ttl_saved_option_apply(index->indexrelid, &index->option);
	if (list_length(found) > 1 && (args->or_change || index->option.present))
		ereport(ERROR,
				(errcode(ERRCODE_AMBIGUOUS_PARAMETER),
				 errmsg("table \"%s\" has more than one %sindex with this key and filter",
						RelationGetRelationName(rel), index->option.present ? "TTL " : ""),
				 errhint("Choose one by its name, such as name => %s.",
						 quote_literal_cstr(get_rel_name(index->indexrelid)))));
	return true;
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
					 concurrently ? "CONCURRENTLY " : "", quote_identifier(command->name),
					 command->table, key_sql);
	/* the filter may end in a comment */
	if (args->filter != NULL)
		appendStringInfo(&sql, "(%s%s) AND ", args->filter,
						 strstr(args->filter, "--") ? "\n" : "");
	if (condition != NULL)
		appendStringInfo(&sql, "%s AND ", condition);

	/* the command uses the name of the archive */
	if (OidIsValid(option->archive_to))
		LockRelationOid(option->archive_to, AccessShareLock);
	appendStringInfoString(&sql, ttl_create_option_sql(option));
	command->sql = sql.data;
	return command;
}

/* Checks everything, and writes the commands that create what does not exist. */
static void
prepare_create(Relation rel, const TtlCreate *args, bool concurrently, Creation *creation)
{
	TtlKey		key;
	TtlSide		side = {.is_main = true};
	List	   *filter = NIL;
	TtlIndex   *index = &creation->index;
	TtlOption	own;
	bool		exists;
	char	   *ttl = NULL;
	Oid			sibling = InvalidOid;
	char	   *label;

	ttl_state_check_table(args->relid);
	ttl_key_resolve(rel, args->key, args->change.unit, args->change.time_zone, &key);
	label = key.column == NULL ? "expr" : unquoted(args->key[0] == '"' ? key.column : args->key);
	if (args->ttl_field != NULL && key.type != TIMESTAMPTZOID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("document_ttl_field needs a key of type timestamp with time zone, not %s",
						format_type_be(key.type)),
				 errhint("Change the type of the column.")));
	if (args->filter != NULL)
		filter = make_ands_implicit((Expr *)
									ttl_key_parse(rel, args->filter, true,
														 "partial_filter_expression"));
	if (args->ttl_field != NULL)
	{
		ttl = ttl_own_ttl_field_sql(rel, args->ttl_field);
		filter = lappend(filter, ttl_key_parse(rel, psprintf("%s IS NULL", ttl), true,
											   "document_ttl_field"));
	}
	side.attnum = key.expression == NULL ? key.attnum : InvalidAttrNumber;
	side.expression = key.expression;
	side.ttl = ttl_own_ttl_asked_for(filter);
	side.filter = ttl_own_ttl_plain_filter(filter);
	if (ttl != NULL)
		sibling = ttl_own_ttl_find(args->relid, &side);

	memset(creation, 0, sizeof(*creation));
	creation->options = args->change;
	if (key.has_format)
	{
		creation->options.unit = TTL_UNIT_NONE;
		creation->options.time_zone = NULL;
	}
	exists = find_existing(rel, args, &key, &side, index);
	if (!exists)
	{
		memset(index, 0, sizeof(*index));
		index->option.filter = filter;
	}
	index->relid = args->relid;
	index->owner = rel->rd_rel->relowner;
	/* create_time_series() without seconds */
	if (!index->option.present)
		index->option.seconds = -1;
	index->keyattnum = key.attnum;
	index->keytype = key.type;
	creation->has = index->option;
	ttl_coll_mod_merge(index, sibling, &creation->options);
	if (exists)
		creation->change = check_existing(args, creation);
	else
	{
		/* the index for documents with a TTL of their own may exist without the main one */
		if (OidIsValid(sibling) && ttl_option_read(sibling, &own) &&
			(!own.present || own.problem != NULL || own.paused != index->option.paused ||
			 own.archive_to != index->option.archive_to))
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_OBJECT),
					 errmsg("index \"%s\", for documents with a TTL of their own, has other options",
							get_rel_name(sibling)),
					 errhint("DROP INDEX %s;", ttl_name_qualified(sibling))));
		creation->commands = list_make1(create_command(rel, args, args->name, label, key.sql,
													   ttl ? psprintf("%s IS NULL", ttl) : NULL,
													   &index->option, concurrently));
	}
	if (!exists || (ttl != NULL && !OidIsValid(sibling)))
		(void) ttl_notice_find_overlap(args->relid, InvalidOid, &side, ERROR);
	if (ttl == NULL || OidIsValid(sibling))
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

/*
 * The lock for create_index().  A lock that conflicts with itself is needed to create an index.
 * With or_change, a call that finds the index must not block writes, so it looks first.
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
	ListCell   *lc;

	rel = ttl_owner_open(args->relid, lock_needed(args));
	prepare_create(rel, args, false, &creation);
	relation_close(rel, NoLock);
	main = creation.index.indexrelid;
	if (creation.change)
	{
		int32		old;

		PreventCommandIfReadOnly("ttl_index.create_index()");
		if (ttl_coll_mod_apply(main, &creation.options, &old))
			ereport(NOTICE,
					(errmsg("changed TTL index \"%s\"", get_rel_name(main)),
					 errdetail_internal("%s", differences(&creation.index.option, &creation.has))));
		else
			ereport(NOTICE,
					(errmsg("made index \"%s\" a TTL index", get_rel_name(main))));
	}
	else if (creation.commands == NIL)
		ereport(NOTICE,
				(errmsg("TTL index \"%s\" with the same options already exists, skipping",
						get_rel_name(main))));
	foreach(lc, creation.commands)
	{
		const Command *command = lfirst(lc);
		Oid			indexrelid;

		/* building the first index may have called functions that rename a schema */
		if (strcmp(command->table, ttl_name_qualified(args->relid)) != 0)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("table \"%s\" was renamed while its index was created",
							get_rel_name(args->relid))));
		ttl_citus_run_command(command->sql);
		indexrelid = get_relname_relid(command->name, get_rel_namespace(args->relid));
		/* a schema may have been renamed meanwhile, and another table got the index */
		if (!OidIsValid(indexrelid) || IndexGetRelation(indexrelid, true) != args->relid)
			elog(ERROR, "could not find index \"%s\"", command->name);
		if (args->or_change)
			ereport(NOTICE,
					(errmsg("created TTL index \"%s\"", get_rel_name(indexrelid))));
		if (!OidIsValid(main))
			main = indexrelid;
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
	Oid			indexrelid = ttl_key_index(relid, ttl_args_text(fcinfo, 1), true);
	Oid			sibling = ttl_own_ttl_sibling(indexrelid);
	char	   *command;

	/* the weaker lock that is already held kept the indexes and the owner */
	LockRelationOid(relid, AccessExclusiveLock);
	command = psprintf("DROP INDEX %s", ttl_name_qualified(indexrelid));
	if (OidIsValid(sibling))
		command = psprintf("%s, %s", command, ttl_name_qualified(sibling));
	ttl_citus_run_command(command);
	if (get_rel_name(indexrelid) != NULL)
		elog(ERROR, "DROP INDEX did not drop index %u", indexrelid);
	PG_RETURN_VOID();
}
