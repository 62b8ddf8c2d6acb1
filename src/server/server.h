/*-------------------------------------------------------------------------
 *
 * server.h
 *	  The processes of the monitor, and what the views show of them.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/server/server.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_SERVER_H
#define TTL_SERVER_H

#include "pass/pass.h"
#include "shared/state_file.h"

/* Who visits the TTL indexes of this database. */
typedef struct TtlVisitor
{
	const char *status;			/* a word */
	const char *reason;			/* why the monitor does not, or NULL */
	const char *hint;
	List	   *roles;			/* whose run_pass() was not long ago */
	Oid			owner;			/* the last one that was asked about: */
	const char *owner_reason;	/* why a worker of it does not, or NULL */
} TtlVisitor;

/* launcher.c */
extern void ttl_launcher_register(void);
extern bool ttl_launcher_is_registered(void);

/* visitor.c */
#define TTL_SLOTS_HINT \
	"Consider increasing the configuration parameter \"max_worker_processes\" to at least three more than \"max_parallel_workers\": parallel queries take their workers from the same slots."

extern void ttl_visitor_find(TtlVisitor *visitor);
extern bool ttl_visitor_is_session(const TtlVisitor *visitor, Oid owner);
extern const char *ttl_visitor_why_no_monitor(Oid database, bool *enabled,
											  const char **hint);
extern const char *ttl_visitor_why_none(TtlVisitor *visitor, Oid owner);

/* connect.c */
extern bool ttl_connect_is_possible(Oid owner);
extern void ttl_connect_as(Oid database, Oid owner, bool is_superuser);

/* overview.c */
extern void ttl_overview_write(const TtlKnownDatabase *databases, int count,
							   const TtlKnownIndex *indexes, int index_count);
extern dsm_handle ttl_overview_handle(void);

/* survey.c */
extern void ttl_survey_run(TtlRun *run, dsa_area *area, bool may_run);

/* shown_state.c */
extern void ttl_shown_state_complete(TtlIndex *index, TtlVisitor *visitor,
									 const TtlStateFile *file,
									 const List *failing);

#endif							/* TTL_SERVER_H */
