/*-------------------------------------------------------------------------
 *
 * error.c
 *	  What an error that was caught comes of.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/error.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

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
