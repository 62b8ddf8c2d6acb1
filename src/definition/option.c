/*-------------------------------------------------------------------------
 *
 * option.c
 *	  The option in an index predicate: read it, and what it is made of.
 *
 * A TTL index is an ordinary index with a call of expire_after_seconds() among the AND members
 * of its predicate.  Only this file reads the stored predicate, so that DDL, the engine and
 * the views agree.  It reads pg_index.indpred, because the relation cache holds the folded
 * predicate, where a function that is always true no longer exists.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/option.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_index.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "definition/key.h"
#include "definition/option.h"
#include "ttl_index.h"

static bool
is_option_function(Oid funcid, void *context)
{
	for (int i = 0; i < TTL_OPTION_FUNCTIONS; i++)
	{
		if (funcid == ttl_function_option(context, i))
			return OidIsValid(funcid);
	}
	return false;
}

/* Is this the name of an option function, '...'::regproc? */
static bool
is_option_name(Node *node, void *context)
{
	Const	   *value = (Const *) node;

	return IsA(node, Const) && !value->constisnull &&
		(value->consttype == REGPROCOID || value->consttype == REGPROCEDUREOID) &&
		is_option_function(DatumGetObjectId(value->constvalue), context);
}

/* Does an option function occur here?  Each occurrence is a dependency. */
bool
ttl_option_is_within(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (check_functions_in_node(node, is_option_function, context) ||
		is_option_name(node, context))
		return true;
	return expression_tree_walker(node, ttl_option_is_within, context);
}

/*
 * Is this an option that the library does not know: of a later version of the extension, or
 * renamed?  All other functions of the extension return something else than a boolean.
 */
static bool
is_unknown_option(Oid funcid, void *context)
{
	const TtlFunctions *functions = context;

	return funcid >= FirstNormalObjectId && get_func_rettype(funcid) == BOOLOID &&
		ttl_function_is_alias(funcid) &&
		getExtensionOfObject(ProcedureRelationId, funcid) ==
		getExtensionOfObject(ProcedureRelationId, functions->expire_after_seconds);
}

static bool
has_unknown_option(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return check_functions_in_node(node, is_unknown_option, context) ||
		expression_tree_walker(node, has_unknown_option, context);
}

/* Is a value of this type small, whatever its text? */
static bool
is_quick(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID ||
		type == FLOAT8OID || type == INTERVALOID;
}

/*
 * Is this a built-in function of such values that does nothing but compute?  It is none
 * where the operator that calls it was dropped meanwhile.
 */
static bool
is_plain_function(Oid function, Oid result, List *args)
{
	ListCell   *lc;

	foreach(lc, args)
	{
		if (!is_quick(exprType(lfirst(lc))))
			return false;
	}
	return OidIsValid(function) && function < FirstUnpinnedObjectId &&
		is_quick(result) &&
		get_func_prokind(function) == PROKIND_FUNCTION &&
		func_volatile(function) == PROVOLATILE_IMMUTABLE &&
		func_strict(function) && !get_func_retset(function) &&
		get_func_nargs(function) == list_length(args);
}

/*
 * Calls such a function; returns NULL where it returns that, or raises an error.  Such an
 * error leaves nothing behind, as the function took nothing but memory.
 */
static Const *
call_plain_function(Oid function, Oid type, List *args)
{
	LOCAL_FCINFO(fcinfo, FUNC_MAX_ARGS);
	MemoryContext context = CurrentMemoryContext;
	FmgrInfo	flinfo;
	volatile Datum result = (Datum) 0;
	volatile bool isnull = true;
	int16		length;
	bool		by_value;
	ListCell   *lc;

	fmgr_info(function, &flinfo);
	InitFunctionCallInfoData(*fcinfo, &flinfo, list_length(args), InvalidOid,
							 NULL, NULL);
	foreach(lc, args)
	{
		fcinfo->args[foreach_current_index(lc)].value = lfirst_node(Const, lc)->constvalue;
		fcinfo->args[foreach_current_index(lc)].isnull = false;
	}
	PG_TRY();
	{
		result = FunctionCallInvoke(fcinfo);
		isnull = fcinfo->isnull;
	}
	PG_CATCH();
	{
		int			category = ERRCODE_TO_CATEGORY(geterrcode());

		/* interval() raises an internal error for an invalid type modifier */
		if (category != ERRCODE_DATA_EXCEPTION && category != ERRCODE_INTERNAL_ERROR)
			PG_RE_THROW();
		FlushErrorState();
		MemoryContextSwitchTo(context);
	}
	PG_END_TRY();
	if (isnull)
		return NULL;
	get_typlenbyval(type, &length, &by_value);
	return makeConst(type, -1, InvalidOid, length, result, false, by_value);
}

/*
 * Computes an expression of constants, built-in functions and operators of integers, double
 * precision and intervals.  NULL for anything else, because other functions can be slow or a
 * user's.  NULL also for an error, which CREATE INDEX does not notice if another member is
 * false.
 */
static Const *
constant_value(Node *expression)
{
	List	   *values = NIL;
	List	   *args;
	Oid			function;
	ListCell   *lc;

	check_stack_depth();
	while (IsA(expression, RelabelType))
		expression = (Node *) ((RelabelType *) expression)->arg;
	if (IsA(expression, Const))
		return ((Const *) expression)->constisnull ? NULL : (Const *) expression;
	if (IsA(expression, FuncExpr))
	{
		function = ((FuncExpr *) expression)->funcid;
		args = ((FuncExpr *) expression)->args;
	}
	else if (IsA(expression, OpExpr))
	{
		function = get_opcode(((OpExpr *) expression)->opno);
		args = ((OpExpr *) expression)->args;
	}
	else
		return NULL;
	if (!is_plain_function(function, exprType(expression), args))
		return NULL;
	foreach(lc, args)
	{
		Const	   *value = constant_value(lfirst(lc));

		if (value == NULL)
			return NULL;
		values = lappend(values, value);
	}
	return call_plain_function(function, exprType(expression), values);
}

static Const *
make_integer(int32 value)
{
	return makeConst(INT4OID, -1, InvalidOid, sizeof(int32),
					 Int32GetDatum(value), false, true);
}

/*
 * What ttl_index.seconds() returns for an interval; NULL where it raises an error, also
 * for the infinite ones of PostgreSQL 17, which have months.
 */
static Node *
interval_seconds(const Interval *span)
{
	int64		seconds = (int64) span->day * SECS_PER_DAY + span->time / USECS_PER_SEC;

	if (span->month != 0 || span->time % USECS_PER_SEC != 0 ||
		seconds < 0 || seconds > PG_INT32_MAX)
		return NULL;
	return (Node *) make_integer((int32) seconds);
}

/*
 * Replaces the calls of ttl_index.seconds() by their results.  It is a PL/pgSQL function:
 * nobody who only looks at an index has to run that.
 */
static Node *
replace_seconds(Node *node, void *functions)
{
	FuncExpr   *call = (FuncExpr *) node;

	if (node == NULL)
		return NULL;
	if (IsA(node, FuncExpr) && OidIsValid(call->funcid) &&
		call->funcid == ((const TtlFunctions *) functions)->seconds)
	{
		List	   *arguments = ttl_function_arguments(call);
		Const	   *span = list_length(arguments) == 1 ?
		constant_value(linitial(arguments)) : NULL;
		Node	   *seconds = span ?
		interval_seconds(DatumGetIntervalP(span->constvalue)) : NULL;

		/* what cannot be replaced has no value */
		return seconds ? seconds : node;
	}
	return expression_tree_mutator(node, replace_seconds, functions);
}

/* The value of an option's argument; NULL where it is not a constant. */
static Const *
option_argument(FuncExpr *call, const TtlFunctions *functions)
{
	List	   *arguments = ttl_function_arguments(call);

	if (list_length(call->args) != 1 || list_length(arguments) != 1)
		return NULL;
	return constant_value(replace_seconds(linitial(arguments),
										  (void *) functions));
}

/* Reads what stands as the seconds of an option; false where it is no constant integer. */
bool
ttl_option_read_seconds(Node *argument, int32 *seconds)
{
	TtlFunctions functions;
	Const	   *value;

	if (!ttl_function_lookup(&functions))
		return false;
	value = constant_value(replace_seconds(argument, &functions));
	if (value == NULL || value->consttype != INT4OID)
		return false;
	*seconds = DatumGetInt32(value->constvalue);
	return true;
}

/* Reads an option that stands for itself: that it is there is all that is known of it. */
static void
read_flag(const Const *value, const char *name, bool *flag, TtlOption *option)
{
	if (*flag)
		option->problem = psprintf("the option %s occurs twice", name);
	if (value != NULL && !DatumGetBool(value->constvalue))
		option->problem = psprintf("the option %s cannot be false: leave it out", name);
	*flag = true;
}

/*
 * Reads one of the options about partitions.  Its value is NULL where it has no argument.
 */
static void
read_partition_option(const FuncExpr *call, const Const *value,
					  const TtlFunctions *functions, TtlOption *option)
{
	if (call->funcid == functions->detach_expired_partitions)
	{
		if (option->drop_partitions && !option->detach_partitions)
			option->problem = TTL_DROP_OR_DETACH;
		read_flag(value, "detach_expired_partitions", &option->detach_partitions, option);
		option->drop_partitions = true;
	}
	else if (call->funcid == functions->drop_expired_partitions)
	{
		if (option->drop_partitions)
			option->problem = option->detach_partitions ? TTL_DROP_OR_DETACH :
				"the option drop_expired_partitions occurs twice";
		option->drop_partitions = true;
		option->boundary_rows = value && DatumGetBool(value->constvalue);
	}
	else
	{
		if (option->bucket_seconds != 0)
			option->problem = "the option bucket_max_span_seconds occurs twice";
		option->bucket_seconds = DatumGetInt32(value->constvalue);
		if (option->bucket_seconds < TTL_MIN_BUCKET_SECONDS ||
			option->bucket_seconds > TTL_MAX_BUCKET_SECONDS)
			option->problem = TTL_BUCKET_SECONDS_RANGE;
	}
}

/* Notes each relation that the node names, as '...'::regclass. */
static bool
note_relations(Node *node, void *relations)
{
	const Const *value = (const Const *) node;
	List	  **list = relations;

	if (node == NULL)
		return false;
	if (IsA(node, Const) && value->consttype == REGCLASSOID && !value->constisnull)
		*list = list_append_unique_oid(*list, DatumGetObjectId(value->constvalue));
	return expression_tree_walker(node, note_relations, relations);
}

/* The relations that the node names: PostgreSQL makes the index depend on each. */
List *
ttl_option_named_relations(Node *node)
{
	List	   *relations = NIL;

	(void) note_relations(node, &relations);
	return relations;
}

/*
 * Reads where rows are moved to.  A number in the place of a name would be no dependency,
 * so that the table could be dropped, and the number be that of another one.
 */
static void
read_archive(const Const *value, TtlOption *option)
{
	if (OidIsValid(option->archive_to))
		option->problem = "the option archive_to occurs twice";
	else if (value->consttype != REGCLASSOID)
		option->problem = "the option archive_to takes the name of a table";
	else if (!OidIsValid(DatumGetObjectId(value->constvalue)))
		option->problem = "the option archive_to names no table: leave it out";
	option->archive_to = DatumGetObjectId(value->constvalue);
}

static void
read_member(Node *member, const TtlFunctions *functions, TtlOption *option,
			bool *has_seconds)
{
	FuncExpr   *call = (FuncExpr *) member;
	Const	   *value;

	if (!ttl_option_is_within(member, (void *) functions) &&
		!has_unknown_option(member, (void *) functions))
	{
		option->filter = lappend(option->filter, member);
		return;
	}
	option->present = true;
	/* it could ask for anything but deleting the rows */
	if (!ttl_option_is_within(member, (void *) functions))
	{
		option->problem = "an option of a TTL index is not known to this version of the library";
		return;
	}
	if (!IsA(member, FuncExpr) ||
		!is_option_function(call->funcid, (void *) functions))
	{
		option->problem = "an option of a TTL index must be a member of the top-level AND of the predicate";
		return;
	}
	value = option_argument(call, functions);
	if (value == NULL && !(call->args == NIL &&
						   (call->funcid == functions->drop_expired_partitions ||
							call->funcid == functions->detach_expired_partitions ||
							call->funcid == functions->paused)))
		option->problem = "an option of a TTL index takes one argument, a constant that is not NULL";
	else if (call->funcid == functions->time_zone)
	{
		if (option->time_zone != NULL)
			option->problem = "the option time_zone occurs twice";
		option->time_zone = TextDatumGetCString(value->constvalue);
	}
	else if (call->funcid == functions->paused)
		read_flag(value, "paused", &option->paused, option);
	else if (call->funcid == functions->archive_to)
		read_archive(value, option);
	else if (call->funcid != functions->expire_after_seconds)
		read_partition_option(call, value, functions, option);
	else
	{
		if (*has_seconds)
			option->problem = "the option expire_after_seconds occurs twice";
		*has_seconds = true;
		option->seconds = DatumGetInt32(value->constvalue);
	}
}

/* A tree of pg_index, or NULL. */
Node *
ttl_option_stored_tree(HeapTuple tuple, AttrNumber attnum)
{
	bool		isnull;
	Datum		datum = SysCacheGetAttr(INDEXRELID, tuple, attnum, &isnull);

	return isnull ? NULL : stringToNode(TextDatumGetCString(datum));
}

/* Do rows go by this option? */
bool
ttl_option_expires(const TtlOption *option)
{
	return option->seconds >= 0 && !option->paused;
}

/*
 * Checks what options ask of each other.  -1, never, makes sense where documents can have
 * a TTL of their own, and for a time series.
 */
static void
check_together(bool has_seconds, TtlOption *option)
{
	if (!option->present || option->problem != NULL)
		return;
	if (has_seconds && option->seconds < 0 &&
		(option->seconds != -1 ||
		 (ttl_own_ttl_asked_for(option->filter) == NULL &&
		  option->bucket_seconds == 0)))
		option->problem = TTL_SECONDS_RANGE;
	else if (!has_seconds)
		option->problem = psprintf("the option %s needs the option expire_after_seconds beside it",
								   option->time_zone ? "time_zone" :
								   option->detach_partitions ? "detach_expired_partitions" :
								   option->drop_partitions ? "drop_expired_partitions" :
								   option->paused ? "paused" :
								   OidIsValid(option->archive_to) ? "archive_to" :
								   "bucket_max_span_seconds");
	else if (OidIsValid(option->archive_to) && option->detach_partitions)
		option->problem = TTL_ARCHIVE_OR_DETACH;
}

/* Reads the stored predicate of an index; false if there is no such index. */
bool
ttl_option_read(Oid indexrelid, TtlOption *option)
{
	TtlFunctions functions;
	HeapTuple	tuple;
	bool		usable;
	bool		has_seconds = false;
	Node	   *keys;
	List	   *members = NIL;
	ListCell   *lc;

	memset(option, 0, sizeof(*option));
	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	if (!HeapTupleIsValid(tuple))
		return false;
	usable = ((Form_pg_index) GETSTRUCT(tuple))->indisvalid ||
		get_rel_relkind(indexrelid) == RELKIND_PARTITIONED_INDEX;
	keys = ttl_option_stored_tree(tuple, Anum_pg_index_indexprs);
	members = make_ands_implicit((Expr *) ttl_option_stored_tree(tuple, Anum_pg_index_indpred));
	ReleaseSysCache(tuple);

	option->stored = members;
	if (!ttl_function_lookup(&functions))
	{
		option->filter = members;
		return true;
	}
	if (ttl_option_is_within(keys, &functions))
	{
		option->present = true;
		option->problem = "an option of a TTL index cannot be in its key";
	}
	foreach(lc, members)
	{
		/* where the build failed, the index is of no use */
		if (!usable && ttl_option_is_within(lfirst(lc), &functions))
		{
			option->present = true;
			option->problem = "the index is not valid";
		}
		else
			read_member(lfirst(lc), &functions, option, &has_seconds);
	}

	check_together(has_seconds, option);
	return true;
}

/*
 * The option for the index of a partition, which has its own filter.  Options about partitions
 * are left out, because they would be wrong after DETACH.  So they are in partitioned indexes
 * only, which REINDEX CONCURRENTLY does not rebuild: they are not saved.
 */
TtlOption
ttl_option_of_part(const TtlOption *whole, List *filter)
{
	TtlOption	part = *whole;

	part.filter = filter;
	part.drop_partitions = part.detach_partitions = part.boundary_rows = false;
	part.bucket_seconds = 0;

	/*
	 * -1 is not for a part alone.  If partitions are kept, no row of one may
	 * be deleted after DETACH.
	 */
	if ((whole->bucket_seconds != 0 && whole->seconds < 0) || whole->detach_partitions)
	{
		part.present = false;
		part.seconds = 0;
		part.time_zone = NULL;
		part.paused = false;
		part.archive_to = InvalidOid;
	}
	return part;
}

static Node *
make_option(Oid function, Const *argument)
{
	return (Node *) makeFuncExpr(function, BOOLOID,
								 argument ? list_make1(argument) : NIL,
								 InvalidOid,
								 argument ? argument->constcollid : InvalidOid,
								 COERCE_EXPLICIT_CALL);
}

/* The AND members of a predicate with this option, which may be absent. */
List *
ttl_option_members(const TtlOption *option)
{
	TtlFunctions functions;
	List	   *members = list_copy(option->filter);

	if (!option->present)
		return members;
	if (!ttl_function_lookup(&functions))
		elog(ERROR, "extension \"%s\" is not installed", TTL_EXTENSION);
	members = lappend(members,
					  make_option(functions.expire_after_seconds,
								  make_integer(option->seconds)));
	if (option->time_zone != NULL)
		members = lappend(members,
						  make_option(functions.time_zone,
									  makeConst(TEXTOID, -1,
												DEFAULT_COLLATION_OID, -1,
												CStringGetTextDatum(option->time_zone),
												false, false)));
	if (option->detach_partitions)
		members = lappend(members, make_option(functions.detach_expired_partitions, NULL));
	else if (option->drop_partitions)
		members = lappend(members,
						  make_option(functions.drop_expired_partitions,
									  option->boundary_rows ?
									  (Const *) makeBoolConst(true, false) : NULL));
	if (option->bucket_seconds != 0)
		members = lappend(members,
						  make_option(functions.bucket_max_span_seconds,
									  make_integer(option->bucket_seconds)));
	if (option->paused)
		members = lappend(members, make_option(functions.paused, NULL));
	if (OidIsValid(option->archive_to))
		members = lappend(members,
						  make_option(functions.archive_to,
									  makeConst(REGCLASSOID, -1, InvalidOid, sizeof(Oid),
												ObjectIdGetDatum(option->archive_to),
												false, true)));
	return members;
}

/* Do two options say the same, whatever the filters are? */
bool
ttl_option_same(const TtlOption *a, const TtlOption *b)
{
	if (a->present != b->present || a->seconds != b->seconds ||
		a->problem != NULL || b->problem != NULL ||
		a->drop_partitions != b->drop_partitions ||
		a->detach_partitions != b->detach_partitions ||
		a->bucket_seconds != b->bucket_seconds ||
		a->paused != b->paused ||
		a->archive_to != b->archive_to)
		return false;
	if (a->time_zone == NULL || b->time_zone == NULL)
		return a->time_zone == b->time_zone;
	return strcmp(a->time_zone, b->time_zone) == 0;
}

/*
 * Does the index of a partition carry what the option that governs it says?  One
 * that is malformed is left as it is: it expires nothing once it is detached.
 */
bool
ttl_option_is_inherited(Oid child, const TtlOption *governing, TtlOption *part)
{
	TtlOption	own;

	if (!governing->present || governing->problem != NULL ||
		!ttl_option_read(child, &own) || own.problem != NULL)
		return true;
	*part = ttl_option_of_part(governing, own.filter);
	return ttl_option_same(&own, part);
}
