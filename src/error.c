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

/* Was this SQLSTATE raised by ProcessInterrupts(), not by the code of a user? */
bool
ttl_error_is_interrupt(const ErrorData *edata, int sqlerrcode)
{
	return edata->sqlerrcode == sqlerrcode && edata->funcname != NULL &&
		strcmp(edata->funcname, "ProcessInterrupts") == 0;
}

/* Did core fail to get a lock?  Other languages have message domains of their own. */
bool
ttl_error_is_of_lock(const ErrorData *edata)
{
	return edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE && edata->domain != NULL &&
		strcmp(edata->domain, PG_TEXTDOMAIN("postgres")) == 0;
}

/*
 * Runs a function in a subtransaction.  Rolls it back after an error, or always unless `keep`,
 * with subtransactions that code of users left open, as PL/Perl does.  Returns the error, or
 * NULL.
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
