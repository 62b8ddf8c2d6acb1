/*-------------------------------------------------------------------------
 *
 * uncomputed.c
 *	  What core has yet to compute of relations that are open or new.
 *
 * Core drops what it has computed of a relation when it is told to drop its caches, but not while
 * that is open, nor where its files are of this transaction.  What is not computed yet there would
 * be computed by the search_path of code of somebody else, and stay: so it is noted before such code
 * runs, and forgotten behind it (see code.c).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/uncomputed.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "compat.h"
#include "ttl_index.h"

/* Have the files of a relation been made in this transaction? */
static bool
is_new(Relation rel)
{
	return rel->rd_createSubid != InvalidSubTransactionId ||
		rel->rd_firstRelfilelocatorSubid != InvalidSubTransactionId;
}

/* A relation that no invalidation makes core forget, and which expressions it had yet to compute. */
typedef struct Uncomputed
{
	Relation	rel;
	bool		is_open;		/* once more, for this */
	bool		key;
	bool		filter;
	bool		partition_key;
	bool		bounds;
} Uncomputed;

/*
 * Notes what core has yet to compute of a relation.  What comes of a partition's bounds it computes
 * anew behind each invalidation, also while that is open.  False where there is nothing.
 */
static bool
is_uncomputed(Relation rel, Uncomputed *note)
{
	*note = (Uncomputed)
	{
		.rel = rel,
		.key = rel->rd_index != NULL && rel->rd_indexprs == NIL,
		.filter = rel->rd_index != NULL && rel->rd_indpred == NIL,
		.partition_key = rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE &&
		rel->rd_partkey == NULL,
		.bounds = rel->rd_rel->relispartition && rel->rd_index == NULL
	};
	if (note->key)
		note->key = !heap_attisnull(rel->rd_indextuple, Anum_pg_index_indexprs, NULL);
	if (note->filter)
		note->filter = !heap_attisnull(rel->rd_indextuple, Anum_pg_index_indpred, NULL);
	return note->key || note->filter || note->partition_key || note->bounds;
}

/*
 * The relations that are open or new, of which there are no more while a function of the extension
 * runs, which can act as the owners of thousands of partitions.
 */
static TtlCandidates candidates;

/*
 * Forgets them, as others can be open or new now.  Returns those of before, for a function in
 * whose midst another one begins.
 */
TtlCandidates
ttl_uncomputed_forget_candidates(void)
{
	TtlCandidates before = candidates;

	candidates = (TtlCandidates){0};
	return before;
}

void
ttl_uncomputed_restore_candidates(TtlCandidates before)
{
	list_free(candidates.relids);
	candidates = before;
}

/* None are in a transaction of run_pass() that has just begun, and it has one for each batch. */
void
ttl_uncomputed_begin_pass(void)
{
	candidates = (TtlCandidates){.known = true};
}

/* Whatever is open or new is locked, and core lists nothing else. */
static void
find_candidates(void)
{
	LockData   *locks = GetLockStatusData();

	candidates.relids = NIL;
	for (int i = 0; i < locks->nelements; i++)
	{
		const LockInstanceData *lock = &locks->locks[i];
		Relation	rel;

		if (lock->pid != MyProcPid || lock->locktag.locktag_type != LOCKTAG_RELATION ||
			lock->locktag.locktag_field1 != MyDatabaseId)
			continue;
		rel = RelationIdGetRelation(lock->locktag.locktag_field2);
		if (rel == NULL)
			continue;
		if (rel->rd_refcnt > 1 || is_new(rel))
			candidates.relids = lappend_oid(candidates.relids, RelationGetRelid(rel));
		RelationClose(rel);
	}
	pfree(locks->locks);
	pfree(locks);
	candidates.known = true;
}

/*
 * The relations that are open where a role's code begins, such as those of a query that calls the
 * extension, or new, and of which expressions are not computed yet, as after a change by another
 * session.  That code can make core compute them, by its search_path, and no invalidation would make
 * core drop that.
 *
 * Open ones are opened once more until the code is over, which can close a cursor.  New ones are
 * not, as the extension may alter them in the meantime; they stay in memory.
 */
List *
ttl_uncomputed_note(bool within_other)
{
	List	   *notes = NIL;
	ListCell   *lc;

	if (ttl_code_is_worker() && !within_other)
		return NIL;
	if (!candidates.known)
		find_candidates();
	foreach(lc, candidates.relids)
	{
		Relation	rel = RelationIdGetRelation(lfirst_oid(lc));
		Uncomputed	note;
		bool		is_open;
		bool		is_noted;

		if (rel == NULL)
			continue;
		is_open = rel->rd_refcnt > 1;
		is_noted = (is_open || is_new(rel)) && is_uncomputed(rel, &note);
		if (is_noted)
		{
			note.is_open = is_open;
			notes = lappend(notes, memcpy(palloc(sizeof(note)), &note, sizeof(note)));
		}
		if (!is_noted || !is_open)
			RelationClose(rel);
	}
	return notes;
}

/* Makes core compute anew what it has computed meanwhile; queries have copies of it. */
static void
forget_computed(const Uncomputed *note)
{
	Relation	rel = note->rel;

	if (note->key)
		rel->rd_indexprs = NIL;
	if (note->filter)
		rel->rd_indpred = NIL;
	if (note->bounds)
	{
		if (rel->rd_partcheckcxt != NULL)
			MemoryContextDelete(rel->rd_partcheckcxt);
		rel->rd_partcheckcxt = NULL;
		rel->rd_partcheck = NIL;
		rel->rd_partcheckvalid = false;
	}
	if (note->partition_key)
	{
		/* a query can use it; what little that is stays in memory */
		rel->rd_partkey = NULL;
		rel->rd_partkeycxt = NULL;
	}
}

/* Forgets it where the code is over, by an error: the end of the (sub)transaction closes them. */
void
ttl_uncomputed_forget(List *notes)
{
	ListCell   *lc;

	foreach(lc, notes)
		forget_computed(lfirst(lc));
}

/* Does so where it has come to its good end. */
void
ttl_uncomputed_let_go(List *notes)
{
	ListCell   *lc;

	ttl_uncomputed_forget(notes);
	foreach(lc, notes)
	{
		Uncomputed *note = lfirst(lc);

		if (note->is_open)
			RelationClose(note->rel);
	}
	list_free_deep(notes);
}
