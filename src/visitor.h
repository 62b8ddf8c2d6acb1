/*-------------------------------------------------------------------------
 *
 * visitor.h
 *	  Who visits the TTL indexes of a database (visitor.c).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/visitor.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_VISITOR_H
#define TTL_VISITOR_H

#include "nodes/pg_list.h"

typedef struct TtlVisitor
{
	const char *status;			/* a word */
	const char *reason;			/* why the monitor does not, or NULL */
	const char *hint;
	List	   *roles;			/* whose run_pass() was not long ago */
} TtlVisitor;

/* visitor.c */
extern void ttl_visitor_find(TtlVisitor *visitor);
extern bool ttl_visitor_is_session(const TtlVisitor *visitor, Oid owner, Oid whole);
extern const char *ttl_visitor_why_no_monitor(Oid database, bool *enabled,
											  const char **hint);
extern const char *ttl_visitor_why_none(const TtlVisitor *visitor, Oid owner, Oid whole);

#endif							/* TTL_VISITOR_H */
