/*-------------------------------------------------------------------------
 *
 * temporary_type.c
 *	  Refuses types of pg_temp to the code of owners.
 *
 * A type of pg_temp outlives the restricted operation that makes it, and hides the one of
 * this name in pg_catalog wherever search_path does not name pg_temp: a domain "date" would
 * call its CHECK as the next owner whose trigger sets search_path, and as whoever goes on
 * in a session after run_pass().  Core refuses a temporary table there, and a type in
 * its latest releases only.
 *
 * Code that catches the error as return_next() of PL/Perl does keeps the type: only the end of a
 * subtransaction takes it back.  Then the same error is raised once more where that code is over.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/temporary_type.c
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
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "ttl_index.h"

/* how deep in subtransactions, at least, types are that were refused and are still there; else 0 */
static int	refused_level = 0;

static object_access_hook_type next_object_access = NULL;

static void
raise_refused(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("cannot create a type in a temporary schema within security-restricted operation")));
}

/* Raises the error once more if a type that was refused is still there. */
void
ttl_temporary_type_check(void)
{
	if (refused_level > 0)
		raise_refused();
}

/* Code that core itself has called, for a CREATE INDEX, can have left one. */
static void
xact_event(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT)
		ttl_temporary_type_check();
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
 * Is a type, of which syscaches do not know yet, one of pg_temp?  Not those that come with
 * a table, which VACUUM FULL makes anew, of rows and of arrays of them.
 */
static bool
is_temporary(Oid type)
{
	Relation	rel = table_open(TypeRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		result = false;

	ScanKeyInit(&key, Anum_pg_type_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(type));
	scan = systable_beginscan(rel, TypeOidIndexId, true, SnapshotSelf, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_type form = (Form_pg_type) GETSTRUCT(tuple);

		result = form->typtype != TYPTYPE_COMPOSITE &&
			form->typtype != TYPTYPE_BASE &&
			isAnyTempNamespace(form->typnamespace);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
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
	if (access == OAT_POST_CREATE && classId == TypeRelationId && is_temporary(objectId))
	{
		int			level = GetCurrentTransactionNestLevel();

		/* another one can be there already, which is not gone with this one */
		refused_level = refused_level > 0 ? Min(refused_level, level) : level;
		raise_refused();
	}
}

void
ttl_temporary_type_init(void)
{
	RegisterXactCallback(xact_event, NULL);
	RegisterSubXactCallback(subxact_event, NULL);
	next_object_access = object_access_hook;
	object_access_hook = object_access;
}
