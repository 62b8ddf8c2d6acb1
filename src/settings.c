/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  The start of the library, and its settings.
 *
 * A preloaded library registers the launcher.  A session that loads the library gets only the
 * functions and the settings.
 *
 * Settings of the launcher or of the whole server change by a reload only.  A superuser can set
 * the others for a session, a role or a database.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "postmaster/postmaster.h"	/* MAX_BACKENDS; since 18 in: */
#include "storage/proc.h"
#include "utils/guc.h"

#include "server/server.h"
#include "ttl_index.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

bool		ttl_monitor_enabled = true;
int			ttl_monitor_sleep = 60;
int			ttl_max_workers = 1;
TtlLimits	ttl_limits = {
	.sub_pass_time = 60,
	.index_docs = 50000,
	.index_time = 1000,
	.batch_docs = 50000,
	.batch_time = 50,
	.batch_timeout = 10000
};
int			ttl_log_min_duration = -1;
int			ttl_max_clock_jump = 24 * 60 * 60;
int			ttl_hold_after_downtime = 0;
double		ttl_max_due_fraction = 1;
int			ttl_delete_rate_limit = 0;
int			ttl_max_replication_lag = 0;
int			ttl_max_retained_wal = 0;
int			ttl_max_lag_pause = 600;
int			ttl_bucket_lock_timeout = 50;
bool		ttl_count_dropped_documents = false;
bool		ttl_logical_messages = false;
int			ttl_history_retention = 7 * 24 * 60 * 60;
static char *expiring = NULL;	/* read by its name alone */

/* Defines an integer setting. */
static void
define_int(const char *name, const char *description, const char *more,
		   int *variable, int minimum, int maximum, GucContext context, int unit)
{
	DefineCustomIntVariable(name, description, more, variable, *variable,
							minimum, maximum, context, unit, NULL, NULL, NULL);
}

void
_PG_init(void)
{
	DefineCustomBoolVariable("ttl_index.monitor_enabled",
							 "Lets the monitor delete expired rows.",
							 "Can be set for a single database with ALTER DATABASE.",
							 &ttl_monitor_enabled, true, PGC_SUSET, 0,
							 NULL, NULL, NULL);
	define_int("ttl_index.monitor_sleep",
			   "Sets how long the monitor sleeps between two passes.",
			   "Counted from the end of a pass.",
			   &ttl_monitor_sleep, 1, INT_MAX / 1000, PGC_SIGHUP, GUC_UNIT_S);
	define_int("ttl_index.max_workers",
			   "Sets how many processes of a pass may run at a time.",
			   "Each deletes for one owner in one database.",
			   &ttl_max_workers, 1, MAX_BACKENDS, PGC_SIGHUP, 0);
	define_int("ttl_index.sub_pass_target_time",
			   "Sets how long a sub-pass over the TTL indexes of a database may take.",
			   "The next sub-pass continues where this one stopped. Zero means no limit.",
			   &ttl_limits.sub_pass_time, 0, INT_MAX / 1000, PGC_SUSET, GUC_UNIT_S);
	define_int("ttl_index.index_delete_target_docs",
			   "Sets how many rows one visit to a TTL index may delete.",
			   "Zero means no limit.",
			   &ttl_limits.index_docs, 0, INT_MAX, PGC_SUSET, 0);
	define_int("ttl_index.index_delete_target_time",
			   "Sets how long one visit to a TTL index may take.",
			   "Counted from its first expired row. Zero means no limit.",
			   &ttl_limits.index_time, 0, INT_MAX, PGC_SUSET, GUC_UNIT_MS);
	define_int("ttl_index.batch_target_docs",
			   "Sets how many rows one transaction may delete.",
			   "A visit begins with a batch of 100 rows; the next ones adapt to batch_target_time.",
			   &ttl_limits.batch_docs, 1, 50000, PGC_SUSET, 0);
	define_int("ttl_index.batch_target_time",
			   "Sets how long the transaction of one batch should take.",
			   NULL,
			   &ttl_limits.batch_time, 1, INT_MAX, PGC_SUSET, GUC_UNIT_MS);
	define_int("ttl_index.batch_timeout",
			   "Sets how long one batch may run before it is canceled.",
			   "The index is then tried again after 1, 2, 4 ... 60 minutes. Zero means no limit.",
			   &ttl_limits.batch_timeout, 0, INT_MAX, PGC_SUSET, GUC_UNIT_MS);
	define_int("ttl_index.log_min_duration",
			   "Sets the minimum time above which a visit to a TTL index is logged.",
			   "Zero logs every visit that deletes. -1 turns this off.",
			   &ttl_log_min_duration, -1, INT_MAX, PGC_SUSET, GUC_UNIT_MS);
	define_int("ttl_index.delete_rate_limit",
			   "Sets how many rows a second may be deleted.",
			   "Zero means no limit.",
			   &ttl_delete_rate_limit, 0, INT_MAX, PGC_SUSET, 0);
	define_int("ttl_index.max_replication_lag",
			   "Pauses deletion while the replay lag of a standby is greater.",
			   "Zero turns this off.",
			   &ttl_max_replication_lag, 0, INT_MAX, PGC_SUSET, GUC_UNIT_MS);
	define_int("ttl_index.max_retained_wal",
			   "Pauses deletion while a replication slot retains more WAL.",
			   "Zero turns this off.",
			   &ttl_max_retained_wal, 0, INT_MAX, PGC_SUSET, GUC_UNIT_MB);
	define_int("ttl_index.max_lag_pause",
			   "Sets how long deletion pauses for replication at most.",
			   "After that it continues with a warning, and does not pause again for the same standby or slot. Zero means no limit.",
			   &ttl_max_lag_pause, 0, INT_MAX / 1000, PGC_SUSET, GUC_UNIT_S);
	define_int("ttl_index.max_clock_jump",
			   "Sets how far the clock may jump ahead before deletion is held.",
			   "Until ttl_index.resume() is called. Zero turns this off.",
			   &ttl_max_clock_jump, 0, INT_MAX, PGC_SIGHUP, GUC_UNIT_S);
	define_int("ttl_index.hold_after_downtime",
			   "Sets how long the server may have been down before deletion is held.",
			   "Checked when the server starts or is promoted. Zero turns this off.",
			   &ttl_hold_after_downtime, 0, INT_MAX, PGC_SIGHUP, GUC_UNIT_S);
	DefineCustomRealVariable("ttl_index.max_due_fraction",
							 "Sets which share of a table the first visit of a TTL index may delete.",
							 "An index that would delete more is held until ttl_index.unpause_index(). 1 turns this off.",
							 &ttl_max_due_fraction, 1, 0, 1, PGC_SUSET, 0,
							 NULL, NULL, NULL);
	define_int("ttl_index.bucket_lock_timeout",
			   "Sets how long dropping or making a partition may wait for a lock.",
			   "Other sessions wait after it, so this is the longest delay for them.",
			   &ttl_bucket_lock_timeout, 1, INT_MAX, PGC_SUSET, GUC_UNIT_MS);
	DefineCustomBoolVariable("ttl_index.count_dropped_documents",
							 "Counts the rows of a partition before it is dropped.",
							 "Otherwise the counters get an estimate.",
							 &ttl_count_dropped_documents, false, PGC_SUSET, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("ttl_index.logical_messages",
							 "Writes a logical decoding message before the rows that a transaction of the monitor deletes.",
							 "Its prefix is ttl_index, its content the name of the TTL index.",
							 &ttl_logical_messages, false, PGC_SUSET, 0,
							 NULL, NULL, NULL);
	define_int("ttl_index.history_retention",
			   "Sets how long the hours of ttl_index.history are kept.",
			   "Zero keeps only the current hour.",
			   &ttl_history_retention, 0, INT_MAX, PGC_SUSET, GUC_UNIT_S);
	DefineCustomStringVariable("ttl_index.expiring",
							   "Shows the TTL index whose expired rows are being deleted.",
							   "For triggers. Empty unless the delete is that of a TTL index.",
							   &expiring, "", PGC_INTERNAL,
							   GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							   NULL, NULL, NULL);
	MarkGUCPrefixReserved("ttl_index");
	if (process_shared_preload_libraries_in_progress)
		ttl_launcher_register();
}

/* The settings that a session hands over to the workers of its run_pass(). */
static const char *const handed_over[] = {
	"ttl_index.sub_pass_target_time", "ttl_index.index_delete_target_docs",
	"ttl_index.index_delete_target_time", "ttl_index.batch_target_docs",
	"ttl_index.batch_target_time", "ttl_index.batch_timeout", "ttl_index.log_min_duration",
	"ttl_index.delete_rate_limit", "ttl_index.max_replication_lag",
	"ttl_index.max_retained_wal", "ttl_index.max_lag_pause", "ttl_index.bucket_lock_timeout",
	"ttl_index.count_dropped_documents", "ttl_index.logical_messages",
	"ttl_index.history_retention", "ttl_index.max_due_fraction", "client_min_messages"
};

/* Writes these settings into shared memory, as strings one after another. */
dsa_pointer
ttl_settings_store(dsa_area *area)
{
	StringInfoData values;
	dsa_pointer result;

	initStringInfo(&values);
	for (int i = 0; i < lengthof(handed_over); i++)
	{
		appendStringInfoString(&values, GetConfigOption(handed_over[i], false, false));
		appendStringInfoChar(&values, '\0');
	}
	result = dsa_allocate(area, values.len);
	memcpy(dsa_get_address(area, result), values.data, values.len);
	return result;
}

/* Forces the stored settings before a worker connects, so that they override ALTER ROLE and ALTER DATABASE. */
void
ttl_settings_load(const char *values)
{
	for (int i = 0; i < lengthof(handed_over); i++)
	{
		ttl_settings_force(handed_over[i], values);
		values += strlen(values) + 1;
	}
}

/* Sets a setting so that neither ALTER ROLE, ALTER DATABASE nor RESET ALL changes it. */
void
ttl_settings_force(const char *name, const char *value)
{
	/* there is no transaction_timeout before PostgreSQL 17 */
	if (GetConfigOption(name, true, false) != NULL)
		SetConfigOption(name, value, PGC_SUSET, PGC_S_OVERRIDE);
}

/* Sets a setting that any user may set until the caller's GUC level ends. */
void
ttl_settings_set(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
							 true, 0, false);
}
