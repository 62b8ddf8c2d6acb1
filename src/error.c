/*-------------------------------------------------------------------------
 *
 * error.c
 *	  Catching errors, and what one that was caught comes of.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/error.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "ttl_index.h"

/*
 * Does an error with this SQLSTATE come of a signal, as a cancellation and lock_timeout do?
 * The code of a user can raise the same SQLSTATE.
 */
bool
ttl_error_is_interrupt(const ErrorData *edata, int sqlerrcode)
{
	return edata->sqlerrcode == sqlerrcode && edata->funcname != NULL &&
		strcmp(edata->funcname, "ProcessInterrupts") == 0;
}

/*
 * Is an error that others hold a lock?  Of code that raises the same SQLSTATE nobody has to go
 * away for it to end.  The languages have domains of their own for their messages.
 */
bool
ttl_error_is_of_lock(const ErrorData *edata)
{
	return edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE && edata->domain != NULL &&
		strcmp(edata->domain, PG_TEXTDOMAIN("postgres")) == 0;
}

/*
 * Copies the error that has been caught; NULL where there is no memory for that, and then the error
 * says so.
 */
static ErrorData *
copy_error(void)
{
	ErrorData  *volatile edata = NULL;

	PG_TRY();
	{
		edata = CopyErrorData();
	}
	PG_CATCH();
	{
		/* what was allocated for the subtransaction is given back next */
	}
	PG_END_TRY();
	return edata;
}

/*
 * Runs a function in a subtransaction, so that an error takes back its work alone; where nothing
 * is to be kept, so does its end.  Returns the error, or NULL.
 *
 * The error is copied before the subtransaction ends: one that a language has caught and thrown anew
 * says where it was raised in memory of the function that did so.
 *
 * Code of users can leave subtransactions open within this one: a language does where it
 * catches an error and meets another one, out of memory say, before it has rolled back its own.
 * Nothing would be committed any more behind that, and no locks given back.
 */
ErrorData *
ttl_error_catch(void (*work) (void *), void *arg, bool keep)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile edata = NULL;
	volatile bool failed = false;
	int			level;

	BeginInternalSubTransaction(NULL);
	level = GetCurrentTransactionNestLevel();
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		work(arg);
		if (GetCurrentTransactionNestLevel() > level)
			elog(ERROR, "a function has left a subtransaction open");
		if (keep)
			ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		failed = true;
		MemoryContextSwitchTo(context);
		edata = copy_error();
	}
	PG_END_TRY();
	while (GetCurrentTransactionNestLevel() >= level)
		RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	if (!failed)
		return NULL;
	if (edata == NULL)
		edata = CopyErrorData();
	FlushErrorState();
	return edata;
}

/* Does the same, and raises the error for the caller. */
static void
run_in_subtransaction(void (*work) (void *), void *arg, bool keep)
{
	ErrorData  *edata = ttl_error_catch(work, arg, keep);

	if (edata != NULL)
		ReThrowError(edata);
}

/* Runs a function in a subtransaction, which closes what it has opened, and leaves its errors to the caller. */
void
ttl_error_enclose(void (*work) (void *), void *arg)
{
	run_in_subtransaction(work, arg, true);
}

/*
 * Runs a function of which nothing is to be kept but what it has put into memory, and leaves its
 * errors to the caller.  For code of owners that only looks: what it has opened or queued until the
 * transaction ends, large objects say, and what core keeps until a subtransaction does, is
 * not there for what comes behind it, which can be code of others.
 */
void
ttl_error_isolate(void (*work) (void *), void *arg)
{
	run_in_subtransaction(work, arg, false);
}
