/*-------------------------------------------------------------------------
 *
 * visitor.c
 *	  Who visits the TTL indexes of a database, and if nobody does, why.
 *
 * An installation that deletes nothing looks like one that has nothing to delete.  So
 * whoever declares a TTL is told who will delete, the view of indexes has a state for it,
 * and so has CREATE EXTENSION a warning: all three ask here.
 *
 * The launcher shows in its own status entry whether it is enabled (progress.c).
 * What ALTER DATABASE and ALTER ROLE say beside that is read from the catalog, as the
 * worker will: this session began earlier, or as another role.  A session serves a
 * database as well, if its run_pass() was not long ago; the counters know that, for each
 * role, since a role's pass leaves out what belongs to others.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/server/visitor.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xlog.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "catalog/pg_db_role_setting.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "server/server.h"
#include "pass/pass.h"
#include "stats/progress.h"
#include "shared/state_file.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_monitor_status);

/* How long a run_pass() counts as service: pg_cron may call it every few minutes. */
#define SERVED_FOR (10 * USECS_PER_MINUTE)

/* Why the monitor does not come; MONITOR if it does. */
typedef enum Cause
{
	MONITOR,
	STANDBY,
	HELD,
	NOT_PRELOADED,
	NO_LAUNCHER,
	DISABLED,
	DISABLED_HERE,
	NOT_VISITED,
	READ_ONLY,
	NO_WORKER_SLOT,
	COUNTERS_LOCKED
} Cause;

/* in the order of Cause */
static const struct
{
	const char *status;
	const char *reason;
	const char *hint;
}			causes[] = {
	{"monitor", NULL, NULL},
	{"standby", "the server is a standby",
	"The primary deletes the rows. After a promotion this server does, if ttl_index is preloaded."},
	/* hold.c says why, and what to do */
	{"held", NULL, NULL},
	{"not_preloaded", "ttl_index is not in shared_preload_libraries",
	"Add it to shared_preload_libraries and restart the server, or CALL ttl_index.run_pass() every few minutes, by pg_cron for instance."},
	{"no_launcher", "the monitor's launcher does not run",
	"Unless the server has just started, no background worker slot was free for it: increase max_worker_processes and restart the server."},
	{"disabled", "ttl_index.monitor_enabled is off",
	"ALTER SYSTEM SET ttl_index.monitor_enabled = on, then SELECT pg_reload_conf(). Or CALL ttl_index.run_pass() every few minutes."},
	{"disabled_here", "ttl_index.monitor_enabled is off in this database",
	"ALTER DATABASE ... RESET ttl_index.monitor_enabled lets the monitor in, or ALTER ROLE ... RESET where a role has it: psql lists both by \\drds. Or CALL ttl_index.run_pass() every few minutes."},
	{"not_visited", "the database is a template, or does not allow connections",
	"ALTER DATABASE ... WITH IS_TEMPLATE false ALLOW_CONNECTIONS true lets the monitor in."},
	{"read_only", "default_transaction_read_only is on in this database",
	"Turn default_transaction_read_only off to let rows expire."},
	{"no_worker_slot", "no background worker slot was free for the monitor's last pass",
	TTL_SLOTS_HINT},
	{"counters_locked", TTL_COUNTERS_LOCKED, TTL_COUNTERS_LOCKED_HINT},
};

StaticAssertDecl(lengthof(causes) == COUNTERS_LOCKED + 1, "one text for each cause");

/* Changes a boolean if one of the settings of a database or role is about it. */
static void
apply_settings(ArrayType *settings, const char *name, bool *value)
{
	ArrayIterator iterator = array_create_iterator(settings, 0, NULL);
	size_t		length = strlen(name);
	Datum		datum;
	bool		isnull;

	while (array_iterate(iterator, &datum, &isnull))
	{
		char	   *setting = isnull ? "" : TextDatumGetCString(datum);

		if (pg_strncasecmp(setting, name, length) == 0 && setting[length] == '=')
			(void) parse_bool(setting + length + 1, value);
	}
	array_free_iterator(iterator);
}

/* The same for what ALTER DATABASE or ALTER ROLE has set for this database and role. */
static void
read_settings(Oid database, Oid role, const char *name, bool *value)
{
	Relation	rel = table_open(DbRoleSettingRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], Anum_pg_db_role_setting_setdatabase,
				BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(database));
	ScanKeyInit(&keys[1], Anum_pg_db_role_setting_setrole,
				BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(role));
	scan = systable_beginscan(rel, DbRoleSettingDatidRolidIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		Datum		settings = heap_getattr(tuple, Anum_pg_db_role_setting_setconfig,
											RelationGetDescr(rel), &isnull);

		if (!isnull)
			apply_settings(DatumGetArrayTypeP(settings), name, value);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

/*
 * The value of a boolean setting in a process of this role in a database, given the one that
 * the launcher has.
 */
static bool
value_in_worker(Oid database, Oid role, const char *name, bool value)
{
	read_settings(InvalidOid, InvalidOid, name, &value);
	read_settings(database, InvalidOid, name, &value);
	read_settings(InvalidOid, role, name, &value);
	read_settings(database, role, name, &value);
	return value;
}

/* Does the launcher start workers for databases such as this one? */
static bool
is_visited(Oid database)
{
	HeapTuple	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
	Form_pg_database form;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_database) GETSTRUCT(tuple);
	result = !form->datistemplate && form->datallowconn;
	ReleaseSysCache(tuple);
	return result;
}

/* Why the monitor comes to no database; MONITOR if it does, and then what it shows. */
static Cause
find_server_cause(TtlLauncher *launcher)
{
	if (RecoveryInProgress())
		return STANDBY;
	if (!ttl_progress_find_launcher(launcher))
		return ttl_launcher_is_registered() ? NO_LAUNCHER : NOT_PRELOADED;
	return launcher->enabled ? MONITOR : DISABLED;
}

static Cause
find_cause(Oid database)
{
	TtlLauncher launcher;
	Cause		cause = find_server_cause(&launcher);

	if (cause != MONITOR)
		return cause;
	if (!is_visited(database))
		return NOT_VISITED;
	if (!value_in_worker(database, BOOTSTRAP_SUPERUSERID, "ttl_index.monitor_enabled", true))
		return DISABLED_HERE;
	if (value_in_worker(database, BOOTSTRAP_SUPERUSERID, "default_transaction_read_only",
						launcher.read_only))
		return READ_ONLY;
	return launcher.no_slot ? NO_WORKER_SLOT : MONITOR;
}

/*
 * Says why the monitor does not come to a database, or if that is invalid, to any; NULL if
 * it does.  *enabled is whether monitor_enabled is on there.
 */
const char *
ttl_visitor_why_no_monitor(Oid database, bool *enabled, const char **hint)
{
	TtlLauncher launcher;
	Cause		cause = OidIsValid(database) ? find_cause(database) :
	find_server_cause(&launcher);

	*enabled = cause != DISABLED && cause != DISABLED_HERE;
	if (hint != NULL)
		*hint = causes[cause].hint;
	return causes[cause].reason;
}

/* Finds who visits the TTL indexes of this database. */
void
ttl_visitor_find(TtlVisitor *visitor)
{
	Cause		cause = find_cause(MyDatabaseId);
	TtlStateFile file;
	const char *hold;

	ttl_state_file_read(&file);
	hold = ttl_hold_reason(&file.hold);
	/* run_pass() deletes nothing in these cases, either */
	if (hold != NULL && cause != STANDBY)
		cause = HELD;
	else if (cause == MONITOR && ttl_counters_are_locked())
		cause = COUNTERS_LOCKED;
	visitor->status = causes[cause].status;
	visitor->hint = cause == HELD ? ttl_hold_hint(&file.hold) : causes[cause].hint;
	visitor->reason = cause == HELD ? hold : causes[cause].reason;
	visitor->roles = NIL;
	visitor->owner = InvalidOid;
	if (cause == MONITOR || cause == STANDBY || cause == HELD || cause == COUNTERS_LOCKED)
		return;
	visitor->reason = psprintf("%s, and nobody with the owner's rights has called ttl_index.run_pass() within ten minutes",
							   causes[cause].reason);
	visitor->roles = ttl_counters_roles_since(GetCurrentTimestamp() - SERVED_FOR);
}

/* Does a session of a role with the owner's rights call run_pass()? */
bool
ttl_visitor_is_session(const TtlVisitor *visitor, Oid owner)
{
	ListCell   *lc;

	foreach(lc, visitor->roles)
	{
		if (has_privs_of_role(lfirst_oid(lc), owner))
			return true;
	}
	return false;
}

/* Why a worker that is connected as this owner deletes nothing; NULL if it does. */
static const char *
why_no_worker(Oid owner)
{
	if (!ttl_connect_is_possible(owner))
		return "this minor release of PostgreSQL cannot connect a worker as an owner without LOGIN";
	if (!value_in_worker(MyDatabaseId, owner, "ttl_index.monitor_enabled", true))
		return "ttl_index.monitor_enabled is off for the owner of the table";
	if (value_in_worker(MyDatabaseId, owner, "default_transaction_read_only", false))
		return "default_transaction_read_only is on for the owner of the table";
	return NULL;
}

/* Says why nobody deletes in the tables of this owner; NULL if somebody does. */
const char *
ttl_visitor_why_none(TtlVisitor *visitor, Oid owner)
{
	if (ttl_visitor_is_session(visitor, owner))
		return NULL;
	if (visitor->reason == NULL && visitor->owner != owner)
	{
		visitor->owner = owner;
		visitor->owner_reason = why_no_worker(owner);
		if (visitor->owner_reason != NULL)
			visitor->hint = "\\drds of psql lists the settings of roles, which ALTER ROLE ... RESET removes.";
	}
	return visitor->reason != NULL ? visitor->reason : visitor->owner_reason;
}

/* monitor_status() returns record */
Datum
ttl_monitor_status(PG_FUNCTION_ARGS)
{
	TtlVisitor	visitor;
	TupleDesc	desc;
	Datum		values[3] = {0};
	bool		nulls[3] = {0};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	ttl_visitor_find(&visitor);
	if (ttl_visitor_is_session(&visitor, GetUserId()))
		visitor = (TtlVisitor)
	{
		.status = "run_pass"
	};
	values[0] = CStringGetTextDatum(visitor.status);
	nulls[1] = visitor.reason == NULL;
	if (!nulls[1])
		values[1] = CStringGetTextDatum(visitor.reason);
	nulls[2] = visitor.hint == NULL;
	if (!nulls[2])
		values[2] = CStringGetTextDatum(visitor.hint);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}
