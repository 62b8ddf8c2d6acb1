/*-------------------------------------------------------------------------
 *
 * temporary_object.c
 *	  Refuses types, functions and the like of pg_temp to the code of owners.
 *
 * A type of pg_temp outlives the restricted operation that makes it, and hides the one of
 * this name in pg_catalog wherever search_path does not name pg_temp: a domain "date" would
 * call its CHECK as the next owner whose trigger sets search_path, and as whoever goes on
 * in a session after run_pass().  Core refuses a temporary table there, and a type in
 * its latest releases only.
 *
 * Core finds no function, operator or the like in pg_temp that is called without its schema.  But
 * a trigger can make itself one for the session, pg_temp.helper(), unless it is there: in a
 * process in which it is that of another owner.
 *
 * Code that catches the error as return_next() of PL/Perl does keeps the object: only the end of a
 * subtransaction takes it back.  Then the same error is raised once more where that code is over.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/temporary_object.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_language.h"
#include "catalog/pg_statistic_ext.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "ttl_index.h"

/* how deep in subtransactions, at least, objects are that were refused and are still there; else 0 */
static int	refused_level = 0;

static object_access_hook_type next_object_access = NULL;

static void
raise_refused(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("cannot create an object in a temporary schema within security-restricted operation"),
			 errhint("Create it once, in another schema.")));
}

/* Raises the error once more if one that was refused is still there. */
void
ttl_temporary_object_check(void)
{
	if (refused_level > 0)
		raise_refused();
}

/* Code that core itself has called, for a CREATE INDEX, can have left one. */
static void
xact_event(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT)
		ttl_temporary_object_check();
	if (event == XACT_EVENT_ABORT)
		refused_level = 0;
}

static void
subxact_event(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();

	if (refused_level < level)
		return;
	if (event == SUBXACT_EVENT_COMMIT_SUB)
		refused_level = level - 1;
	if (event == SUBXACT_EVENT_ABORT_SUB)
		refused_level = 0;
}

/*
 * Is this the validator of PL/pgSQL?  It compiles a function for whoever may execute it,
 * and no plugin is told.
 */
static bool
is_validator(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(LANGNAME, CStringGetDatum("plpgsql"));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_language) GETSTRUCT(tuple))->lanvalidator == function;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Is this a part of a temporary table?  Types of its rows and of arrays come with one, and VACUUM
 * FULL makes them anew; ALTER TABLE does so with constraints and statistics.  Statistics of another
 * table would need a lock on that when the process ends.
 */
static bool
is_of_table(Oid class, HeapTuple tuple)
{
	char		kind;

	if (class == StatisticExtRelationId)
		return get_rel_persistence(((Form_pg_statistic_ext) GETSTRUCT(tuple))->stxrelid) ==
			RELPERSISTENCE_TEMP;
	if (class != TypeRelationId)
		return false;
	kind = ((Form_pg_type) GETSTRUCT(tuple))->typtype;
	return kind == TYPTYPE_COMPOSITE || kind == TYPTYPE_BASE;
}

/* Is an object, of which syscaches do not know yet, one of pg_temp that is not part of a table? */
static bool
is_temporary(Oid class, Oid object)
{
	AttrNumber	attnum = is_objectclass_supported(class) ?
	get_object_attnum_namespace(class) : InvalidAttrNumber;
	Relation	rel;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		isnull;
	bool		result = false;

	if (attnum == InvalidAttrNumber || class == RelationRelationId ||
		class == ConstraintRelationId)
		return false;
	rel = table_open(class, AccessShareLock);
	ScanKeyInit(&key, get_object_attnum_oid(class), BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(object));
	scan = systable_beginscan(rel, get_object_oid_index(class), true, SnapshotSelf, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		Datum		schema = heap_getattr(tuple, attnum, RelationGetDescr(rel), &isnull);

		result = isAnyTempNamespace(DatumGetObjectId(schema)) &&
			!is_of_table(class, tuple);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/* Types are refused in any restricted operation, as core does, and others in those of the extension. */
static bool
is_refused(Oid class, Oid object)
{
	return (class == TypeRelationId || OidIsValid(ttl_leftover_commander())) &&
		is_temporary(class, object);
}

static void
object_access(ObjectAccessType access, Oid classId, Oid objectId, int subId, void *arg)
{
	if (next_object_access)
		next_object_access(access, classId, objectId, subId, arg);
	if (!InSecurityRestrictedOperation())
		return;
	if (access == OAT_FUNCTION_EXECUTE && is_validator(objectId))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("cannot validate a function within security-restricted operation")));
	if (access == OAT_POST_CREATE && is_refused(classId, objectId))
	{
		int			level = GetCurrentTransactionNestLevel();

		/* another one can be there already, which is not gone with this one */
		refused_level = refused_level > 0 ? Min(refused_level, level) : level;
		raise_refused();
	}
}

void
ttl_temporary_object_init(void)
{
	RegisterXactCallback(xact_event, NULL);
	RegisterSubXactCallback(subxact_event, NULL);
	next_object_access = object_access_hook;
	object_access_hook = object_access;
}
