/*-------------------------------------------------------------------------
 *
 * cluster.c
 *	  Changing the option of an index of a table of Citus, on all nodes at once.
 *
 * The index of a table of Citus exists on each node, and each shard has an index of its own.
 * Citus runs ALTER INDEX ... SET on all nodes in one two-phase commit, so a change is passed to
 * Citus as storage parameters that hold the whole option:
 *
 *		ALTER INDEX events_ttl SET (ttl_index.expire_after_seconds = 3600)
 *
 * Core refuses such parameters.  On each node, our event trigger removes them from the command
 * and changes the index itself, so the command fails where the trigger is disabled.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "catalog/namespace.h"
#include "commands/defrem.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "ddl/ddl.h"
#include "state/state.h"
#include "ttl_index.h"

/* The parameters, one for each field of an option but its filter. */
#define SECONDS "expire_after_seconds"
#define ZONE "time_zone"
#define DROP "drop_expired_partitions"
#define BOUNDARY "delete_boundary_rows"
#define DETACH "detach_expired_partitions"
#define SPAN "bucket_max_span_seconds"
#define PAUSED "paused"
#define REMOVED "removed"

static void
add_parameter(StringInfo parameters, const char *name, const char *value)
{
	appendStringInfo(parameters, "%s" TTL_SCHEMA ".%s = %s",
					 parameters->len > 0 ? ", " : "", name, value);
}

/* The option, without its filter, as parameters. */
static char *
parameters_of(const TtlOption *option)
{
	StringInfoData parameters;

	initStringInfo(&parameters);
	if (!option->present)
	{
		add_parameter(&parameters, REMOVED, "true");
		return parameters.data;
	}
	add_parameter(&parameters, SECONDS, psprintf("%d", option->seconds));
	if (option->time_zone != NULL)
		add_parameter(&parameters, ZONE, quote_literal_cstr(option->time_zone));
	if (option->drop_partitions)
		add_parameter(&parameters, DROP, "true");
	if (option->boundary_rows)
		add_parameter(&parameters, BOUNDARY, "true");
	if (option->detach_partitions)
		add_parameter(&parameters, DETACH, "true");
	if (option->bucket_seconds != 0)
		add_parameter(&parameters, SPAN, psprintf("%d", option->bucket_seconds));
	if (option->paused)
		add_parameter(&parameters, PAUSED, "true");
	return parameters.data;
}

/* Reads one of the parameters into the option. */
static void
read_parameter(DefElem *parameter, TtlOption *option, bool *removed)
{
	if (strcmp(parameter->defname, SECONDS) == 0)
	{
		option->present = true;
		option->seconds = defGetInt32(parameter);
	}
	else if (strcmp(parameter->defname, ZONE) == 0)
		option->time_zone = defGetString(parameter);
	else if (strcmp(parameter->defname, DROP) == 0)
		option->drop_partitions = defGetBoolean(parameter);
	else if (strcmp(parameter->defname, BOUNDARY) == 0)
		option->boundary_rows = defGetBoolean(parameter);
	else if (strcmp(parameter->defname, DETACH) == 0)
		option->detach_partitions = defGetBoolean(parameter);
	else if (strcmp(parameter->defname, SPAN) == 0)
		option->bucket_seconds = defGetInt32(parameter);
	else if (strcmp(parameter->defname, PAUSED) == 0)
		option->paused = defGetBoolean(parameter);
	else if (strcmp(parameter->defname, REMOVED) == 0)
		*removed = defGetBoolean(parameter);
	else
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unrecognized parameter \"%s.%s\"", TTL_SCHEMA,
						parameter->defname),
				 errhint("All nodes need the same version of the extension \"%s\".",
						 TTL_EXTENSION)));
}

/* Returns true if a command carries a change, and nothing else.  Reads the option. */
static bool
read_command(const Node *node, TtlOption *option)
{
	const		AlterTableStmt *statement = (const AlterTableStmt *) node;
	const AlterTableCmd *command;
	bool		removed = false;
	ListCell   *lc;

	memset(option, 0, sizeof(*option));
	if (!IsA(node, AlterTableStmt) || list_length(statement->cmds) != 1)
		return false;
	command = linitial_node(AlterTableCmd, statement->cmds);
	if (command->subtype != AT_SetRelOptions)
		return false;
	foreach(lc, (List *) command->def)
	{
		DefElem    *parameter = lfirst_node(DefElem, lc);

		if (parameter->defnamespace == NULL ||
			strcmp(parameter->defnamespace, TTL_SCHEMA) != 0)
			return false;
		read_parameter(parameter, option, &removed);
	}
	/* a command by hand without parameters must not remove the option */
	if (option->present == removed)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("either \"%s.%s\" or \"%s.%s\" must be set", TTL_SCHEMA, SECONDS,
						TTL_SCHEMA, REMOVED),
				 errhint("Use %s.coll_mod_index().", TTL_SCHEMA)));
	return true;
}

/* Gives the index of a table of Citus the option, or none, on all nodes. */
void
ttl_cluster_change(Oid indexrelid, const TtlOption *option)
{
	const char *propagates = GetConfigOption("citus.enable_ddl_propagation", true, false);
	TtlOption	wanted = *option;
	TtlOption	has;

	if (propagates != NULL && strcmp(propagates, "on") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot change index \"%s\" on this node alone",
						get_rel_name(indexrelid)),
				 errhint("SET citus.enable_ddl_propagation = on;")));
	ttl_citus_run_command(psprintf("ALTER INDEX %s SET (%s)",
								   ttl_name_qualified(indexrelid),
								   parameters_of(option)));
	(void) ttl_option_read(indexrelid, &has);
	has.filter = wanted.filter = NIL;
	if (!equal(ttl_option_members(&has), ttl_option_members(&wanted)))
		elog(ERROR, "the option of index \"%s\" did not change", get_rel_name(indexrelid));
}

/*
 * Makes the change that an ALTER INDEX carries, for on_alter_index().  The command then has
 * nothing left to do.  The change needs the same rights as by coll_mod().
 */
void
ttl_cluster_apply(Node *node)
{
	AlterTableStmt *statement = (AlterTableStmt *) node;
	TtlOption	option;
	Oid			indexrelid;

	if (!read_command(node, &option))
		return;
	indexrelid = RangeVarGetRelid(statement->relation, NoLock, true);
	/* for any other table, core raises an error about the parameters */
	if (ttl_citus_kind(IndexGetRelation(indexrelid, true)) == TTL_CITUS_NONE)
		return;
	ttl_coll_mod_here(indexrelid, &option);
	statement->cmds = NIL;
}
