/*-------------------------------------------------------------------------
 *
 * visitor.c
 *	  What visits the TTL indexes of a database, or why nothing does.
 *
 * An installation that deletes nothing looks like one that has nothing to delete.  So the
 * NOTICE of a TTL index that is created, the views, and a WARNING of CREATE EXTENSION say
 * what will delete, or why nothing does.  All of them call this file.
 *
 * Settings of ALTER DATABASE and ALTER ROLE are read from the catalog, because this session
 * began earlier, or as another role.  A session also visits a database if it called
 * run_pass() recently.  The counters have the time of these calls for each role.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xlog.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "server/server.h"
#include "state/state.h"

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
	"In psql, \\drds shows the setting of the database or of the role, which ALTER ... RESET removes. Or CALL ttl_index.run_pass() every few minutes."},
	{"not_visited", "the database is a template, or does not allow connections",
	"ALTER DATABASE ... WITH IS_TEMPLATE false ALLOW_CONNECTIONS true lets the monitor in."},
	{"read_only", "default_transaction_read_only is on in this database",
	"Turn default_transaction_read_only off to let rows expire."},
	{"no_worker_slot", "no background worker slot was free for the monitor's last pass",
	TTL_SLOTS_HINT},
	{"counters_locked", TTL_COUNTERS_LOCKED, TTL_COUNTERS_LOCKED_HINT},
};

StaticAssertDecl(lengthof(causes) == COUNTERS_LOCKED + 1, "one text for each cause");

/*
 * Reads the settings of a database that keep workers of any role from deleting: the role (0 for
 * all), the name and the value of each, in the order of process_settings() of core.
 */
static List *
read_settings(Oid database)
{
	return ttl_select_rows(psprintf("SELECT setrole, split_part(setting, '=', 1), split_part(setting, '=', 2) "
									"FROM pg_db_role_setting, unnest(setconfig) WITH ORDINALITY AS u(setting, n) "
									"WHERE setdatabase IN (0, %u) AND "
									"setting ~* '^(ttl_index[.]monitor_enabled|default_transaction_read_only)=' "
									"ORDER BY setrole, setdatabase, n", database), 0);
}

/*
 * The value of one of them in a process of this role, given the one that the launcher has.  Of
 * several, the last one counts.
 */
static bool
value_in_worker(const List *settings, Oid role, const char *name, bool value)
{
	ListCell   *lc;

	foreach(lc, settings)
	{
		char	  **setting = lfirst(lc);
		Oid			setrole = atooid(setting[0]);

		if ((setrole == InvalidOid || setrole == role) && pg_strcasecmp(setting[1], name) == 0)
			(void) parse_bool(setting[2], &value);
	}
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

/* Why the monitor deletes nothing in a database, or if that is invalid, in any. */
static Cause
find_cause(Oid database, const List *settings, const char *hold)
{
	TtlLauncher launcher;

	if (RecoveryInProgress())
		return STANDBY;
	if (hold != NULL)
		return HELD;
	if (!ttl_progress_find_launcher(&launcher))
		return ttl_launcher_registered ? NO_LAUNCHER : NOT_PRELOADED;
	if (!launcher.enabled)
		return DISABLED;
	if (!OidIsValid(database))
		return MONITOR;
	if (!is_visited(database))
		return NOT_VISITED;
	if (!value_in_worker(settings, BOOTSTRAP_SUPERUSERID, "ttl_index.monitor_enabled", true))
		return DISABLED_HERE;
	if (value_in_worker(settings, BOOTSTRAP_SUPERUSERID, "default_transaction_read_only",
						launcher.read_only))
		return READ_ONLY;
	if (launcher.no_slot)
		return NO_WORKER_SLOT;
	if (database == MyDatabaseId && ttl_counters_are_locked())
		return COUNTERS_LOCKED;
	return MONITOR;
}

/* Finds who visits the TTL indexes of a database, or if that is invalid, of any. */
void
ttl_visitor_find(Oid database, const TtlHold *held, TtlVisitor *visitor)
{
	char	   *hold = ttl_hold_reason(held);
	List	   *settings = read_settings(database);
	Cause		cause = find_cause(database, settings, hold);

	memset(visitor, 0, sizeof(*visitor));
	visitor->settings = settings;
	visitor->status = causes[cause].status;
	visitor->reason = cause == HELD ? hold : causes[cause].reason;
	visitor->hint = cause == HELD ? ttl_hold_hint(held) : causes[cause].hint;
	/* in the other cases run_pass() deletes nothing, either */
	visitor->may_call = cause != MONITOR && cause != STANDBY && cause != HELD && cause != COUNTERS_LOCKED;
	if (visitor->may_call && database == MyDatabaseId)
		visitor->roles = ttl_counters_roles_since(GetCurrentTimestamp() - SERVED_FOR);
}

/* Does a session of a role with the owner's rights call run_pass()? */
static bool
is_session(const TtlVisitor *visitor, Oid owner)
{
	ListCell   *lc;

	foreach(lc, visitor->roles)
	{
		if (has_privs_of_role(lfirst_oid(lc), owner))
			return true;
	}
	return false;
}

/* Says why nobody deletes in the tables of this owner; NULL if somebody does. */
const char *
ttl_visitor_why_none(TtlVisitor *visitor, Oid owner)
{
	const char *reason = visitor->reason;

	if (is_session(visitor, owner))
		return NULL;
	if (visitor->may_call)
		return psprintf("%s, and run_pass() was not called in the last ten minutes",
						reason);
	if (reason != NULL)
		return reason;

	if (!ttl_worker_can_connect(owner))
		reason = "this minor release of PostgreSQL cannot connect a worker as an owner without LOGIN";
	else if (!value_in_worker(visitor->settings, owner, "ttl_index.monitor_enabled", true))
		reason = "ttl_index.monitor_enabled is off for the owner of the table";
	else if (value_in_worker(visitor->settings, owner, "default_transaction_read_only", false))
		reason = "default_transaction_read_only is on for the owner of the table";
	if (reason != NULL)
		visitor->hint = "\\drds of psql lists the settings of roles, which ALTER ROLE ... RESET removes.";
	return reason;
}

/* monitor_status() returns record */
Datum
ttl_monitor_status(PG_FUNCTION_ARGS)
{
	TtlStateFile file;
	TtlVisitor	visitor;
	TupleDesc	desc;
	const char *values[3];

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	ttl_state_file_read(&file);
	ttl_visitor_find(MyDatabaseId, &file.hold, &visitor);
	if (is_session(&visitor, GetUserId()))
		visitor = (TtlVisitor)
	{
		.status = "run_pass"
	};
	if (visitor.may_call)
		visitor.reason = ttl_visitor_why_none(&visitor, GetUserId());
	values[0] = visitor.status;
	values[1] = visitor.reason;
	values[2] = visitor.hint;
	return HeapTupleGetDatum(BuildTupleFromCStrings(TupleDescGetAttInMetadata(desc),
													(char **) values));
}
