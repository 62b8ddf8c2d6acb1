/*-------------------------------------------------------------------------
 *
 * cluster.c
 *	  Changing the option of an index of a table of Citus, on all nodes at once.
 *
 * The index of a table of Citus exists on each node, and each shard has an index of its own.
 * Citus runs ALTER INDEX ... SET on all nodes in one two-phase commit, so a change is passed to
 * Citus as a storage parameter that holds the whole option, or nothing to remove it:
 *
 *		ALTER INDEX events_ttl SET (ttl_index.option = 'ttl_index.expire_after_seconds(3600)')
 *
 * Core refuses such a parameter.  On each node, our event trigger removes it from the command
 * and changes the index itself, so the command fails where the trigger is disabled.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "commands/defrem.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "ddl/ddl.h"
#include "state/state.h"
#include "ttl_index.h"

#define PARAMETER "option"

/* Gives the index of a table of Citus the option, or none, on all nodes. */
void
ttl_cluster_change(Oid indexrelid, const TtlOption *option)
{
	const char *propagates = GetConfigOption("citus.enable_ddl_propagation", true, false);
	TtlOption	has;

	if (propagates != NULL && strcmp(propagates, "on") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot change index \"%s\" on this node alone",
						get_rel_name(indexrelid)),
				 errhint("SET citus.enable_ddl_propagation = on;")));
	ttl_citus_run_command(psprintf("ALTER INDEX %s SET (" TTL_SCHEMA "." PARAMETER " = %s)",
								   ttl_name_qualified(indexrelid),
								   quote_literal_cstr(option->present ? ttl_create_option_sql(option) : "")));
	if (!ttl_option_read(indexrelid, &has) || !ttl_option_same(&has, option))
		elog(ERROR, "the option of index \"%s\" did not change", get_rel_name(indexrelid));
}

/* The option that a command carries, as SQL text; NULL if it is another command. */
static char *
carried_option(Node *node)
{
	AlterTableStmt *statement = (AlterTableStmt *) node;
	AlterTableCmd *command;
	DefElem    *parameter;

	if (!IsA(node, AlterTableStmt) || list_length(statement->cmds) != 1)
		return NULL;
	command = linitial_node(AlterTableCmd, statement->cmds);
	if (command->subtype != AT_SetRelOptions || list_length((List *) command->def) != 1)
		return NULL;
	parameter = linitial_node(DefElem, (List *) command->def);
	if (parameter->defnamespace == NULL || strcmp(parameter->defnamespace, TTL_SCHEMA) != 0 ||
		strcmp(parameter->defname, PARAMETER) != 0)
		return NULL;
	return defGetString(parameter);
}

/*
 * Makes the change that an ALTER INDEX carries, for on_alter_index().  The command then has
 * nothing left to do.  Users can write such a command by hand: the change needs the same rights
 * as by coll_mod().
 */
void
ttl_cluster_apply(Node *node)
{
	AlterTableStmt *statement = (AlterTableStmt *) node;
	char	   *text = carried_option(node);
	Oid			indexrelid;
	Relation	rel;
	Node	   *members = NULL;
	TtlOption	has;
	TtlOption	option;

	if (text == NULL)
		return;
	indexrelid = RangeVarGetRelid(statement->relation, NoLock, true);
	/* for any other table, core raises an error about the parameter */
	if (ttl_citus_kind(IndexGetRelation(indexrelid, true)) == TTL_CITUS_NONE)
		return;

	rel = ttl_owner_open(IndexGetRelation(indexrelid, false), ShareUpdateExclusiveLock);
	if (text[0] != '\0')
		members = ttl_key_parse(rel, text, true, TTL_SCHEMA "." PARAMETER);
	relation_close(rel, NoLock);

	/* whether -1 is allowed depends on the filter */
	if (!ttl_option_read(indexrelid, &has))
		return;
	ttl_option_read_members(list_concat(make_ands_implicit((Expr *) members), has.filter),
							true, &option);
	if (option.problem != NULL || !equal(option.filter, has.filter))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is not the option of a TTL index", quote_literal_cstr(text)),
				 option.problem ? errdetail_internal("%s.", option.problem) : 0));
	ttl_coll_mod_here(indexrelid, &option);
	statement->cmds = NIL;
}
