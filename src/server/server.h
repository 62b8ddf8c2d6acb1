/*-------------------------------------------------------------------------
 *
 * server.h
 *	  The processes of the monitor, and what the views show of them.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_SERVER_H
#define TTL_SERVER_H

#include "pass/pass.h"
#include "portability/instr_time.h"
#include "storage/dsm.h"
#include "storage/shm_mq.h"

/* What a database waits for. */
typedef enum TtlStage
{
	TTL_STAGE_DONE,				/* its pass is over */
	TTL_STAGE_SURVEY,			/* a survey is to be started */
	TTL_STAGE_SURVEYING,
	TTL_STAGE_WORKING			/* owners wait, or workers run */
} TtlStage;

/* What is known of a database, by the launcher or by a session that runs a pass. */
typedef struct TtlDatabase
{
	Oid			oid;
	char		name[NAMEDATALEN];
	bool		seen;			/* in pg_database, at this look */
	TtlStage	stage;
	uint64		served;			/* when a process was last started: larger is later */
	bool		had_pass;
	instr_time	last_pass;		/* when its last process ended */
	bool		begins;			/* the next survey begins a pass */
	bool		more;			/* the pass needs another sub-pass */
	int			rounds;			/* that workers have made since the last survey */
	int			running;		/* processes */
	int			hanging;		/* processes that are not waited for */
	int			waiting;		/* owners that wait for a worker */
	List	   *owners;			/* of tables; see tasks.c */
	TtlPassState kept;
} TtlDatabase;

/* Who visits the TTL indexes of a database. */
typedef struct TtlVisitor
{
	const char *status;			/* a word */
	const char *reason;			/* why the monitor does not, or NULL */
	const char *hint;
	bool		may_call;		/* run_pass() would delete instead */
	List	   *roles;			/* whose run_pass() was not long ago */
	List	   *settings;		/* of roles in that database; see visitor.c */
} TtlVisitor;

/* launcher.c */
extern void ttl_launcher_register(void);
extern bool ttl_launcher_registered;

/* visitor.c */
#define TTL_SLOTS_HINT \
	"Consider increasing the configuration parameter \"max_worker_processes\" to at least three more than \"max_parallel_workers\": parallel queries take their workers from the same slots."

extern void ttl_visitor_find(Oid database, const TtlHold *held, TtlVisitor *visitor);
extern const char *ttl_visitor_why_none(TtlVisitor *visitor, Oid owner);

/* overview.c */
extern dshash_table *ttl_overview_create(dsa_area *area);
extern void ttl_overview_note(dshash_table *known, Oid database, const TtlSurvey *survey);

/* worker.c */
extern bool ttl_worker_can_connect(Oid owner);

/* survey.c */
extern void ttl_survey_run(TtlRun *run, dsa_area *area, bool may_run);

/* shown_state.c */
extern void ttl_shown_state_complete(TtlIndex *index, TtlVisitor *visitor,
									 const TtlStateFile *file,
									 HTAB *failing);

/* messages.c */
extern shm_mq_handle *ttl_messages_begin(dsm_handle *handle);
extern void ttl_messages_relay(shm_mq_handle *messages, bool raises);
extern void ttl_messages_redirect(dsm_handle handle);

/* tasks.c */
extern int64 ttl_tasks_elapsed(instr_time since);
extern void ttl_tasks_nap(long milliseconds);
extern void ttl_tasks_init(Oid caller);
extern void ttl_tasks_end(int code, Datum arg);
extern int64 ttl_tasks_next_pass(void);
extern void ttl_tasks_note_crash(Oid database, Oid indexrelid);
extern TtlDatabase *ttl_tasks_add_database(Oid oid);
extern void ttl_tasks_forget_unseen(void);
extern void ttl_tasks_begin_pass(TtlDatabase *db);
extern bool ttl_tasks_step(bool may_start);
extern void ttl_tasks_show(void);

#endif							/* TTL_SERVER_H */
