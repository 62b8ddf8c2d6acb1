/*-------------------------------------------------------------------------
 *
 * survey.c
 *	  What is to be done in a database, and the states of its TTL indexes.
 *
 * A survey is a superuser, so it runs no code of users: it reads catalog rows, index tuples
 * and the visibility of rows.  It repairs the options that REINDEX CONCURRENTLY has lost,
 * lists for each owner the TTL indexes by which something is due, counts passes, folds the
 * counters, and finds the states and lags that ttl_index.databases shows.  Each index is
 * looked at in a subtransaction, because other sessions can run DDL meanwhile.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/acl.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "definition/definition.h"
#include "due/due.h"
#include "partition/partition.h"
#include "server/server.h"
#include "state/state.h"

/* Maximum number of tuples that are read for the lag of an index, in each place of it. */
#define LAG_TUPLES 500

/* How many indexes are looked at in one transaction. */
#define LOOK_SHARED 50

/* The caches are emptied after so many. */
#define CACHED_INDEXES 5000

typedef struct Look
{
	TtlRun	   *run;
	bool		may_run;		/* rows may be deleted here */
	TtlSurvey	found;
	TtlVisitor	visitor;
	TtlStateFile file;
	HTAB	   *failing;
	List	   *indexes;
	List	   *work;			/* TtlWork */
	/* of the index at hand */
	Oid			indexrelid;
	TtlIndex	index;
	bool		is_root;		/* it counts */
	bool		locks;			/* it may have locked or changed something */
	int64		lag;			/* microseconds; -1: unknown */
	List	   *owners;			/* that have something to do there */
	bool		is_others;		/* and others, for whom the caller cannot act */
	TtlPassSum	sum;			/* of all: how many are visited, and are not */
} Look;

/* Reads what the states of all indexes depend on, and lists the indexes. */
static void
begin_work(void *arg)
{
	Look	   *look = arg;
	uint32		hash = 0;
	ListCell   *lc;

	/* the launcher may end this process if it waits for a lock */
	look->run->shared->limited = false;
	/* do the objects of the extension match the library? */
	if (look->may_run)
		ttl_counters_check();
	if (look->run->shared->begins)
		ttl_saved_option_trim();
	MemoryContextSwitchTo(look->run->context);
	ttl_visitor_find(MyDatabaseId, &look->file.hold, &look->visitor);
	look->failing = ttl_counters_failing();
	look->indexes = list_copy(ttl_catalog_dependents());

	/* a TTL index that was created during the pass takes part in it; partitions do not count */
	foreach(lc, look->indexes)
	{
		if (!get_rel_relispartition(lfirst_oid(lc)))
			hash = hash_combine(hash, murmurhash32(lfirst_oid(lc)));
	}
	if (hash != look->run->kept->indexes_hash)
		look->run->shared->ends = false;
	look->run->kept->indexes_hash = hash;
}

/* Counts the errors of workers that were terminated, or have crashed, at an index. */
static void
count_deaths(TtlRun *run)
{
	HASH_SEQ_STATUS scan;
	TtlResumeState *index;

	hash_seq_init(&scan, run->kept->indexes);
	while ((index = hash_seq_search(&scan)) != NULL)
	{
		TtlDeath	death = index->death;
		bool		crashed = death == TTL_DEAD_CRASHED;
		ErrorData	edata = {
			.sqlerrcode = crashed ? ERRCODE_CRASH_SHUTDOWN : ERRCODE_ADMIN_SHUTDOWN,
			.message = crashed ? "the server crashed while the worker was at this index" :
				"the worker was terminated while it was at this index"
		};

		if (death == TTL_NOT_DEAD)
			continue;
		index->death = TTL_NOT_DEAD;
		ttl_report_failure(run, index->key.relid, &edata, death == TTL_DEAD_CANCELED);
		/* the crash ended that pass: this one visits the index */
		if (crashed)
			index->skipped = false;
	}
}

/* How far the passes have read an index: the rows before that place were seen. */
static bool
find_position(Oid indexrelid, void *arg, TtlScanPosition *position)
{
	const TtlResumeState *kept = ttl_kept_find(arg, indexrelid);
	int64		key;

	if (kept == NULL || !ttl_cursor_read_to(&kept->cursor, &key))
		return false;
	*position = ttl_index_scan_from(key);
	return true;
}

/* May the pass act as this owner? */
static bool
is_allowed(const Look *look, Oid owner)
{
	Oid			caller = look->run->common->caller;

	return !OidIsValid(caller) || has_privs_of_role(caller, owner);
}

/* Notes that the owner of a table has something to do. */
static void
add_owner(Look *look, Oid relid)
{
	Oid			owner = ttl_owner_of(relid);

	if (!OidIsValid(owner))
		return;
	if (!is_allowed(look, owner))
		look->is_others = true;
	else if (ttl_worker_can_connect(owner))
		look->owners = list_append_unique_oid(look->owners, owner);
}

/*
 * Is the first deletion by an index too large?  Then it is counted as an error, and the index is
 * held until unpause_index(); else it is approved.  The lock keeps the seconds as they are.
 */
static bool
is_held(Look *look)
{
	TtlRun	   *run = look->run;
	const TtlIndex *index = &look->index;
	const TtlFailing *known = hash_search(look->failing, &look->indexrelid, HASH_FIND, NULL);
	TimestampTz now = GetCurrentTimestamp();
	TtlShare	share;
	ErrorData	edata = {.sqlerrcode = ERRCODE_CONFIGURATION_LIMIT_EXCEEDED};

	if (ttl_max_due_fraction >= 1 || (known != NULL && known->approved))
		return false;
	look->locks = true;
	if (!ConditionalLockRelationOid(look->indexrelid, ShareUpdateExclusiveLock))
		return true;
	ttl_share_find(index, run->at, now + USECS_PER_SEC, &share);
	if (share.total <= TTL_SHARE_ROWS || share.due <= ttl_max_due_fraction * share.total)
	{
		(void) ttl_counters_note(look->indexrelid, true);
		return false;
	}
	if (known == NULL || known->held == NULL)
	{
		edata.message = psprintf("%s would be deleted, more than ttl_index.max_due_fraction",
								 ttl_share_text(index, &share));
		edata.hint = psprintf("SELECT ttl_index.unpause_index(%s);",
							  quote_literal_cstr(ttl_name_qualified(look->indexrelid)));
		ttl_report_failure(run, look->indexrelid, &edata, false);
	}
	return true;
}

/* Looks at one index: its option, lag and state, and who has something to do there. */
static void
index_work(void *arg)
{
	Look	   *look = arg;
	TtlRun	   *run = look->run;
	Oid			root = look->indexrelid;
	TtlIndex   *index = &look->index;
	TtlLag		lag = {.at = run->at,.elevel = DEBUG1,.max_tuples = LAG_TUPLES,
	.find_position = find_position,.arg = run->kept};
	const TtlResumeState *kept;
	TimestampTz since;
	bool		is_due;
	bool		is_visited;
	ListCell   *lc;

	look->is_root = look->is_others = false;
	look->lag = -1;
	look->owners = NIL;
	if (look->may_run && ttl_saved_option_needs_repair(root))
	{
		look->locks = true;
		ttl_saved_option_repair(root);
	}
	/* there can be thousands of these, and most belong to another one */
	if (get_rel_relispartition(root))
	{
		Oid			top = ttl_catalog_root(root);

		if (OidIsValid(top) && top != root)
			return;
	}

	/* the coordinator looks at a table that has copies, for all nodes */
	if (!ttl_state_describe(root, false, index) || index->governor != root ||
		(index->citus.replicated && ttl_citus_deletes_elsewhere(&index->citus)))
		return;
	look->is_root = true;
	/* lost for good: the next pass cannot restore it */
	if (index->state == TTL_OPTION_LOST && index->hint != NULL && look->may_run)
		ttl_report_skipped(run, root, index->reason, index->hint);
	is_visited = index->state == TTL_ACTIVE || index->state == TTL_TABLE_LOCKED;
	if (ttl_due_since(root, &lag, &since, &is_due))
		look->lag = run->at - since;
	if (is_visited && look->may_run && !run->shared->ends &&
		!(is_due && is_held(look)) && !ttl_kept_is_left_out(run->kept, root, run->at))
	{
		/* one that fails is visited until a visit is good */
		kept = ttl_kept_find(run->kept, root);
		if (!ttl_citus_deletes_elsewhere(&index->citus) &&
			(is_due || (kept != NULL && (kept->failing || kept->reported.at != 0))))
		{
			foreach(lc, ttl_leaves_by_row(root))
				add_owner(look, IndexGetRelation(lfirst_oid(lc), true));
		}
		foreach(lc, index->state == TTL_ACTIVE ? ttl_visit_partitions(run, index) : NIL)
		{
			Oid			relid = ((TtlPartition *) lfirst(lc))->relid;

			add_owner(look, OidIsValid(relid) ? relid : index->relid);
		}
	}

	if (!is_allowed(look, index->owner) && look->owners == NIL)
		look->sum.others++;
	else
	{
		look->sum.indexes += is_visited ? 1 : 0;
		look->sum.inactive += is_visited ? 0 : 1;
		look->sum.others += look->is_others ? 1 : 0;
	}
	ttl_shown_state_complete(index, &look->visitor, &look->file, look->failing);
}

/* Looks at one index, within the limits of a batch, and lists what is to be done there. */
static void
look_at(Look *look)
{
	TtlRun	   *run = look->run;
	TtlSurvey  *found = &look->found;
	char	   *crash = ttl_crash_reason(&look->file, look->indexrelid);
	ErrorData  *edata = NULL;
	bool		timed_out = false;
	MemoryContext caller;
	ListCell   *lc;

	if (crash == NULL)
	{
		ttl_crash_mark(look->indexrelid);
		edata = ttl_work_retry(index_work, look, &timed_out);
		ttl_crash_mark(InvalidOid);
	}
	if (crash != NULL || edata != NULL)
	{
		/* unless the error is that the index is gone */
		look->is_root = !get_rel_relispartition(look->indexrelid) &&
			SearchSysCacheExists1(INDEXRELID, ObjectIdGetDatum(look->indexrelid));
		look->index.state = crash != NULL ? TTL_CRASHED_SERVER : TTL_FAILING;
		look->lag = -1;
		look->owners = NIL;
	}
	if (!look->is_root)
		return;
	if (crash != NULL && run->shared->begins)
		ttl_report_skipped(run, look->indexrelid, crash,
						   "Find the cause, then SELECT ttl_index.resume().");
	if (edata != NULL && look->may_run)
		ttl_report_failure(run, look->indexrelid, edata, timed_out);

	/* the rows of a paused index stay because somebody wants it */
	found->indexes++;
	if (look->index.state == TTL_PAUSED)
		found->paused++;
	else
	{
		if (look->index.state >= TTL_FAILING)
			found->failing++;
		else if (look->index.state != TTL_ACTIVE)
			found->not_active++;
		found->worst_lag = Max(found->worst_lag, look->lag);
	}
	caller = MemoryContextSwitchTo(run->context);
	foreach(lc, look->owners)
	{
		TtlWork    *work = palloc(sizeof(TtlWork));

		work->owner = lfirst_oid(lc);
		work->is_superuser = superuser_arg(work->owner);
		work->root = look->indexrelid;
		look->work = lappend(look->work, work);
	}
	MemoryContextSwitchTo(caller);
}

/* Looks at all TTL indexes. */
static void
look_at_all(Look *look)
{
	TtlRun	   *run = look->run;
	int			looked = 0;
	ListCell   *lc;

	ttl_work_begin(run);
	foreach(lc, look->indexes)
	{
		if (looked % LOOK_SHARED == LOOK_SHARED - 1 || look->locks)
		{
			/* locks of thousands of indexes would fill the lock table */
			ttl_work_commit(run);
			/* core keeps some kB of each index that was opened, until the process ends */
			if (looked % CACHED_INDEXES == CACHED_INDEXES - 1)
				InvalidateSystemCaches();
			ttl_work_begin(run);
			look->locks = false;
		}
		looked++;
		/* a session that drops the extension has locked the counters */
		if (ttl_work_must_stop(run))
			break;
		look->indexrelid = lfirst_oid(lc);
		look_at(look);
		MemoryContextReset(run->batch_context);
		MemoryContextSwitchTo(run->batch_context);
	}
	ttl_work_commit(run);
}

/*
 * Begins the survey: reads the clock, and what the states of indexes depend on.  Returns
 * false if there is no extension, or no pass is possible.
 */
static bool
begin_survey(Look *look)
{
	TtlRun	   *run = look->run;
	TtlFunctions functions;
	ErrorData  *edata;
	bool		timed_out;

	run->at = GetCurrentTimestamp();
	ttl_hold_check_clock(&look->file, run->at, false);
	if (look->may_run && ttl_work_is_held(run, &look->file))
		look->may_run = false;
	ttl_kept_load(run->kept);
	if (run->shared->begins)
		ttl_kept_begin_pass(run->kept, run->at);
	/* else a pass would last until a clock that was set back is there again */
	run->kept->pass_at = Min(run->kept->pass_at, run->at);
	if (!ttl_option_functions(&functions))
	{
		/* nothing is shown of what was dropped */
		run->kept->survey = look->found;
		return false;
	}
	if (ttl_work_must_stop(run))
		return false;
	edata = ttl_work_run(begin_work, look, &timed_out);
	if (edata != NULL)
	{
		if (OidIsValid(run->common->caller))
			ReThrowError(edata);
		ttl_report_no_pass(run, edata);
		run->stop = true;
		return false;
	}
	if (look->may_run)
		run->kept->reported.at = 0;
	count_deaths(run);
	if (run->shared->begins)
	{
		MemoryContextSwitchTo(run->context);
		ttl_kept_set_failing(run->kept, look->failing);
	}
	return true;
}

/* Makes a survey of the database.  Called outside of a transaction. */
void
ttl_survey_run(TtlRun *run, dsa_area *area, bool may_run)
{
	TtlShared  *shared = run->shared;
	TtlSurvey  *survey = &run->kept->survey;
	TtlPassSum *sum = &run->kept->sum;
	Look	   *look = palloc0(sizeof(Look));
	bool		is_there;

	look->run = run;
	look->may_run = may_run;
	look->found.worst_lag = -1;
	ttl_work_begin(run);
	is_there = begin_survey(look);
	ttl_work_commit(run);
	if (is_there)
		look_at_all(look);
	if (is_there && !run->stop)
	{
		look->found.at = run->at;
		look->found.pass_start = look->may_run ? run->kept->pass_at : survey->pass_start;
		look->found.pass_end = survey->pass_end;
		*survey = look->found;
		/* the last survey of a pass is followed by no sub-pass */
		if (shared->begins || look->work != NIL)
		{
			sum->indexes = Max(sum->indexes, look->sum.indexes);
			sum->inactive = Max(sum->inactive, look->sum.inactive);
			sum->others = Max(sum->others, look->sum.others);
		}
	}
	if (!look->may_run || run->stop || !is_there)
		look->work = NIL;

	/* how much is left of a pass that goes on */
	shared->more = look->work != NIL;
	survey->left = survey->time_left = -1;
	if (shared->more)
	{
		TtlProgress progress;

		ttl_kept_progress(run->kept, InvalidOid, &progress);
		survey->left = progress.left;
		survey->time_left = progress.time_left;
	}
	if (!look->may_run || run->stop)
		return;
	ttl_report_pass(run, is_there && look->indexes != NIL);
	if (shared->more)
	{
		TtlWork    *items;
		ListCell   *lc;

		shared->nwork = list_length(look->work);
		shared->work = dsa_allocate_extended(area, shared->nwork * sizeof(TtlWork), DSA_ALLOC_HUGE);
		items = dsa_get_address(area, shared->work);
		foreach(lc, look->work)
			items[foreach_current_index(lc)] = *(TtlWork *) lfirst(lc);
	}
	else
		survey->pass_end = GetCurrentTimestamp();
}
