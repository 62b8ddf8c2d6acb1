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
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/scansup.h"
#include "tcop/dest.h"
#include "tcop/utility.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "compute.h"
#include "ddl/ddl.h"
#include "definition/archive.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "leftover.h"
#include "ttl_index.h"

TTL_FUNCTION(ttl_create_index);
TTL_FUNCTION(ttl_create_index_command);
TTL_FUNCTION(ttl_drop_index);

static void
read_create_args(FunctionCallInfo fcinfo, TtlCreate *args)
{
	static const char *const names[] = {"relation", "key", "expire_after_seconds"};

	ttl_args_require(fcinfo, 3, names);
	memset(args, 0, sizeof(*args));
	args->relid = PG_GETARG_OID(0);
	args->key = ttl_args_text(fcinfo, 1);
	args->seconds = ttl_state_read_seconds(PG_GETARG_INT64(2));
	args->filter = ttl_args_text(fcinfo, 3);
	args->time_zone = ttl_args_text(fcinfo, 4);
	args->ttl_field = ttl_args_text(fcinfo, 5);
	args->name = PG_ARGISNULL(6) ? NULL : pstrdup(NameStr(*PG_GETARG_NAME(6)));
	args->drop_partitions = !PG_ARGISNULL(7) && PG_GETARG_BOOL(7);
	args->boundary_rows = !PG_ARGISNULL(8) && PG_GETARG_BOOL(8);
	args->paused = !PG_ARGISNULL(10) && PG_GETARG_BOOL(10);
	args->has_archive_to = !PG_ARGISNULL(11);
	args->archive_to = args->has_archive_to ? PG_GETARG_OID(11) : InvalidOid;
	ttl_state_check_seconds(args->seconds, args->ttl_field != NULL);
	args->detach_partitions = !PG_ARGISNULL(12) && PG_GETARG_BOOL(12);
	ttl_create_check_together(args->drop_partitions, args->detach_partitions,
							  args->boundary_rows, args->archive_to);
}

/* Raises an error unless these arguments go together. */
void
ttl_create_check_together(bool drop_partitions, bool detach_partitions,
						  bool boundary_rows, Oid archive_to)
{
	if (drop_partitions && detach_partitions)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg_internal("%s", TTL_DROP_OR_DETACH),
				 errhint("A partition that is detached stays as a table of its own.")));
	if (detach_partitions && OidIsValid(archive_to))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg_internal("%s", TTL_ARCHIVE_OR_DETACH),
				 errhint("With drop_expired_partitions and archive_to, partitions move to the archive.")));
	if (boundary_rows && !drop_partitions)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("delete_boundary_rows needs drop_expired_partitions"),
				 errhint("Without it all rows that are due go one by one.")));
}

/*
 * The options that create_index() was asked for.  Where rows are moved to stays as it is
 * unless it was asked for.
 */
static TtlOption
asked_option(const TtlCreate *args, const TtlOption *existing)
{
	TtlOption	option = {
		.present = true,
		.seconds = args->seconds,
		.time_zone = args->time_zone,
		.drop_partitions = args->drop_partitions || args->detach_partitions,
		.detach_partitions = args->detach_partitions,
		.boundary_rows = args->boundary_rows,
		.bucket_seconds = args->bucket_seconds,
		.archive_to = args->has_archive_to ? args->archive_to : existing->archive_to
	};

	return option;
}

static void
add_difference(StringInfo text, const char *name, const char *has, const char *instead)
{
	if (pg_strcasecmp(has, instead) != 0)
		appendStringInfo(text, "%s%s is %s instead of %s",
						 text->len > 0 ? ", " : "", name, has, instead);
}

/* What the one has instead of what the other has, about partitions. */
static void
add_partition_differences(StringInfo text, const TtlOption *has, const TtlOption *instead)
{
	add_difference(text, "drop_expired_partitions",
				   has->drop_partitions && !has->detach_partitions ? "true" : "false",
				   instead->drop_partitions && !instead->detach_partitions ? "true" : "false");
	add_difference(text, "detach_expired_partitions",
				   has->detach_partitions ? "true" : "false",
				   instead->detach_partitions ? "true" : "false");
	add_difference(text, "delete_boundary_rows",
				   has->boundary_rows ? "true" : "false",
				   instead->boundary_rows ? "true" : "false");
	add_difference(text, "bucket_max_span_seconds",
				   psprintf("%d", has->bucket_seconds),
				   psprintf("%d", instead->bucket_seconds));
}

static const char *
archive_text(const TtlOption *option)
{
	return OidIsValid(option->archive_to) ? ttl_archive_name(option->archive_to) : "none";
}

/* The same for all options, but for the filter: an empty text where they are equal. */
static char *
differences(const TtlOption *has, const TtlOption *instead)
{
	StringInfoData text;

	initStringInfo(&text);
	add_difference(&text, "expire_after_seconds", psprintf("%d", has->seconds),
				   psprintf("%d", instead->seconds));
	add_difference(&text, "time_zone", has->time_zone ? has->time_zone : "none",
				   instead->time_zone ? instead->time_zone : "none");
	add_difference(&text, "archive_to", archive_text(has), archive_text(instead));
	add_partition_differences(&text, has, instead);
	return text.data;
}

/* Can or_change make the one of the other? */
static bool
is_changeable(const TtlOption *has, const TtlOption *asked)
{
	StringInfoData text;

	initStringInfo(&text);
	add_partition_differences(&text, has, asked);
	return text.len == 0;
}

/*
 * Does an index on the same key and filter need to be changed, to be what was asked for?
 * Raises an error if that was not asked for, or would be more than a change of the TTL.
 */
static bool
needs_change(Oid indexrelid, const TtlCreate *args, const TtlOption *option)
{
	TtlOption	asked = asked_option(args, option);
	char	   *text;

	ttl_state_check_usable(indexrelid);
	if (!option->present || option->problem != NULL)
	{
		if (!args->or_change)
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_OBJECT),
					 errmsg("index \"%s\" on the same key already exists",
							get_rel_name(indexrelid)),
					 errhint("Turn it into a TTL index with ttl_index.coll_mod() or ttl_index.coll_mod_index().")));
		return true;
	}
	text = differences(option, &asked);
	if (text[0] == '\0')
		return false;
	if (!args->or_change || !is_changeable(option, &asked))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("TTL index \"%s\" on the same key has other options",
						get_rel_name(indexrelid)),
				 errdetail_internal("%s.", text),
				 is_changeable(option, &asked) && args->bucket_seconds == 0 ?
				 errhint("Change it with ttl_index.coll_mod() or ttl_index.coll_mod_index(), or by or_change => true.") :
				 option->bucket_seconds != args->bucket_seconds ?
				 errhint("It is that of a time series: change its seconds with ttl_index.coll_mod().") :
				 errhint("Change it with ttl_index.coll_mod() or ttl_index.coll_mod_index().")));
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
	const char *has_name = has ? ttl_pair_field_name(has, index->relid) : "none";
	const char *asked_name = asked ? ttl_pair_field_name(asked, index->relid) : "none";

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
 * The index on the same key with the same filter that makes the call a no-op;
 * invalid where there is none.  One that could only stand beside a TTL index
 * (of a constraint, a unique one, another operator class) is ignored.  A leftover of a
 * failed build counts only if there is nothing else.  An option that REINDEX CONCURRENTLY
 * has lost counts as long as it is saved.
 */
static Oid
find_existing(Relation rel, const TtlCreate *args, List *filter, bool *change)
{
	Oid			leftover = InvalidOid;
	ListCell   *lc;

	foreach(lc, ttl_key_indexes(rel, args->key))
	{
		Oid			indexrelid = lfirst_oid(lc);
		TtlIndex	index;

		if (!ttl_catalog_describe(indexrelid, true, &index))
			continue;
		if (index.state == TTL_CONSTRAINT_INDEX ||
			index.state == TTL_UNIQUE_INDEX || index.state == TTL_NOT_BTREE ||
			index.state == TTL_OPERATOR_CLASS ||
			!ttl_filter_same(index.relid,
							 ttl_own_ttl_plain_filter(index.option.filter),
							 ttl_own_ttl_plain_filter(filter)))
			continue;
		if (!equal(ttl_own_ttl_asked_for(index.option.filter),
				   ttl_own_ttl_asked_for(filter)))
		{
			if (args->or_change)
				check_other_field(indexrelid, &index, filter);
			continue;
		}
		if (ttl_state_is_leftover(indexrelid))
		{
			leftover = indexrelid;
			continue;
		}
		if (!index.option.present)
			(void) ttl_saved_option_apply(indexrelid, &index.option);
		*change = needs_change(indexrelid, args, &index.option);
		return indexrelid;
	}
	if (OidIsValid(leftover))
		ttl_state_check_usable(leftover);
	return InvalidOid;
}

/* Raises an error where partitions are to be dropped or made and cannot be. */
static void
check_partition_options(const TtlCreate *args, const TtlKey *key)
{
	TtlIndex	index = {0};

	if (!args->drop_partitions && !args->detach_partitions && args->bucket_seconds == 0)
		return;
	index.state = ttl_partition_key_possible(args->relid, key->attnum,
											 getBaseType(key->type),
											 args->filter != NULL ||
											 args->ttl_field != NULL);
	if (index.state != TTL_ACTIVE)
		ttl_state_raise(&index);
}

/*
 * Raises an error where rows cannot be moved to the table that was asked for.  Its name
 * stays until the end of the transaction: a command names it.
 */
static void
check_archive(Relation rel, const TtlCreate *args)
{
	TtlIndex	index = {.relid = args->relid,.owner = rel->rd_rel->relowner};

	if (!OidIsValid(args->archive_to))
		return;
	index.option.present = true;
	index.option.archive_to = args->archive_to;
	ttl_archive_check(&index);
	LockRelationOid(args->archive_to, AccessShareLock);
	ttl_name_keep(args->archive_to);
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
	char	   *sql;
} Command;

/*
 * The CREATE INDEX command for a key, with a condition beside the user's filter
 * or NULL.  A name that is not given is chosen.
 */
static Command *
create_command(Relation rel, const TtlCreate *args, const char *name,
			   const char *label, const char *key_sql, const char *condition,
			   int32 seconds, bool paused, bool concurrently)
{
	Command    *command = palloc(sizeof(Command));
	StringInfoData sql;

	command->name = name ? pstrdup(name) :
		ChooseRelationName(unquoted(RelationGetRelationName(rel)), label, "ttl",
						   RelationGetNamespace(rel), false);
	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE INDEX %s%s ON %s (%s) WHERE ",
					 concurrently ? "CONCURRENTLY " : "",
					 quote_identifier(command->name),
					 ttl_name_qualified(args->relid), key_sql);
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
	if (args->drop_partitions)
		appendStringInfo(&sql, " AND " TTL_SCHEMA ".drop_expired_partitions(%s)",
						 args->boundary_rows ? "true" : "");
	if (args->detach_partitions)
		appendStringInfoString(&sql, " AND " TTL_SCHEMA ".detach_expired_partitions()");
	if (args->bucket_seconds != 0)
		appendStringInfo(&sql, " AND " TTL_SCHEMA ".bucket_max_span_seconds(%d)",
						 args->bucket_seconds);
	if (paused)
		appendStringInfoString(&sql, " AND " TTL_SCHEMA ".paused()");
	if (OidIsValid(args->archive_to))
		appendStringInfo(&sql, " AND " TTL_SCHEMA ".archive_to(%s)",
						 quote_literal_cstr(ttl_name_qualified(args->archive_to)));
	command->sql = sql.data;
	return command;
}

/*
 * The fourth argument is the time zone of coll_mod(), and the filter here.  That of one is
 * hardly ever the other.
 */
static void
refuse_zone_as_filter(const TtlCreate *args)
{
	/*
	 * a look through all zones takes long, and no name of one has a blank or
	 * a sign
	 */
	if (args->filter == NULL || args->time_zone != NULL ||
		!isalpha((unsigned char) args->filter[0]) ||
		strpbrk(args->filter, " ().,;:'\"$=<>") != NULL ||
		!ttl_time_zone_ok(args->filter) ||
		get_attnum(args->relid, args->filter) != InvalidAttrNumber)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("partial_filter_expression is the name of a time zone: %s",
					args->filter),
			 errhint("Write time_zone => %s. The fourth argument is partial_filter_expression here, and time_zone in ttl_index.coll_mod().",
					 quote_literal_cstr(args->filter))));
}

/*
 * Checks everything and writes the commands.  *existing is the index that is
 * there already, so that no command or that of its pair alone is left; *change says
 * whether it has to be changed.
 */
static List *
prepare_create(Relation rel, const TtlCreate *args, bool concurrently,
			   Oid *existing, bool *change)
{
	TtlKey		key;
	List	   *filter = NIL;
	List	   *commands = NIL;
	char	   *ttl = NULL;
	Oid			other = InvalidOid;
	char	   *label = unquoted(args->key);

	ttl_catalog_check_table(args->relid);
	ttl_key_resolve(rel, args->key, &key);
	refuse_zone_as_filter(args);
	ttl_catalog_check_key(args->relid, key.attnum, key.type, args->time_zone);
	check_partition_options(args, &key);
	check_archive(rel, args);
	if (args->ttl_field != NULL && key.type != TIMESTAMPTZOID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("document_ttl_field needs a key of type timestamp with time zone, not %s",
						format_type_be(key.type)),
				 errhint("Change the type of the column.")));
	if (args->filter != NULL)
	{
		ttl_parse_check_path(rel->rd_rel->relowner);
		filter = make_ands_implicit((Expr *)
									ttl_parse_expression(rel, args->filter,
														 true,
														 "partial_filter_expression"));
	}
	if (args->ttl_field != NULL)
	{
		Node	   *is_null;

		ttl = ttl_pair_field_sql(rel, args->ttl_field);
		is_null = ttl_parse_expression(rel, psprintf("%s IS NULL", ttl), true,
									   "document_ttl_field");
		other = ttl_pair_find(args->relid, key.attnum, key.expression,
							  ttl_own_ttl_asked_for(list_make1(is_null)),
							  filter);
		filter = lappend(list_copy(filter), is_null);
	}

	*change = false;
	*existing = find_existing(rel, args, filter, change);
	if (!OidIsValid(*existing) || (ttl != NULL && !OidIsValid(other)))
		ttl_beside_check_new(args->relid, &key, filter);
	if (!OidIsValid(*existing))
		commands = lappend(commands,
						   create_command(rel, args, args->name, label, key.sql,
										  ttl ? psprintf("%s IS NULL", ttl) : NULL,
										  args->seconds, args->paused, concurrently));
	if (ttl != NULL && !OidIsValid(other))
		commands = lappend(commands,
						   create_command(rel, args, NULL,
										  psprintf("%s_own", label),
										  psprintf("(" TTL_SCHEMA ".expire_at(%s, %s))",
												   key.sql, ttl),
										  psprintf("%s IS NOT NULL", ttl),
										  0, args->paused, concurrently));
	return commands;
}

/* create_index_command(relation, key, ..., concurrently) returns setof text */
static Datum
ttl_create_index_command_called(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	TtlCreate	args;
	Relation	rel;
	Oid			existing;
	bool		concurrently;
	bool		change;
	List	   *commands;
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
	commands = prepare_create(rel, &args, concurrently, &existing, &change);
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

/* As SPI has it, for an error in a command. */
static void
command_error(void *sql)
{
	int			position = geterrposition();

	/* nothing but a filter can be so */
	if (geterrcode() == ERRCODE_INVALID_OBJECT_DEFINITION)
		errhint(TTL_FILTER_HINT);
	if (position > 0)
	{
		errposition(0);
		internalerrposition(position);
		internalerrquery(sql);
	}
	else
		errcontext("SQL statement \"%s\"", (char *) sql);
}

static bool running = false;

/* Is the command at hand one of ours, so that the report on it is ours, too? */
bool
ttl_create_is_running(void)
{
	return running;
}

/*
 * Makes sure that a command is about this table.  Its name is kept from other transactions, but
 * not from this one, in which code of the table's owner runs while an index is built and its
 * rows are looked at: it could swap two schemas, so that the next command names the table
 * of somebody else.  No such code runs from here until core has looked up the name.
 */
static void
check_name_of_table(const IndexStmt *statement, Oid relid)
{
	if (RangeVarGetRelid(statement->relation, NoLock, true) == relid)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("table \"%s\" got another name while its index was created",
					statement->relation->relname),
			 errhint("Look for functions of its owner, in its indexes, that rename tables or schemas.")));
}

/* Runs a CREATE INDEX as the caller, but parses it as the table's owner. */
static void
run_command(Oid relid, char *sql)
{
	ErrorContextCallback callback = {error_context_stack, command_error, sql};
	PlannedStmt *statement = makeNode(PlannedStmt);
	bool		outer = running;
	TtlUnfinished before;

	error_context_stack = &callback;
	statement->commandType = CMD_UTILITY;
	statement->canSetTag = true;
	statement->utilityStmt = (Node *) ttl_parse_create_index(relid, sql);
	check_name_of_table((IndexStmt *) statement->utilityStmt, relid);
	PushActiveSnapshot(GetTransactionSnapshot());
	ttl_unfinished_note(&before);
	PG_TRY();
	{
		running = true;
		ProcessUtility(statement, sql, false, PROCESS_UTILITY_QUERY, NULL, NULL,
					   None_Receiver, NULL);
	}
	PG_FINALLY();
	{
		/* an event trigger of others may have called us within another one */
		running = outer;
	}
	PG_END_TRY();
	ttl_unfinished_check(&before, ttl_owner_of(relid));
	PopActiveSnapshot();
	CommandCounterIncrement();
	error_context_stack = callback.previous;
}

/*
 * Runs a command, and makes sure of the index that it made.  Not by its name, which code of the
 * owner that runs while it is built can give to another one.
 */
static Oid
run_create(const TtlCreate *args, const Command *command)
{
	List	   *before = ttl_catalog_table_indexes(args->relid);
	List	   *made;
	TtlIndex	index;
	Oid			indexrelid;

	run_command(args->relid, command->sql);
	made = list_difference_oid(ttl_catalog_table_indexes(args->relid), before);
	indexrelid = list_length(made) == 1 ? linitial_oid(made) : InvalidOid;
	if (!ttl_catalog_describe(indexrelid, true, &index))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("other indexes of the table were created or dropped while index \"%s\" was created",
						command->name),
				 errhint("Look for functions of its owner, in its indexes, that do so.")));
	/* the event trigger did this already, unless it is disabled */
	if (index.state != TTL_ACTIVE)
		ttl_state_raise(&index);
	ttl_saved_option_write(indexrelid, &index.option);
	return indexrelid;
}

/*
 * The end of a message about an index that is there under another name than asked for.  Code
 * in its filter, which is run to say what is due, can have dropped it meanwhile.
 */
static int
detail_of_name(Oid indexrelid, const char *name)
{
	const char *present = get_rel_name(indexrelid);

	if (name == NULL || present == NULL || strcmp(name, present) == 0)
		return 0;
	errdetail("It is not renamed to \"%s\".", name);
	return errhint("ALTER INDEX ... RENAME TO does that.");
}

/* Changes an index to what was asked for, and says so. */
static void
change_existing(Oid indexrelid, const TtlCreate *args)
{
	TtlIndex	old;
	bool		was_ttl = ttl_catalog_describe(indexrelid, true, &old) &&
	old.option.present && old.option.problem == NULL;
	TtlOption	asked = asked_option(args, &old.option);
	const char *name = get_rel_name(indexrelid);

	PreventCommandIfReadOnly("ttl_index.create_index()");
	ttl_coll_mod_apply(indexrelid, args);
	ereport(NOTICE,
			(was_ttl ?
			 errmsg("changed TTL index \"%s\": %s", name,
					differences(&asked, &old.option)) :
			 errmsg("made index \"%s\" a TTL index", name),
			 detail_of_name(indexrelid, args->name)));
}

/* With or_change, says what the name belongs to, if that is not the index asked for. */
static void
check_name(const TtlCreate *args)
{
	Oid			taken;

	if (!args->or_change || args->name == NULL)
		return;
	taken = get_relname_relid(args->name, get_rel_namespace(args->relid));
	if (!OidIsValid(taken))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_TABLE),
			 errmsg("relation \"%s\" already exists", args->name),
			 IndexGetRelation(taken, true) == args->relid ?
			 errdetail("It is an index of the table with another key, filter or kind than asked for.") :
			 errdetail("It is no index of table \"%s\".", get_rel_name(args->relid)),
			 errhint("Rename it, or give another name.")));
}

/*
 * How strong a lock create_index() needs.  One that conflicts with itself, as two calls at
 * once must not make two indexes; but a deployment that finds what it wants, or changes it,
 * holds up no writes.  So it looks first.
 */
static LOCKMODE
lock_needed(const TtlCreate *args)
{
	Relation	rel;
	List	   *commands;
	Oid			existing;
	bool		change;

	if (!args->or_change)
		return ShareRowExclusiveLock;
	rel = ttl_owner_open(args->relid, AccessShareLock);
	commands = prepare_create(rel, args, false, &existing, &change);
	relation_close(rel, AccessShareLock);
	return commands == NIL ? ShareUpdateExclusiveLock : ShareRowExclusiveLock;
}

/* Creates what create_index() was asked for, as the caller; returns the index. */
Oid
ttl_create_index_for(const TtlCreate *args)
{
	Relation	rel;
	Oid			main;
	bool		change;
	List	   *commands;
	ListCell   *lc;

	rel = ttl_owner_open(args->relid, lock_needed(args));
	ttl_name_keep(args->relid);
	commands = prepare_create(rel, args, false, &main, &change);
	relation_close(rel, NoLock);
	if (change)
		change_existing(main, args);
	else if (commands == NIL)
		ereport(NOTICE,
				(errmsg("TTL index \"%s\" with the same options already exists, skipping",
						get_rel_name(main)),
				 detail_of_name(main, args->name)));
	if (!OidIsValid(main))
		check_name(args);
	foreach(lc, commands)
	{
		Oid			indexrelid = run_create(args, lfirst(lc));

		if (args->or_change)
			ereport(NOTICE,
					(errmsg("created TTL index \"%s\"", get_rel_name(indexrelid))));
		if (!OidIsValid(main))
			main = indexrelid;
		ttl_notice_report_due(indexrelid, true);
	}
	return main;
}

/* create_index(relation, key, expire_after_seconds, ..., or_change) returns regclass */
static Datum
ttl_create_index_called(PG_FUNCTION_ARGS)
{
	TtlCreate	args;

	read_create_args(fcinfo, &args);
	args.or_change = !PG_ARGISNULL(9) && PG_GETARG_BOOL(9);
	PG_RETURN_OID(ttl_create_index_for(&args));
}

/* Locks an index of a locked table as DROP INDEX will; returns its name. */
static char *
lock_to_drop(Oid indexrelid)
{
	/* ALTER INDEX ... RENAME locks the index alone */
	LockRelationOid(indexrelid, AccessExclusiveLock);
	ttl_name_keep(indexrelid);
	return ttl_name_qualified(indexrelid);
}

/* drop_index(relation, key) returns void */
static Datum
ttl_drop_index_called(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Oid			indexrelid = ttl_key_index(relid, ttl_args_text(fcinfo, 1),
										   true);
	Oid			other = ttl_pair_other(indexrelid);
	char	   *command;

	/* with the weaker lock, the indexes and the owner have stayed */
	LockRelationOid(relid, AccessExclusiveLock);
	command = psprintf("DROP INDEX %s", lock_to_drop(indexrelid));
	if (OidIsValid(other))
		command = psprintf("%s, %s", command, lock_to_drop(other));

	ttl_compute_command_of_caller(command);
	PG_RETURN_VOID();
}
