/*-------------------------------------------------------------------------
 *
 * prepare.c
 *	  Preparing a sub-pass: finding what it has to do, index by index.
 *
 * sub_pass.c calls ttl_prepare_targets() at the beginning of each sub-pass.  It reads
 * the clock once for all visits, lets hold.c compare it, and makes the list of the TTL
 * indexes to visit, each with the indexes that hold its rows and with the partitions
 * that are to be made or dropped.  It also repairs what it meets: options that REINDEX
 * CONCURRENTLY has lost, and partitions that do not carry the option of the whole.
 *
 * One scan of pg_depend would do for the list alone.  But a description evaluates
 * predicates, in which code of users can be, and DDL of others goes on beside it.  So
 * each index is prepared in a subtransaction of its own, within the limits of a batch
 * (work.c), and an error is that of one index.  The indexes share transactions as long
 * as they take no locks.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/prepare.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "monitor/monitor.h"
#include "monitor/pass.h"
#include "monitor/schedule.h"
#include "monitor/state_file.h"
#include "monitor/visit.h"
#include "partition/partition.h"
#include "ttl_index.h"

/* How often the preparation of an index is tried, if DDL of others makes it fail. */
#define PREPARE_TRIES 2

/* How many indexes are prepared in one transaction. */
#define PREPARE_SHARED 50

/* The arguments and the results of the preparation of indexes. */
typedef struct PrepareWork
{
	TtlRun	   *run;
	List	   *crashed;		/* indexes that are put aside */
	bool		begins;			/* this sub-pass is the first of a pass */
	List	   *indexes;		/* to be prepared by this function */
	void		(*function) (void *arg);
	List	   *roots;			/* result: the TTL indexes that they belong to */
	Oid			indexrelid;		/* of the one at hand */
	Oid			root;			/* result: the TTL index that it belongs to */
	bool		locks;			/* it may have locked or changed something */
	TtlTarget  *target;			/* result: what a visit has to do */
} PrepareWork;

/*
 * May the driver's role delete as the owner of the index's table?  Only the catalog is
 * asked, because describing an index may run code of users.
 */
bool
ttl_prepare_is_allowed(const TtlRun *run, Oid root)
{
	Oid			relid = IndexGetRelation(root, true);

	return OidIsValid(relid) &&
		(run->driver->is_worker ||
		 has_privs_of_role(run->driver->role, ttl_owner_of(relid)));
}

/*
 * May it act as the owner of this table, and of all below it?  A worker may.  A session can
 * bend what the code of owners calls, by types of pg_temp and functions that it has compiled,
 * so that it runs no code of owners whose rights it has not.
 */
bool
ttl_prepare_may_act_on(const TtlRun *run, Oid relid)
{
	ListCell   *lc;

	if (run->driver->is_worker)
		return true;
	foreach(lc, ttl_inherit_tree(relid))
	{
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(lfirst_oid(lc))) &&
			!has_privs_of_role(run->driver->role, ttl_owner_of(lfirst_oid(lc))))
			return false;
	}
	return true;
}

/* Takes from the leaves those that are left to the monitor, and counts them. */
static List *
leave_out(TtlRun *run, List *leaves)
{
	ListCell   *lc;

	foreach(lc, leaves)
	{
		if (!ttl_prepare_is_allowed(run, lfirst_oid(lc)))
		{
			leaves = foreach_delete_current(leaves, lc);
			run->others++;
		}
	}
	return leaves;
}

/* Lists the partitions of a time series to make or drop, in the sub-pass's memory. */
static List *
list_partitions(TtlRun *run, const TtlIndex *index)
{
	List	   *found;
	List	   *partitions = NIL;
	ListCell   *lc;

	if (!ttl_citus_keeps_partitions(&index->citus))
		return NIL;
	found = list_concat(ttl_make_wanted(index, run->at), ttl_drop_due(index, run->at));
	MemoryContextSwitchTo(run->context);
	foreach(lc, found)
	{
		TtlPartition *partition = palloc(sizeof(TtlPartition));

		*partition = *(TtlPartition *) lfirst(lc);
		if (OidIsValid(partition->relid) && !ttl_prepare_may_act_on(run, partition->relid))
		{
			run->others++;
			continue;
		}
		partitions = lappend(partitions, partition);
	}
	MemoryContextSwitchTo(run->batch_context);
	return partitions;
}

/* Repairs the option of an index, and finds the TTL index that it belongs to. */
static void
repair_work(void *arg)
{
	PrepareWork *work = arg;

	if (ttl_crash_reason(work->crashed, work->indexrelid) != NULL)
	{
		/* target_work() reports it */
		work->root = work->indexrelid;
		return;
	}
	if (ttl_saved_option_needs_repair(work->indexrelid))
	{
		work->locks = true;
		ttl_saved_option_repair(work->indexrelid);
		ttl_report_lost(work->run, work->indexrelid);
	}
	work->root = ttl_catalog_root(work->indexrelid);
}

/* Writes the option of a partitioned TTL index into the indexes of its partitions. */
static void
follow(PrepareWork *work, Oid indexrelid)
{
	if (!OidIsValid(indexrelid) ||
		get_rel_relkind(indexrelid) != RELKIND_PARTITIONED_INDEX)
		return;
	work->locks = true;
	ttl_children_follow(indexrelid);
}

/* Finds what a visit to a TTL index has to do, unless it is not to be visited. */
static void
target_work(void *arg)
{
	PrepareWork *work = arg;
	TtlRun	   *run = work->run;
	Oid			root = work->indexrelid;
	char	   *crash = ttl_crash_reason(work->crashed, root);
	List	   *leaves;
	List	   *partitions;
	TtlIndex	index;
	bool		active;
	TtlTarget  *target;

	if (!ttl_prepare_is_allowed(run, root))
	{
		run->others++;
		return;
	}
	if (crash != NULL)
	{
		if (work->begins)
			ttl_report_put_aside(run, root, crash);
		return;
	}
	follow(work, root);
	follow(work, ttl_pair_other(root));
	leaves = leave_out(run, ttl_leaves_by_row(root));
	active = ttl_catalog_describe(root, false, &index) &&
		(index.state == TTL_ACTIVE || index.state == TTL_TABLE_LOCKED);
	partitions = active && index.state == TTL_ACTIVE ?
		list_partitions(run, &index) : NIL;

	MemoryContextSwitchTo(run->context);
	target = palloc0(sizeof(TtlTarget));
	target->root = root;
	target->relid = active ? index.relid : InvalidOid;
	target->leaves = ttl_citus_goes_elsewhere(&index.citus) ? NIL : list_copy(leaves);
	target->partitions = partitions;
	target->active = active;
	work->target = target;
	MemoryContextSwitchTo(run->batch_context);
}

/* Notes, and counts, that an index could not be prepared. */
static void
note_failure(PrepareWork *work, const ErrorData *edata, bool timed_out)
{
	TtlRun	   *run = work->run;
	TtlCount	count = {.indexrelid = work->indexrelid};

	/*
	 * that a session of others could not prepare it, by its limits, say, is
	 * no error of the index
	 */
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(work->indexrelid)) ||
		!ttl_prepare_is_allowed(run, work->indexrelid))
		return;
	ttl_outcome_note_error(run, work->indexrelid, work->indexrelid, edata, timed_out);
	(void) ttl_outcome_note_failed(run, work->indexrelid, true);
	count.relid = IndexGetRelation(work->indexrelid, true);
	ttl_outcome_set_error(&count, count.relid, edata);
	ttl_counters_add(&count);
	run->kept->counted = true;
	work->locks = true;
}

/*
 * Runs the preparation of one index in a subtransaction, within the limits of a batch,
 * and notes its error.  It gets a second try, because DDL of others can make it fail.
 */
static void
prepare_index(PrepareWork *work)
{
	TtlRun	   *run = work->run;
	ErrorData  *edata = NULL;
	bool		timed_out = false;

	run->shared->current_index = work->indexrelid;
	ttl_crash_mark(work->indexrelid);
	for (int i = 0; i < PREPARE_TRIES && !timed_out; i++)
	{
		edata = ttl_work_run(run->driver, work->function, work, &timed_out);
		if (edata == NULL)
			break;
		AcceptInvalidationMessages();
	}
	ttl_crash_mark(InvalidOid);
	run->shared->current_index = InvalidOid;
	if (edata != NULL)
		note_failure(work, edata, timed_out);
}

/* Must the index wait for the next pass, or for longer? */
static bool
is_waiting(const TtlRun *run, Oid indexrelid)
{
	return ttl_outcome_is_skipped(run, indexrelid) ||
		ttl_kept_is_put_off(run->kept, indexrelid, run->at);
}

/* Prepares one of the indexes.  False if the sub-pass is to end. */
static bool
prepare_next(PrepareWork *work, Oid indexrelid)
{
	TtlRun	   *run = work->run;

	work->locks = false;
	work->indexrelid = indexrelid;
	work->root = InvalidOid;
	work->target = NULL;
	if (ttl_work_must_stop(run))
		return false;
	if (is_waiting(run, indexrelid))
		return true;
	prepare_index(work);
	MemoryContextSwitchTo(run->context);
	if (OidIsValid(work->root))
		work->roots = lappend_oid(work->roots, work->root);
	if (work->target != NULL)
		run->targets = lappend(run->targets, work->target);
	ttl_work_forget(run);
	return true;
}

/*
 * Commits what was prepared of some indexes, those in the list from first to behind.  Code of
 * users can have that fail: it has changed something on another server, say, which does not
 * commit.  Then each of them is prepared once more by itself, to find out which one it is.
 */
static void
commit_prepared(PrepareWork *work, int first, int behind, int roots, int targets)
{
	TtlRun	   *run = work->run;
	bool		timed_out;
	const ErrorData *edata = ttl_work_try_commit(run, &timed_out);

	if (edata == NULL)
		return;
	work->roots = list_truncate(work->roots, roots);
	run->targets = list_truncate(run->targets, targets);
	if (behind - first == 1)
	{
		ttl_work_begin(run);
		work->indexrelid = list_nth_oid(work->indexes, first);
		if (!ttl_work_must_stop(run))
			note_failure(work, edata, timed_out);
		ttl_work_commit(run);
		return;
	}
	for (int i = first; i < behind && !run->stop; i++)
	{
		roots = list_length(work->roots);
		targets = list_length(run->targets);
		ttl_work_begin(run);
		(void) prepare_next(work, list_nth_oid(work->indexes, i));
		commit_prepared(work, i, i + 1, roots, targets);
	}
}

/*
 * Prepares each of the indexes.  They share transactions as long as they take no
 * locks, since those of thousands would fill the lock table.
 */
static void
prepare_each(void *arg)
{
	PrepareWork *work = arg;
	TtlRun	   *run = work->run;
	int			count = list_length(work->indexes);
	int			behind;

	for (int first = 0; first < count && !run->stop; first = behind)
	{
		int			roots = list_length(work->roots);
		int			targets = list_length(run->targets);

		ttl_work_begin(run);
		behind = first;
		do
		{
			if (!prepare_next(work, list_nth_oid(work->indexes, behind++)))
				break;
		} while (behind < count && !work->locks && behind - first < PREPARE_SHARED);
		commit_prepared(work, first, behind, roots, targets);
	}
	list_sort(work->roots, list_oid_cmp);
	list_deduplicate_oid(work->roots);
}

/*
 * Counts the error for a worker that could not do so itself, because it was terminated or
 * has crashed at an index.  After a termination the pass goes on behind that index, which
 * is not to blame where somebody wanted the database.
 */
static void
count_death(TtlRun *run)
{
	const TtlTold *told = &run->shared->told;
	TtlCount	count = {0};

	if (!OidIsValid(told->died_at))
		return;
	/* the sub-pass of that worker was not counted */
	run->kept->idle_sub_passes++;
	if (!told->died_in_crash)
		run->kept->resume_at = told->died_at + 1;
	if (told->died_wanted)
		return;
	count.indexrelid = told->died_at;
	count.relid = IndexGetRelation(count.indexrelid, true);
	count.errors = 1;
	count.last_error = told->died_in_crash ?
		"the server crashed while the worker was at this index" :
		"the worker was terminated while it was at this index";
	count.last_error_sqlstate = unpack_sql_state(told->died_in_crash ?
												 ERRCODE_CRASH_SHUTDOWN : ERRCODE_ADMIN_SHUTDOWN);
	count.last_error_time = GetCurrentTimestamp();
	ttl_counters_add(&count);
	run->kept->counted = true;
	if (told->died_in_crash)
	{
		ErrorData	edata = {.sqlerrcode = ERRCODE_CRASH_SHUTDOWN,
		.message = unconstify(char *, count.last_error)};

		ttl_report_error(run, told->died_at, told->died_at, &edata);
		return;
	}
	(void) ttl_outcome_note_failed(run, told->died_at, true);
	if (told->died_canceled)
		ttl_kept_canceled(run->kept, told->died_at, told->died_at, run->at);
}

/* Is deletion held, also by this reading of the clock?  Reads the state file. */
static bool
is_held(TtlRun *run, TtlStateFile *file)
{
	ttl_hold_check_clock(file, run->at);
	run->shared->held = ttl_hold_is_held(file,
										 run->driver->is_worker ? WARNING : ERROR,
										 &run->kept->said);
	return run->shared->held;
}

static void
check_work(void *arg)
{
	TtlRun	   *run = arg;

	/* no code of users is called, so the launcher may end a wait for a lock */
	run->shared->limited = false;
	ttl_counters_check();
}

/* Do the objects of the extension fit the library?  If not, a session gets the error. */
static bool
objects_fit(TtlRun *run)
{
	bool		timed_out;
	ErrorData  *edata = ttl_work_run(run->driver, check_work, run, &timed_out);

	if (edata == NULL)
	{
		run->kept->said.at = 0;
		return true;
	}
	if (!run->driver->is_worker)
		ReThrowError(edata);
	ttl_report_no_pass(run, edata);
	run->stop = true;
	return false;
}

/* Repairs what needs it, then lists the TTL indexes to visit. */
void
ttl_prepare_targets(TtlRun *run)
{
	TtlFunctions functions;
	TtlStateFile file;
	PrepareWork work = {.run = run,.begins = run->kept->pass_at == 0,.function = repair_work};

	ttl_work_begin(run);
	run->at = GetCurrentTimestamp();
	if (is_held(run, &file))
	{
		run->stop = true;
		ttl_work_commit(run);
		return;
	}
	if (work.begins)
		ttl_kept_begin_pass(run->kept, run->at);
	else
		ttl_kept_try_again(run->kept, run->at);
	/* else a pass would last until a clock that was set back is there again */
	run->kept->pass_at = Min(run->kept->pass_at, run->at);
	/* who drops the extension has locked the counters, maybe for hours */
	if (ttl_function_lookup(&functions) && !ttl_work_must_stop(run) &&
		objects_fit(run))
	{
		count_death(run);
		if (work.begins)
			ttl_kept_set_failing(run->kept, ttl_counters_failing());
		if (work.begins && superuser())
			ttl_saved_option_trim();
		MemoryContextSwitchTo(run->context);
		work.indexes = list_copy(ttl_catalog_dependents());
		work.crashed = ttl_crash_skipped(&file);
	}
	ttl_work_commit(run);
	ttl_pair_hold(prepare_each, &work);
	work.indexes = work.roots;
	work.roots = NIL;
	work.function = target_work;
	ttl_pair_hold(prepare_each, &work);
}
