/*-------------------------------------------------------------------------
 *
 * option.c
 *	  The option in an index predicate: read, write, save.
 *
 * A TTL index is an ordinary index with a call of expire_after_seconds() among
 * the AND members of its predicate.  This file alone knows how that call is
 * read and written, so that DDL, the engine and the views never disagree.
 *
 * The call is looked for in pg_index.indpred as it is stored.  The relation
 * cache is of no use: it holds the folded predicate, in which a function that
 * is always true no longer exists.
 *
 * REINDEX CONCURRENTLY copies a predicate only where the folded one is not
 * empty, so it loses a lone option.  But it hands the pg_depend rows of the old
 * index to the new one.  So the option is saved as dependencies, which follow the
 * identity of the index, as a name or an OID would not, and disappear with it.
 *
 * What an index can depend on in place of a number are the columns of a composite
 * type of the extension, saved_option, one for each value of each digit: an index
 * depends on six columns for its seconds, and on six more for the hash of its time
 * zone's name.  These are ordinary addresses of objects, which all functions of
 * PostgreSQL can describe.  Six digits to the base of 36 hold every number of 31
 * bits, so that is the least base for six rows an index; with five, the type would
 * need 740 columns.  A number counts only where each of its digits is there once.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/option.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_index.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/prep.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "compat.h"
#include "ttl_index.h"

static Oid
lookup_function(Oid schema, const char *name, int nargs, Oid type1, Oid type2)
{
	Oid			args[2] = {type1, type2};

	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
						   CStringGetDatum(name),
						   PointerGetDatum(buildoidvector(args, nargs)),
						   ObjectIdGetDatum(schema));
}

static uint64 definitions_version = 1;

static void
definitions_changed(Datum arg, SysCacheIdentifier cacheid, uint32 hashvalue)
{
	definitions_version++;
}

/*
 * Another number whenever an index, a function or a schema may have changed: what
 * was found out about them under the same number still holds.
 */
uint64
ttl_definitions_version(void)
{
	static bool registered = false;

	if (!registered)
	{
		CacheRegisterSyscacheCallback(INDEXRELID, definitions_changed, 0);
		CacheRegisterSyscacheCallback(PROCOID, definitions_changed, 0);
		CacheRegisterSyscacheCallback(NAMESPACEOID, definitions_changed, 0);
		registered = true;
	}
	return definitions_version;
}

static bool
look_up_functions(TtlFunctions *functions)
{
	Oid			schema;

	memset(functions, 0, sizeof(*functions));
	if (!OidIsValid(get_extension_oid(TTL_EXTENSION, true)))
		return false;
	schema = get_namespace_oid(TTL_SCHEMA, true);
	if (!OidIsValid(schema))
		return false;
	functions->expire_after_seconds =
		lookup_function(schema, "expire_after_seconds", 2, INT4OID, INT4OID);
	functions->time_zone =
		lookup_function(schema, "time_zone", 2, TEXTOID, TEXTOID);
	functions->drop_expired_partitions =
		lookup_function(schema, "drop_expired_partitions", 2, BOOLOID, BOOLOID);
	functions->bucket_max_span_seconds =
		lookup_function(schema, "bucket_max_span_seconds", 2, INT4OID, INT4OID);
	functions->document_ttl =
		lookup_function(schema, "document_ttl", 2, JSONBOID, TEXTOID);
	functions->column_ttl =
		lookup_function(schema, "column_ttl", 1, INT8OID, InvalidOid);
	functions->expire_at =
		lookup_function(schema, "expire_at", 2, TIMESTAMPTZOID, INT4OID);
	functions->document_date =
		lookup_function(schema, "document_date", 2, JSONBOID, TEXTARRAYOID);
	functions->earliest =
		lookup_function(schema, "earliest", 1, TIMESTAMPTZARRAYOID, InvalidOid);
	return OidIsValid(functions->expire_after_seconds) &&
		OidIsValid(functions->time_zone);
}

/*
 * The option functions; false where the extension is not installed in this
 * database.
 */
bool
ttl_functions(TtlFunctions *functions)
{
	static TtlFunctions known;
	static uint64 known_version = 0;
	uint64		version = ttl_definitions_version();

	if (version == known_version)
	{
		*functions = known;
		return true;
	}
	if (!look_up_functions(functions))
		return false;
	known = *functions;
	known_version = version;
	return true;
}

/* The option functions, one by one. */
Oid
ttl_option_function(const TtlFunctions *functions, int i)
{
	const Oid	oids[TTL_OPTION_FUNCTIONS] = {
		functions->expire_after_seconds,
		functions->time_zone,
		functions->drop_expired_partitions,
		functions->bucket_max_span_seconds
	};

	return oids[i];
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
static bool
contains_option(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (check_functions_in_node(node, is_option_function, context) ||
		is_option_name(node, context))
		return true;
	return expression_tree_walker(node, contains_option, context);
}

static bool
is_integer(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

static bool
are_integers(Oid result, List *args)
{
	ListCell   *lc;

	foreach(lc, args)
	{
		if (!is_integer(exprType(lfirst(lc))))
			return false;
	}
	return is_integer(result);
}

/*
 * Anything but constants, and built-in functions and operators of integers?  Those
 * are quick; there are others that compute for hours.
 */
static bool
is_not_plain(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, FuncExpr))
	{
		FuncExpr   *call = (FuncExpr *) node;

		if (call->funcid >= FirstUnpinnedObjectId ||
			!are_integers(call->funcresulttype, call->args))
			return true;
	}
	else if (IsA(node, OpExpr))
	{
		OpExpr	   *call = (OpExpr *) node;

		if (call->opno >= FirstUnpinnedObjectId ||
			!are_integers(call->opresulttype, call->args))
			return true;
	}
	else if (!IsA(node, List) && !IsA(node, Const) && !IsA(node, RelabelType))
		return true;
	return expression_tree_walker(node, is_not_plain, context);
}

/* The argument of a call at a position; NULL where it is omitted. */
static Node *
argument_at(const FuncExpr *call, int position)
{
	for (int i = 0; i < list_length(call->args); i++)
	{
		Node	   *argument = list_nth(call->args, i);
		NamedArgExpr *named = (NamedArgExpr *) argument;

		if (!IsA(argument, NamedArgExpr) && i == position)
			return argument;
		if (IsA(argument, NamedArgExpr) && named->argnumber == position)
			return (Node *) named->arg;
	}
	return NULL;
}

/*
 * The arguments of a call in the order of their positions, also those that are given
 * by name, up to the first one that is omitted.
 */
List *
ttl_arguments(const FuncExpr *call)
{
	List	   *arguments = NIL;
	Node	   *argument;

	while ((argument = argument_at(call, list_length(arguments))) != NULL)
		arguments = lappend(arguments, argument);
	return arguments;
}

/*
 * The value of an option's argument; NULL where it is not a constant.  Functions
 * of users are not folded: they would run as whoever looks.
 */
static Const *
option_argument(FuncExpr *call)
{
	List	   *arguments = ttl_arguments(call);
	Node	   *folded;

	if (list_length(call->args) != 1 || list_length(arguments) != 1 ||
		is_not_plain((Node *) arguments, NULL))
		return NULL;
	folded = eval_const_expressions(NULL, linitial(arguments));
	if (!IsA(folded, Const) || ((Const *) folded)->constisnull)
		return NULL;
	return (Const *) folded;
}

/*
 * Reads one of the options of a table whose partitions are buckets.  Its value is
 * NULL where drop_expired_partitions() has no argument.
 */
static void
read_bucket_option(const FuncExpr *call, const Const *value,
				   const TtlFunctions *functions, TtlOption *option)
{
	if (call->funcid == functions->drop_expired_partitions)
	{
		if (option->drop_partitions)
			option->problem = "the option drop_expired_partitions occurs twice";
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

static void
read_member(Node *member, const TtlFunctions *functions, TtlOption *option,
			bool *has_seconds)
{
	FuncExpr   *call = (FuncExpr *) member;
	Const	   *value;

	if (!contains_option(member, (void *) functions))
	{
		option->filter = lappend(option->filter, member);
		return;
	}
	option->present = true;
	if (!IsA(member, FuncExpr) ||
		!is_option_function(call->funcid, (void *) functions))
	{
		option->problem = "an option of a TTL index must be a member of the top-level AND of the predicate";
		return;
	}
	value = option_argument(call);
	if (value == NULL && !(call->args == NIL &&
						   call->funcid == functions->drop_expired_partitions))
		option->problem = "an option of a TTL index takes one argument, a constant that is not NULL";
	else if (call->funcid == functions->time_zone)
	{
		if (option->time_zone != NULL)
			option->problem = "the option time_zone occurs twice";
		option->time_zone = TextDatumGetCString(value->constvalue);
	}
	else if (call->funcid != functions->expire_after_seconds)
		read_bucket_option(call, value, functions, option);
	else
	{
		if (*has_seconds)
			option->problem = "the option expire_after_seconds occurs twice";
		*has_seconds = true;
		option->seconds = DatumGetInt32(value->constvalue);
	}
}

/* A tree of pg_index, or NULL. */
static Node *
stored_tree(HeapTuple tuple, AttrNumber attnum)
{
	bool		isnull;
	Datum		datum = SysCacheGetAttr(INDEXRELID, tuple, attnum, &isnull);

	return isnull ? NULL : stringToNode(TextDatumGetCString(datum));
}

/*
 * Reads the predicate of an index as it is stored.  False where there is no
 * such index.
 */
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
	keys = stored_tree(tuple, Anum_pg_index_indexprs);
	members = make_ands_implicit((Expr *) stored_tree(tuple, Anum_pg_index_indpred));
	ReleaseSysCache(tuple);

	option->stored = members;
	if (!ttl_functions(&functions))
	{
		option->filter = members;
		return true;
	}
	if (contains_option(keys, &functions))
	{
		option->present = true;
		option->problem = "an option of a TTL index cannot be in its key";
	}
	foreach(lc, members)
	{
		/*
		 * Where the build failed, folding the argument may fail as well; the
		 * index is of no use anyway.
		 */
		if (!usable && contains_option(lfirst(lc), &functions))
		{
			option->present = true;
			option->problem = "the index is not valid";
		}
		else
			read_member(lfirst(lc), &functions, option, &has_seconds);
	}

	/*
	 * -1, never, makes sense where documents can have a TTL of their own, and
	 * for a time series
	 */
	if (has_seconds && option->seconds < 0 && option->problem == NULL &&
		(option->seconds != -1 ||
		 (ttl_pair_document_ttl(option->filter) == NULL &&
		  option->bucket_seconds == 0)))
		option->problem = TTL_SECONDS_RANGE;
	if (option->present && !has_seconds && option->problem == NULL)
		option->problem = psprintf("the option %s needs the option expire_after_seconds beside it",
								   option->time_zone ? "time_zone" :
								   option->drop_partitions ? "drop_expired_partitions" :
								   "bucket_max_span_seconds");
	return true;
}

/*
 * What a partition's index, with its own filter, is to carry of the option of the
 * whole.  Options about partitions are of no use to it, and would be wrong once it
 * is detached.  So they stand in partitioned indexes only, of which REINDEX
 * CONCURRENTLY loses nothing: they are not saved.
 */
TtlOption
ttl_option_of_part(const TtlOption *whole, List *filter)
{
	TtlOption	part = *whole;

	part.filter = filter;
	part.drop_partitions = part.boundary_rows = false;
	part.bucket_seconds = 0;
	/* a time series that never expires: -1 is not for the part alone */
	if (whole->bucket_seconds != 0 && whole->seconds < 0)
	{
		part.present = false;
		part.seconds = 0;
		part.time_zone = NULL;
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

static Const *
make_integer(int32 value)
{
	return makeConst(INT4OID, -1, InvalidOid, sizeof(int32),
					 Int32GetDatum(value), false, true);
}

/* The AND members of a predicate with this option, which may be absent. */
List *
ttl_option_members(const TtlOption *option)
{
	TtlFunctions functions;
	List	   *members = list_copy(option->filter);

	if (!option->present)
		return members;
	if (!ttl_functions(&functions))
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
	if (option->drop_partitions)
		members = lappend(members,
						  make_option(functions.drop_expired_partitions,
									  option->boundary_rows ?
									  (Const *) makeBoolConst(true, false) : NULL));
	if (option->bucket_seconds != 0)
		members = lappend(members,
						  make_option(functions.bucket_max_span_seconds,
									  make_integer(option->bucket_seconds)));
	return members;
}

/*
 * Folds a predicate as the relation cache does.  This can run immutable
 * functions of users: call it as the table's owner.
 */
static Node *
fold_predicate(List *members)
{
	Node	   *folded;

	if (members == NIL)
		return NULL;
	folded = eval_const_expressions(NULL,
									(Node *) make_ands_explicit(copyObject(members)));
	folded = (Node *) canonicalize_qual((Expr *) folded, false);
	return (Node *) make_ands_implicit((Expr *) folded);
}

/*
 * Can no row of a table be in both of two indexes, as far as core's logic for the
 * planner can tell?  Folds as its owner.
 */
bool
ttl_filters_exclude(Oid relid, List *a, List *b)
{
	TtlUser		saved;
	bool		exclude;

	if (a == NIL || b == NIL)
		return false;
	ttl_become_owner(ttl_table_owner(relid), &saved);
	exclude = predicate_refuted_by((List *) fold_predicate(b),
								   (List *) fold_predicate(a), true);
	ttl_restore_user(&saved);
	return exclude;
}

/* Are two filters of a table the same once folded?  Folds as its owner. */
bool
ttl_same_filter(Oid relid, List *a, List *b)
{
	TtlUser		saved;
	bool		same;

	ttl_become_owner(ttl_table_owner(relid), &saved);
	same = equal(fold_predicate(a), fold_predicate(b));
	ttl_restore_user(&saved);
	return same;
}

/* How many digits there are in saved_option, and how many columns for each. */
#define DIGITS 6
#define BASE 36

/* The numbers of a saved option: the columns of one come after those of the other. */
typedef enum SavedNumber
{
	SAVED_SECONDS,
	SAVED_TIME_ZONE
} SavedNumber;

#define SAVED_NUMBERS 2

/* What is saved of an option. */
typedef struct SavedOption
{
	bool		present;
	int32		seconds;
	bool		has_time_zone;
	int32		time_zone_hash;
} SavedOption;

/* What pg_depend says of an index. */
typedef struct Dependencies
{
	bool		on_function[TTL_OPTION_FUNCTIONS];
	/* how many columns of saved_option, and the sum of what they stand for */
	int			count[SAVED_NUMBERS];
	int			digits[SAVED_NUMBERS][DIGITS];	/* how many of each digit */
	int64		sum[SAVED_NUMBERS];
} Dependencies;

/* The type, as a relation; invalid where the library is newer than the objects. */
static Oid
saved_option_type(void)
{
	return get_relname_relid("saved_option",
							 get_namespace_oid(TTL_SCHEMA, true));
}

/* The value of one digit, the first digit being the greatest. */
static int64
digit_value(int place, int digit)
{
	int64		value = digit;

	while (++place < DIGITS)
		value *= BASE;
	return value;
}

/* Notes a column of saved_option. */
static void
read_digit(AttrNumber attnum, Dependencies *found)
{
	int			number = (attnum - 1) / (DIGITS * BASE);
	int			place = (attnum - 1) / BASE % DIGITS;

	if (attnum < 1 || number >= SAVED_NUMBERS)
		return;
	found->count[number]++;
	found->digits[number][place]++;
	found->sum[number] += digit_value(place, (attnum - 1) % BASE);
}

/* Reads the pg_depend rows of an index that are about options. */
static void
read_dependencies(Oid indexrelid, const TtlFunctions *functions,
				  Dependencies *found)
{
	Oid			type = saved_option_type();
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	memset(found, 0, sizeof(*found));
	ScanKeyInit(&key[0], Anum_pg_depend_classid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&key[1], Anum_pg_depend_objid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(indexrelid));
	scan = systable_beginscan(depend, DependDependerIndexId, true, NULL, 2,
							  key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend row = (Form_pg_depend) GETSTRUCT(tuple);

		if (row->refclassid == RelationRelationId && row->refobjid == type)
			read_digit(row->refobjsubid, found);
		else if (row->refclassid == ProcedureRelationId)
		{
			for (int i = 0; i < TTL_OPTION_FUNCTIONS; i++)
			{
				if (row->refobjid == ttl_option_function(functions, i))
					found->on_function[i] = true;
			}
		}
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
}

/* A number, if each of its digits is there once. */
static bool
read_number(const Dependencies *found, SavedNumber number, int32 *value)
{
	for (int i = 0; i < DIGITS; i++)
	{
		if (found->digits[number][i] != 1)
			return false;
	}
	*value = (int32) found->sum[number];
	return found->sum[number] <= PG_INT32_MAX;
}

/* The saved option; none unless all of it is there. */
static SavedOption
saved_option(const Dependencies *found)
{
	SavedOption none = {0};
	SavedOption saved = {0};

	saved.present = read_number(found, SAVED_SECONDS, &saved.seconds);
	saved.has_time_zone = found->count[SAVED_TIME_ZONE] > 0;
	if (saved.has_time_zone &&
		!read_number(found, SAVED_TIME_ZONE, &saved.time_zone_hash))
		return none;
	return saved.present ? saved : none;
}

/* Does the index depend on an option function, whatever its predicate says? */
bool
ttl_is_dependent(Oid indexrelid)
{
	TtlFunctions functions;
	Dependencies found;

	if (!ttl_functions(&functions))
		return false;
	read_dependencies(indexrelid, &functions, &found);
	for (int i = 0; i < TTL_OPTION_FUNCTIONS; i++)
	{
		if (found.on_function[i])
			return true;
	}
	return false;
}

/* What is saved for an index. */
static SavedOption
read_saved_option(Oid indexrelid)
{
	TtlFunctions functions;
	SavedOption none = {0};
	Dependencies found;

	if (!ttl_functions(&functions))
		return none;
	read_dependencies(indexrelid, &functions, &found);
	return saved_option(&found);
}

/* Makes an option that was lost what was saved of it.  False where nothing was. */
bool
ttl_saved_option_apply(Oid indexrelid, TtlOption *option)
{
	SavedOption saved = read_saved_option(indexrelid);
	char	   *time_zone = NULL;

	if (saved.has_time_zone)
		time_zone = ttl_time_zone_by_hash(saved.time_zone_hash);
	if (!saved.present || (saved.has_time_zone && time_zone == NULL))
		return false;
	option->present = true;
	option->seconds = saved.seconds;
	option->time_zone = time_zone;
	return true;
}

/*
 * Makes an index depend on the option functions that occur in it, and on no others.
 * One that occurs elsewhere than as an option has its dependency, too: without it,
 * DROP EXTENSION would leave an index behind that nobody can open.
 */
static void
follow_functions(Oid indexrelid, const TtlFunctions *functions,
				 const Dependencies *found)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	List	   *trees;

	if (!HeapTupleIsValid(tuple))
		return;
	trees = list_make2(stored_tree(tuple, Anum_pg_index_indexprs),
					   stored_tree(tuple, Anum_pg_index_indpred));
	ReleaseSysCache(tuple);
	for (int i = 0; i < TTL_OPTION_FUNCTIONS; i++)
	{
		TtlFunctions only = {0};
		Oid			function = ttl_option_function(functions, i);
		ObjectAddress index;
		ObjectAddress target;
		bool		occurs;

		/* look for this one alone */
		only.expire_after_seconds = function;
		occurs = contains_option((Node *) trees, &only);
		ObjectAddressSet(index, RelationRelationId, indexrelid);
		ObjectAddressSet(target, ProcedureRelationId, function);
		if (occurs && !found->on_function[i])
			recordDependencyOn(&index, &target, DEPENDENCY_NORMAL);
		else if (!occurs && found->on_function[i])
			deleteDependencyRecordsForSpecific(RelationRelationId, indexrelid,
											   DEPENDENCY_NORMAL,
											   ProcedureRelationId, function);
	}
}

/* Appends the columns that stand for a number. */
static int
number_columns(Oid type, SavedNumber number, int32 value, ObjectAddress *columns)
{
	for (int place = DIGITS - 1; place >= 0; place--)
	{
		ObjectAddressSubSet(columns[place], RelationRelationId, type,
							1 + (number * DIGITS + place) * BASE + value % BASE);
		value /= BASE;
	}
	return DIGITS;
}

/* Replaces what is saved for an index. */
static void
save_option(Oid indexrelid, const SavedOption *saved)
{
	Oid			type = saved_option_type();
	ObjectAddress index;
	ObjectAddress columns[SAVED_NUMBERS * DIGITS];
	int			count = 0;

	if (!OidIsValid(type))
		return;
	deleteDependencyRecordsForSpecific(RelationRelationId, indexrelid,
									   DEPENDENCY_NORMAL, RelationRelationId,
									   type);
	ObjectAddressSet(index, RelationRelationId, indexrelid);
	if (saved->present)
		count += number_columns(type, SAVED_SECONDS, saved->seconds, columns);
	if (saved->present && saved->has_time_zone)
		count += number_columns(type, SAVED_TIME_ZONE, saved->time_zone_hash,
								columns + count);
	recordMultipleDependencies(&index, columns, count, DEPENDENCY_NORMAL);
}

/*
 * What is to be saved of an option.  -1 seconds need nothing: the filter beside
 * them is never folded away, and a time series has them in its partitioned index
 * alone.
 */
static SavedOption
to_be_saved(const TtlOption *option)
{
	SavedOption saved = {0};

	saved.present = option->present && option->seconds >= 0;
	if (!saved.present)
		return saved;
	saved.seconds = option->seconds;
	saved.has_time_zone = option->time_zone != NULL;
	if (saved.has_time_zone)
		saved.time_zone_hash = ttl_time_zone_hash(option->time_zone);
	return saved;
}

static bool
same_saved_option(const SavedOption *a, const SavedOption *b)
{
	return a->present == b->present && a->seconds == b->seconds &&
		a->has_time_zone == b->has_time_zone &&
		a->time_zone_hash == b->time_zone_hash;
}

/*
 * Makes the dependencies of an index say what its predicate says, and saves its
 * option.  Writes nothing where they do already.
 */
void
ttl_saved_option_write(Oid indexrelid, const TtlOption *option)
{
	TtlFunctions functions;
	Dependencies found;
	SavedOption old;
	SavedOption new = to_be_saved(option);

	Assert(!option->present || option->problem == NULL);
	if (!ttl_functions(&functions))
		return;
	read_dependencies(indexrelid, &functions, &found);
	follow_functions(indexrelid, &functions, &found);
	old = saved_option(&found);
	if (!same_saved_option(&old, &new) ||
		found.count[SAVED_SECONDS] != (new.present ? DIGITS : 0) ||
		found.count[SAVED_TIME_ZONE] != (new.has_time_zone ? DIGITS : 0))
		save_option(indexrelid, &new);
	CommandCounterIncrement();
}

/*
 * Puts the option, with the filter that the index has, into pg_index.indpred,
 * and saves it.  The caller holds SHARE UPDATE EXCLUSIVE on the index, and some lock
 * on the table that keeps it from changing, and has made sure that the folded
 * predicate stays the same, so the index needs no rebuild.
 */
void
ttl_option_write(Oid indexrelid, const TtlOption *option)
{
	Relation	pg_index = table_open(IndexRelationId, RowExclusiveLock);
	HeapTuple	old;
	HeapTuple	tuple;
	Form_pg_index form;
	List	   *members = ttl_option_members(option);
	Datum		values[Natts_pg_index] = {0};
	bool		nulls[Natts_pg_index] = {0};
	bool		replace[Natts_pg_index] = {0};

	old = SearchSysCacheCopy1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	if (!HeapTupleIsValid(old))
		elog(ERROR, "cache lookup failed for index %u", indexrelid);
	form = (Form_pg_index) GETSTRUCT(old);

	replace[Anum_pg_index_indpred - 1] = true;
	if (members == NIL)
		nulls[Anum_pg_index_indpred - 1] = true;
	else
		values[Anum_pg_index_indpred - 1] =
			CStringGetTextDatum(nodeToString(make_ands_explicit(members)));

	/* CLUSTER without a name would stop at an index with a predicate. */
	if (form->indisclustered && members != NIL)
	{
		replace[Anum_pg_index_indisclustered - 1] = true;
		values[Anum_pg_index_indisclustered - 1] = BoolGetDatum(false);
		ereport(NOTICE,
				(errmsg("index \"%s\" is no longer marked for CLUSTER",
						get_rel_name(indexrelid)),
				 errdetail("A TTL index cannot be clustered on.")));
	}

	/*
	 * The planner compares the xmin of this row with its snapshot where
	 * indcheckxmin is set.  The new row gets a new xmin, so an index that was
	 * good for everybody would be lost for a while to those with an older
	 * snapshot.
	 */
	if (form->indcheckxmin &&
		TransactionIdPrecedes(HeapTupleHeaderGetXmin(old->t_data),
							  GetOldestNonRemovableTransactionId(NULL)))
	{
		replace[Anum_pg_index_indcheckxmin - 1] = true;
		values[Anum_pg_index_indcheckxmin - 1] = BoolGetDatum(false);
	}

	tuple = heap_modify_tuple(old, RelationGetDescr(pg_index), values, nulls,
							  replace);
	CatalogTupleUpdate(pg_index, &old->t_self, tuple);
	CacheInvalidateRelcacheByRelid(form->indrelid);
	CacheInvalidateRelcacheByRelid(indexrelid);
	table_close(pg_index, RowExclusiveLock);
	CommandCounterIncrement();

	ttl_saved_option_write(indexrelid, option);
}

/* Locks an index and its table for a repair, if that takes no waiting. */
bool
ttl_lock_for_repair(Oid indexrelid)
{
	Oid			relid = IndexGetRelation(indexrelid, true);

	if (!OidIsValid(relid) ||
		!ConditionalLockRelationOid(relid, ShareUpdateExclusiveLock))
		return false;
	if (ConditionalLockRelationOid(indexrelid, ShareUpdateExclusiveLock))
		return true;
	UnlockRelationOid(relid, ShareUpdateExclusiveLock);
	return false;
}

/* Makes an index depend on the option functions that occur in it. */
static void
complete_dependencies(Oid indexrelid, void *arg)
{
	TtlFunctions functions;
	TtlOption	option;
	Dependencies found;

	if (!ttl_functions(&functions) ||
		!ttl_option_read(indexrelid, &option) || !option.present)
		return;
	read_dependencies(indexrelid, &functions, &found);
	follow_functions(indexrelid, &functions, &found);
}

/*
 * REINDEX CONCURRENTLY hands on the dependencies of the old index, which still
 * calls the option.  If it is interrupted before it drops that one, nothing would
 * keep DROP EXTENSION from leaving an index behind that nobody can open.
 */
static void
keep_leftovers(Oid indexrelid)
{
	ttl_catalog_each(ttl_catalog_table_indexes(IndexGetRelation(indexrelid, false)),
					 complete_dependencies, NULL);
}

/*
 * The same for all indexes of the database, also where what had the dependencies
 * is gone.
 */
void
ttl_dependencies_complete(void)
{
	Relation	rel = table_open(IndexRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	List	   *indexes = NIL;
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		if (!heap_attisnull(tuple, Anum_pg_index_indpred, NULL) ||
			!heap_attisnull(tuple, Anum_pg_index_indexprs, NULL))
			indexes = lappend_oid(indexes,
								  ((Form_pg_index) GETSTRUCT(tuple))->indexrelid);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	ttl_catalog_each(indexes, complete_dependencies, NULL);
	CommandCounterIncrement();
}

/*
 * Puts the option back that REINDEX CONCURRENTLY has lost of a locked index, if it
 * is saved.
 */
void
ttl_saved_option_restore(Oid indexrelid)
{
	TtlOption	option;

	if (!ttl_option_read(indexrelid, &option) || option.present ||
		!ttl_saved_option_apply(indexrelid, &option))
		return;
	ttl_option_write(indexrelid, &option);
	keep_leftovers(indexrelid);
	ereport(LOG,
			(errmsg("restored expire_after_seconds(%d) of TTL index \"%s\"",
					option.seconds, get_rel_name(indexrelid)),
			 errdetail("REINDEX CONCURRENTLY had lost it.")));
}

/* A TTL that stopped is said so in every pass: it must not be silent. */
static void
warn_if_lost(Oid indexrelid)
{
	TtlIndex	index;

	if (ttl_catalog_describe(indexrelid, false, &index) &&
		index.state == TTL_OPTION_LOST)
		ereport(WARNING,
				(errmsg("the option of TTL index \"%s\" was lost, and no saved option was found",
						get_rel_name(indexrelid)),
				 errhint("Set it again with ttl_index.coll_mod_index(), or make it a plain index with ttl_index.remove_ttl().")));
}

/*
 * Repairs what REINDEX CONCURRENTLY lost of an index, if the locks can be had at
 * once, and makes its saved option complete.
 */
void
ttl_option_restore(Oid indexrelid)
{
	TtlOption	option;

	if (!ttl_lock_for_repair(indexrelid))
		return;
	ttl_saved_option_restore(indexrelid);
	if (ttl_option_read(indexrelid, &option) && option.present &&
		option.problem == NULL)
		ttl_saved_option_write(indexrelid, &option);
	warn_if_lost(indexrelid);
}

/* Does an index need that?  Cheap, and takes no lock. */
bool
ttl_option_is_amiss(Oid indexrelid)
{
	TtlOption	option;
	SavedOption saved = read_saved_option(indexrelid);
	SavedOption wanted;

	if (!ttl_option_read(indexrelid, &option) || option.problem != NULL)
		return false;
	wanted = to_be_saved(&option);
	return !option.present || !same_saved_option(&saved, &wanted);
}

static void
restore_if_amiss(Oid indexrelid, void *arg)
{
	if (ttl_option_is_amiss(indexrelid))
		ttl_option_restore(indexrelid);
}

/* Restores whatever needs it in this database. */
void
ttl_options_restore(void)
{
	ttl_catalog_each(ttl_catalog_dependents(), restore_if_amiss, NULL);
}
