/*-------------------------------------------------------------------------
 *
 * columns.c
 *	  Columns that an archive has and a partition that moves there has not.
 *
 * Core attaches only a table that has all columns of the whole.  So they are added to the
 * partition before, without writing its rows: with the value that the default of the archive
 * has now, or none, as if the rows were inserted there.  Then the columns get the defaults
 * that they have in the archive.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/partition/columns.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/tablecmds.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteHandler.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "compat.h"
#include "compute.h"
#include "definition/definition.h"
#include "partition/partition.h"
#include "ttl_index.h"

/*
 * The columns that the archive has and the partition has not, by number.  Raises an error
 * if core would write all rows anew to add one.
 */
static List *
missing_columns(const TtlIndex *root, Oid relid, Relation target)
{
	TupleDesc	desc = RelationGetDescr(target);
	List	   *missing = NIL;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(desc, i);

		if (column->attisdropped || get_attnum(relid, NameStr(column->attname)) > 0)
			continue;

		/*
		 * core attaches no partition where that differs, and writes all anew
		 * to add a stored one
		 */
		if (column->attgenerated != '\0')
			ttl_detach_refuse(root, relid,
							  psprintf("the generated column \"%s\" is only there", NameStr(column->attname)),
							  TTL_ROW_BY_ROW_HINT);
		if (get_typtype(column->atttypid) == TYPTYPE_DOMAIN || column->attidentity != '\0' ||
			(column->atthasdef &&
			 contain_volatile_functions(build_column_default(target, column->attnum))))
			ttl_detach_refuse(root, relid,
							  psprintf("to add column \"%s\", all of it would be written anew",
									   NameStr(column->attname)), TTL_ROW_BY_ROW_HINT);
		missing = lappend_int(missing, column->attnum);
	}
	return missing;
}

/* Raises an error if core would write all rows of the partition anew to add the columns. */
void
ttl_columns_check(const TtlIndex *root, Oid relid, Relation target)
{
	(void) missing_columns(root, relid, target);
}

static Constraint *
make_constraint(ConstrType type, Node *expression)
{
	Constraint *constraint = makeNode(Constraint);

	constraint->contype = type;
	constraint->location = -1;
	constraint->raw_expr = expression;
	constraint->initially_valid = true;
	TTL_ENFORCE(constraint);
	return constraint;
}

/* The value that an expression has now, as one that is yet to be parsed; NULL for no value. */
static Node *
present_value(Node *expression, Form_pg_attribute column)
{
	A_Const    *literal = makeNode(A_Const);
	TypeCast   *cast = makeNode(TypeCast);
	Const	   *constant = ttl_compute_value((Expr *) expression, column->atttypid,
											 column->atttypmod, column->attcollation);
	Oid			output;
	bool		is_varlena;

	if (constant->constisnull)
		return NULL;
	ttl_owner_write_exactly();
	getTypeOutputInfo(column->atttypid, &output, &is_varlena);
	literal->val.sval.type = T_String;
	literal->val.sval.sval = OidOutputFunctionCall(output, constant->constvalue);
	literal->location = cast->location = -1;
	cast->arg = (Node *) literal;
	cast->typeName = makeTypeNameFromOid(column->atttypid, column->atttypmod);
	return (Node *) cast;
}

/* The values that the defaults of columns have now, NULL for none. */
static List *
present_values(Relation target, List *columns)
{
	List	   *values = NIL;
	ListCell   *lc;

	foreach(lc, columns)
	{
		Form_pg_attribute column = TupleDescAttr(RelationGetDescr(target), lfirst_int(lc) - 1);

		values = lappend(values, !column->atthasdef ? NULL :
						 present_value(build_column_default(target, column->attnum), column));
	}
	return values;
}

/*
 * The subcommand of ALTER TABLE that adds a column of the archive to a partition.  Types and
 * collations are in it by OID, and the default is a value: whoever can rename a schema, or a
 * type, between writing and reading a text could put others in their place, with code that
 * would run as the owner.
 */
static AlterTableCmd *
adding_subcommand(Form_pg_attribute column, Node *value)
{
	AlterTableCmd *cmd = makeNode(AlterTableCmd);
	ColumnDef  *def = makeColumnDef(NameStr(column->attname), column->atttypid,
									column->atttypmod, column->attcollation);

	if (value != NULL)
		def->constraints = lappend(def->constraints, make_constraint(CONSTR_DEFAULT, value));
	if (column->attnotnull)
		def->constraints = lappend(def->constraints, make_constraint(CONSTR_NOTNULL, NULL));
	cmd->subtype = AT_AddColumn;
	cmd->def = (Node *) def;
	cmd->behavior = DROP_RESTRICT;
	return cmd;
}

/*
 * Gives the columns that were added to a table the defaults that they have in the archive, in
 * place of values.
 */
static void
copy_defaults(Relation target, Oid relid, List *columns)
{
	List	   *cmds = NIL;
	ListCell   *lc;

	foreach(lc, columns)
	{
		Form_pg_attribute column = TupleDescAttr(RelationGetDescr(target), lfirst_int(lc) - 1);
		AlterTableCmd *cmd = makeNode(AlterTableCmd);

		if (!column->atthasdef)
			continue;
		cmd->subtype = AT_CookedColumnDefault;
		cmd->num = get_attnum(relid, NameStr(column->attname));
		cmd->def = build_column_default(target, column->attnum);
		cmds = lappend(cmds, cmd);
	}
	if (cmds != NIL)
		AlterTableInternal(relid, cmds, false);
	CommandCounterIncrement();
}

/* Adds the columns that the archive alone has to a partition, without writing its rows. */
void
ttl_columns_add(const TtlIndex *root, Oid relid)
{
	Relation	target = table_open(root->option.archive_to, NoLock);
	List	   *columns = missing_columns(root, relid, target);
	List	   *values = present_values(target, columns);
	AlterTableStmt *statement = makeNode(AlterTableStmt);
	PlannedStmt *wrapper = makeNode(PlannedStmt);
	ListCell   *lc;
	ListCell   *lc2;

	/* so were these just now, and their texts are read again below */
	ttl_settings_renew_safe();
	ttl_owner_write_exactly();
	/* what a default has altered and taken back stays in the cache until then */
	relation_close(relation_open(RelationGetRelid(target), NoLock), NoLock);
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)) ||
		!equal(columns, missing_columns(root, relid, target)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("a default of table \"%s\" has dropped or altered the partition that moves there, or that table",
						RelationGetRelationName(target))));
	forboth(lc, columns, lc2, values)
		statement->cmds = lappend(statement->cmds,
								  adding_subcommand(TupleDescAttr(RelationGetDescr(target), lfirst_int(lc) - 1),
													lfirst(lc2)));
	if (columns != NIL)
	{
		statement->relation = makeRangeVar(get_namespace_name(get_rel_namespace(relid)),
										   get_rel_name(relid), -1);
		statement->objtype = OBJECT_TABLE;
		wrapper->commandType = CMD_UTILITY;
		wrapper->utilityStmt = (Node *) statement;
		wrapper->stmt_location = -1;
		PushActiveSnapshot(GetTransactionSnapshot());
		ProcessUtility(wrapper, "ALTER TABLE ... ADD COLUMN", false, PROCESS_UTILITY_QUERY,
					   NULL, NULL, None_Receiver, NULL);
		PopActiveSnapshot();
		CommandCounterIncrement();
	}
	foreach(lc, ttl_inherit_tree(relid))
	{
		ttl_settings_renew_safe();
		copy_defaults(target, lfirst_oid(lc), columns);
	}
	table_close(target, NoLock);
}
