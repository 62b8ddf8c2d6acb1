/*-------------------------------------------------------------------------
 *
 * error.h
 *	  Catching errors, and what one comes of.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/error.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_ERROR_H
#define TTL_ERROR_H

/* error.c */
extern ErrorData *ttl_error_catch(void (*work) (void *), void *arg, bool keep);
extern bool ttl_error_is_interrupt(const ErrorData *edata, int sqlerrcode);
extern bool ttl_error_is_of_lock(const ErrorData *edata);

#endif							/* TTL_ERROR_H */
