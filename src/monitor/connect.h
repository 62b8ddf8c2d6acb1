/*-------------------------------------------------------------------------
 *
 * connect.h
 *	  Connecting a worker as the owner of tables.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/connect.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_CONNECT_H
#define TTL_CONNECT_H

/* connect.c */
extern bool ttl_connect_is_possible(Oid owner);
extern void ttl_connect_as(Oid database, Oid owner, bool is_superuser);

#endif							/* TTL_CONNECT_H */
