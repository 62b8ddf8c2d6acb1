/*-------------------------------------------------------------------------
 *
 * messages.h
 *	  What the processes of run_pass() say, for the session that called it.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/messages.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_MESSAGES_H
#define TTL_MESSAGES_H

#include "postmaster/bgworker.h"
#include "storage/dsm.h"

typedef struct TtlMessages TtlMessages;

/* messages.c */
extern TtlMessages *ttl_messages_begin(void);
extern dsm_handle ttl_messages_handle(const TtlMessages *messages);
extern void ttl_messages_set_handle(TtlMessages *messages, BackgroundWorkerHandle *handle);
extern void ttl_messages_relay(TtlMessages *messages, bool raises);
extern void ttl_messages_end(TtlMessages *messages);
extern void ttl_messages_redirect(dsm_handle handle);

#endif							/* TTL_MESSAGES_H */
