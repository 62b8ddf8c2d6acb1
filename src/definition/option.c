/*-------------------------------------------------------------------------
 *
 * option.c
 *	  The option in an index predicate: how it is read and written.
 *
 * A TTL index is an ordinary index with a call of expire_after_seconds() among the AND members
 * of its predicate.  Only this file reads the stored predicate, so that DDL, the engine and
 * the views agree.  It reads pg_index.indpred, because the relation cache holds the folded
 * predicate, where a function that is always true no longer exists.
 *
 * Everything that reads a definition compares the OIDs of the extension's functions, so they are
 * looked up once, and again after an invalidation of functions or schemas.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_index.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "definition/key.h"
#include "ttl_index.h"

/* The functions, in the order of the members of TtlFunctions. */
static const struct
{
	const char *name;
	int			nargs;
	Oid			types[3];
}			signatures[] =
{
	{"expire_after_seconds", 2, {INT4OID, INT4OID}},
	{"time_zone", 2, {TEXTOID, TEXTOID}},
	{"drop_expired_partitions", 2, {BOOLOID, BOOLOID}},
	{"bucket_max_span_seconds", 2, {INT4OID, INT4OID}},
	{"paused", 2, {BOOLOID, BOOLOID}},
	{"archive_to", 2, {REGCLASSOID, REGCLASSOID}},
	{"detach_expired_partitions", 2, {BOOLOID, BOOLOID}},
	{"unit", 2, {TEXTOID, TEXTOID}},
	{"seconds", 1, {INTERVALOID}},
	{"document_ttl", 2, {JSONBOID, TEXTOID}},
	{"column_ttl", 1, {INT8OID}},
	{"expire_at", 2, {TIMESTAMPTZOID, INT4OID}},
	{"document_date", 2, {JSONBOID, TEXTARRAYOID}},
	{"document_date_in", 3, {JSONBOID, TEXTOID, TEXTARRAYOID}}
};

StaticAssertDecl(sizeof(TtlFunctions) == lengthof(signatures) * sizeof(Oid),
				 "one signature for each function");

static uint64 definitions_version = 0;

static void
definitions_changed(Datum arg, SysCacheIdentifier cacheid, uint32 hashvalue)
{
	definitions_version++;
}

/*
 * Is this an alias of a built-in function, as option functions are?  Only a superuser can make one, so
 * a schema of our name that somebody else made is not taken for the extension.
 */
static bool
is_alias(Oid funcid)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_proc) GETSTRUCT(tuple))->prolang == INTERNALlanguageId;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Returns the OIDs of the functions; false if the extension is not installed.  This is not read
 * from pg_extension, because any role can lock that, and all DDL and the views would wait.
 */
bool
ttl_option_functions(TtlFunctions *functions)
{
	static TtlFunctions known;
	static uint64 known_version = 0;
	uint64		version;
	Oid			schema;

	if (definitions_version == 0)
	{
		CacheRegisterSyscacheCallback(PROCOID, definitions_changed, 0);
		CacheRegisterSyscacheCallback(NAMESPACEOID, definitions_changed, 0);
		definitions_version = 1;
	}
	version = definitions_version;
	if (version == known_version)
	{
		*functions = known;
		return true;
	}
	memset(functions, 0, sizeof(*functions));
	schema = get_namespace_oid(TTL_SCHEMA, true);
	if (!OidIsValid(schema))
		return false;
	for (int i = 0; i < lengthof(signatures); i++)
		((Oid *) functions)[i] =
			GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
							CStringGetDatum(signatures[i].name),
							PointerGetDatum(buildoidvector(signatures[i].types,
														   signatures[i].nargs)),
							ObjectIdGetDatum(schema));
	if (!is_alias(functions->expire_after_seconds) || !is_alias(functions->time_zone))
		return false;
	known = *functions;
	known_version = version;
	return true;
}

/* The option functions, and after them seconds(), one by one. */
Oid
ttl_option_function(const TtlFunctions *functions, int i)
{
	Assert(i < TTL_REMOVED_FUNCTIONS);
	return ((const Oid *) functions)[i];
}

/* The arguments of a call by position, also named ones, up to the first omitted one. */
List *
ttl_option_arguments(const FuncExpr *call)
{
	Node	   *by_position[FUNC_MAX_ARGS + 1] = {0};
	List	   *arguments = NIL;
	ListCell   *lc;

	foreach(lc, call->args)
	{
		NamedArgExpr *named = lfirst(lc);

		if (IsA(named, NamedArgExpr))
			by_position[named->argnumber] = (Node *) named->arg;
		else
			by_position[foreach_current_index(lc)] = lfirst(lc);
	}
	for (int i = 0; by_position[i] != NULL; i++)
		arguments = lappend(arguments, by_position[i]);
	return arguments;
}

static bool
is_option_function(Oid funcid, void *context)
{
	for (int i = 0; i < TTL_OPTION_FUNCTIONS; i++)
	{
		if (funcid == ttl_option_function(context, i))
			return OidIsValid(funcid);
	}
	return false;
}

/* Is an option function called here? */
bool
ttl_option_is_within(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return check_functions_in_node(node, is_option_function, context) ||
		expression_tree_walker(node, ttl_option_is_within, context);
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
		is_alias(funcid) &&
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

/*
 * Computes seconds that are written as a number, as ttl_index.seconds() of an interval, or as
 * sums and products of these, such as 30 * 86400.  False for anything else: other functions
 * can be slow, or a user's.
 */
static bool
compute_seconds(Node *node, const TtlFunctions *functions, int32 *seconds)
{
	check_stack_depth();
	if (IsA(node, Const))
	{
		const Const *value = (const Const *) node;

		*seconds = value->consttype == INT4OID ? DatumGetInt32(value->constvalue) : 0;
		return value->consttype == INT4OID && !value->constisnull;
	}
	if (IsA(node, OpExpr))
	{
		const OpExpr *operation = (const OpExpr *) node;
		RegProcedure function = get_opcode(operation->opno);
		int32		left;
		int32		right;

		if ((function != F_INT4MUL && function != F_INT4PL) ||
			!compute_seconds(linitial(operation->args), functions, &left) ||
			!compute_seconds(lsecond(operation->args), functions, &right))
			return false;
		return function == F_INT4MUL ? !pg_mul_s32_overflow(left, right, seconds) :
			!pg_add_s32_overflow(left, right, seconds);
	}
	if (IsA(node, FuncExpr) && ((FuncExpr *) node)->funcid == functions->seconds)
	{
		List	   *arguments = ttl_option_arguments((FuncExpr *) node);
		const Const *value = list_length(arguments) == 1 ? linitial(arguments) : NULL;
		const Interval *span;
		int64		result;

		if (value == NULL || !IsA(value, Const) || value->constisnull)
			return false;
		/* what ttl_index.seconds() returns, or false if it raises an error */
		span = DatumGetIntervalP(value->constvalue);
		result = (int64) span->day * SECS_PER_DAY + span->time / USECS_PER_SEC;
		*seconds = (int32) result;
		return span->month == 0 && span->time % USECS_PER_SEC == 0 &&
			result >= 0 && result <= PG_INT32_MAX;
	}
	return false;
}

/* Reads the call of an option function, and notes it among those that were seen. */
static void
read_call(FuncExpr *call, const TtlFunctions *functions, TtlOption *option, int *seen)
{
	List	   *arguments = ttl_option_arguments(call);
	Node	   *argument = NULL;
	Const	   *value = NULL;
	const char *name = get_func_name(call->funcid);
	bool		is_seconds = call->funcid == functions->expire_after_seconds ||
		call->funcid == functions->bucket_max_span_seconds;
	bool		needs_value = call->args != NIL ||
		call->funcid == functions->time_zone || call->funcid == functions->archive_to ||
		call->funcid == functions->unit;
	int32		seconds = 0;
	int			bit = 1;

	/* its only argument */
	if (list_length(call->args) == 1 && list_length(arguments) == 1)
		argument = linitial(arguments);
	while (argument != NULL && IsA(argument, RelabelType))
		argument = (Node *) ((RelabelType *) argument)->arg;
	if (argument != NULL && IsA(argument, Const) && !((Const *) argument)->constisnull)
		value = (Const *) argument;

	if (is_seconds && (argument == NULL || !compute_seconds(argument, functions, &seconds)))
		option->problem = psprintf("the option %s takes one argument: a number, ttl_index.seconds() of a constant, or sums and products of these",
								   name);
	else if (needs_value && !is_seconds && value == NULL)
		option->problem = "an option of a TTL index takes one argument, a constant that is not NULL";
	else if (call->funcid == functions->expire_after_seconds)
		option->seconds = seconds;
	else if (call->funcid == functions->bucket_max_span_seconds)
	{
		option->bucket_seconds = seconds;
		if (seconds < TTL_MIN_BUCKET_SECONDS || seconds > TTL_MAX_BUCKET_SECONDS)
			option->problem = TTL_BUCKET_SECONDS_RANGE;
	}
	else if (call->funcid == functions->time_zone)
		option->time_zone = TextDatumGetCString(value->constvalue);
	else if (call->funcid == functions->unit)
	{
		option->unit = ttl_keytype_find_unit(TextDatumGetCString(value->constvalue));
		if (option->unit == TTL_UNIT_NONE)
			option->problem = "the option unit takes " TTL_UNIT_NAMES;
	}
	else if (call->funcid == functions->archive_to)
	{
		/* a number would be no dependency on the table, and be another one's later */
		option->archive_to = DatumGetObjectId(value->constvalue);
		if (value->consttype != REGCLASSOID)
			option->problem = "the option archive_to takes the name of a table";
		else if (!OidIsValid(option->archive_to))
			option->problem = "the option archive_to names no table: leave it out";
	}
	else if (call->funcid == functions->drop_expired_partitions)
	{
		if (option->detach_partitions)
			option->problem = TTL_DROP_OR_DETACH;
		option->drop_partitions = true;
		option->boundary_rows = value && DatumGetBool(value->constvalue);
	}
	else
	{
		if (value != NULL && !DatumGetBool(value->constvalue))
			option->problem = psprintf("the option %s cannot be false: leave it out", name);
		if (call->funcid == functions->paused)
			option->paused = true;
		else if (option->drop_partitions)
			option->problem = TTL_DROP_OR_DETACH;
		if (call->funcid == functions->detach_expired_partitions)
			option->drop_partitions = option->detach_partitions = true;
	}

	for (int i = 0; call->funcid != ttl_option_function(functions, i); i++)
		bit <<= 1;
	if (*seen & bit)
		option->problem = psprintf("the option %s occurs twice", name);
	*seen |= bit;
}

/* A tree of pg_index, or NULL. */
Node *
ttl_option_stored_tree(HeapTuple tuple, AttrNumber attnum)
{
	bool		isnull;
	Datum		datum = SysCacheGetAttr(INDEXRELID, tuple, attnum, &isnull);

	return isnull ? NULL : stringToNode(TextDatumGetCString(datum));
}

/* Do rows expire by this option? */
bool
ttl_option_expires(const TtlOption *option)
{
	return option->seconds >= 0 && !option->paused;
}

/*
 * Reads the AND members of a predicate.  The options of an index that is not usable are of no
 * use: its build failed.
 */
void
ttl_option_read_members(List *members, bool usable, TtlOption *option)
{
	TtlFunctions functions;
	int			seen = 0;
	ListCell   *lc;

	memset(option, 0, sizeof(*option));
	if (!ttl_option_functions(&functions))
	{
		option->filter = members;
		return;
	}
	foreach(lc, members)
	{
		Node	   *member = lfirst(lc);
		bool		is_known = ttl_option_is_within(member, &functions);

		if (!is_known && !has_unknown_option(member, &functions))
		{
			option->filter = lappend(option->filter, member);
			continue;
		}
		option->present = true;
		/* an unknown option could ask for anything but deleting the rows */
		if (!is_known)
			option->problem = "an option of a TTL index is not known to this version of the library";
		else if (!usable)
			option->problem = "the index is not valid";
		else if (!IsA(member, FuncExpr) ||
				 !is_option_function(((FuncExpr *) member)->funcid, &functions))
			option->problem = "an option of a TTL index must be a member of the top-level AND of the predicate";
		else
			read_call((FuncExpr *) member, &functions, option, &seen);
	}
	if (!option->present || option->problem != NULL)
		return;

	/* expire_after_seconds is the first option, and the lowest bit */
	if ((seen & 1) == 0)
	{
		int			first = 1;

		while ((seen & (1 << first)) == 0)
			first++;
		option->problem = psprintf("the option %s needs the option expire_after_seconds beside it",
								   get_func_name(ttl_option_function(&functions, first)));
	}
	/* -1, never, is for documents with a TTL of their own, and for time series */
	else if (option->seconds < -1 ||
			 (option->seconds == -1 && option->bucket_seconds == 0 &&
			  ttl_own_ttl_asked_for(option->filter) == NULL))
		option->problem = TTL_SECONDS_RANGE;
	else if (OidIsValid(option->archive_to) && option->detach_partitions)
		option->problem = TTL_ARCHIVE_OR_DETACH;
}

/* Reads the stored predicate of an index; false if there is no such index. */
bool
ttl_option_read(Oid indexrelid, TtlOption *option)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	TtlFunctions functions;
	bool		usable;
	Node	   *keys;
	List	   *members;

	memset(option, 0, sizeof(*option));
	if (!HeapTupleIsValid(tuple))
		return false;
	usable = ((Form_pg_index) GETSTRUCT(tuple))->indisvalid ||
		get_rel_relkind(indexrelid) == RELKIND_PARTITIONED_INDEX;
	keys = ttl_option_stored_tree(tuple, Anum_pg_index_indexprs);
	members = make_ands_implicit((Expr *) ttl_option_stored_tree(tuple, Anum_pg_index_indpred));
	ReleaseSysCache(tuple);

	ttl_option_read_members(members, usable, option);
	if (ttl_option_functions(&functions) && ttl_option_is_within(keys, &functions))
	{
		option->present = true;
		option->problem = "an option of a TTL index cannot be in its key";
	}
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

	/*
	 * -1 of a time series is not for one partition.  If partitions are kept,
	 * no row of one may be deleted after DETACH.
	 */
	if ((whole->bucket_seconds != 0 && whole->seconds < 0) || whole->detach_partitions)
		return (TtlOption) {.filter = filter};
	part.drop_partitions = part.boundary_rows = false;
	part.bucket_seconds = 0;
	part.filter = filter;
	return part;
}

static List *
add_option(List *members, Oid function, Const *argument)
{
	return lappend(members,
				   makeFuncExpr(function, BOOLOID, argument ? list_make1(argument) : NIL,
								InvalidOid, argument ? argument->constcollid : InvalidOid,
								COERCE_EXPLICIT_CALL));
}

static Const *
make_text(const char *value)
{
	return makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1, CStringGetTextDatum(value), false, false);
}

static Const *
make_integer(int32 value)
{
	return makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum(value), false, true);
}

/* The AND members of a predicate with this option, which may be absent. */
List *
ttl_option_members(const TtlOption *option)
{
	TtlFunctions functions;
	List	   *members = list_copy(option->filter);

	if (!option->present)
		return members;
	if (!ttl_option_functions(&functions))
		elog(ERROR, "extension \"%s\" is not installed", TTL_EXTENSION);
	members = add_option(members, functions.expire_after_seconds, make_integer(option->seconds));
	if (option->time_zone != NULL)
		members = add_option(members, functions.time_zone, make_text(option->time_zone));
	if (option->unit != TTL_UNIT_NONE)
		members = add_option(members, functions.unit, make_text(ttl_keytype_units[option->unit]));
	if (option->detach_partitions)
		members = add_option(members, functions.detach_expired_partitions, NULL);
	else if (option->drop_partitions)
		members = add_option(members, functions.drop_expired_partitions,
							 option->boundary_rows ? (Const *) makeBoolConst(true, false) : NULL);
	if (option->bucket_seconds != 0)
		members = add_option(members, functions.bucket_max_span_seconds,
							 make_integer(option->bucket_seconds));
	if (option->paused)
		members = add_option(members, functions.paused, NULL);
	if (OidIsValid(option->archive_to))
		members = add_option(members, functions.archive_to,
							 makeConst(REGCLASSOID, -1, InvalidOid, sizeof(Oid),
									   ObjectIdGetDatum(option->archive_to), false, true));
	return members;
}

/* Are two options the same, apart from their filters? */
bool
ttl_option_same(const TtlOption *a, const TtlOption *b)
{
	TtlOption	one = *a;
	TtlOption	other = *b;

	one.filter = other.filter = NIL;
	return a->problem == NULL && b->problem == NULL &&
		equal(ttl_option_members(&one), ttl_option_members(&other));
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
