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
 * Runs a function in a subtransaction, so that an error rolls back its work alone.  Without
 * `keep` its work is always rolled back.  Returns the error, or NULL.
 *
 * Code of users can leave subtransactions open within this one: PL/Perl does where it catches
 * an error and meets another one, out of memory for example, before it has rolled back its own.
 */
ErrorData *
ttl_error_catch(void (*work) (void *), void *arg, bool keep)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile edata = NULL;
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
		MemoryContextSwitchTo(context);
		edata = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	while (GetCurrentTransactionNestLevel() >= level)
		RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return edata;
}
