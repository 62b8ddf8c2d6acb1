/*-------------------------------------------------------------------------
 *
 * error.c
 *	  Catching errors, and the cause of one that was caught.
 *
 * Copyright (c) 2026, ttl_index contributors
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

/* Did core fail to get a lock?  Errors of procedural languages have other message domains. */
bool
ttl_error_is_of_lock(const ErrorData *edata)
{
	return edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE && edata->domain != NULL &&
		strcmp(edata->domain, PG_TEXTDOMAIN("postgres")) == 0;
}

/*
 * Runs a function in a subtransaction and returns the error, or NULL.  Rolls the subtransaction
 * back after an error or unless `keep`, with subtransactions that user code left open, as
 * PL/Perl can.
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
