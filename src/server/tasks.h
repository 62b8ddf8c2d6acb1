/*-------------------------------------------------------------------------
 *
 * tasks.h
 *	  The processes of a pass: which there are, and which is next.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/server/tasks.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_TASKS_H
#define TTL_TASKS_H

#include "shared/kept.h"
#include "pass/pass.h"
#include "portability/instr_time.h"
#include "postmaster/bgworker.h"
#include "storage/dsm.h"

/* What a database waits for. */
typedef enum TtlStage
{
	TTL_STAGE_DONE,				/* its pass is over */
	TTL_STAGE_SURVEY,			/* a survey is to be started */
	TTL_STAGE_SURVEYING,
	TTL_STAGE_WORKING			/* tasks wait, or workers run */
} TtlStage;

/* What is known of the owner of tables in a database. */
typedef struct TtlOwner
{
	Oid			oid;
	bool		is_superuser;
	int			hanging;		/* workers of it that cannot be ended */
	uint64		served;			/* when it last had a worker: larger is later */
	Oid			resume_at;		/* the index with which its next worker begins */
} TtlOwner;

/* Work for one worker: TTL indexes of one owner. */
typedef struct TtlTask
{
	TtlOwner   *owner;
	List	   *roots;			/* OIDs */
} TtlTask;

/* What is known of a database, by the launcher or by a session that runs a pass. */
typedef struct TtlDatabase
{
	Oid			oid;
	char		name[NAMEDATALEN];
	bool		seen;			/* in pg_database, at this look */
	TtlStage	stage;
	uint64		served;			/* as of an owner */
	bool		had_pass;
	instr_time	last_pass;		/* when its last process ended */
	int			delay;			/* minutes that it waits since then, or 0 */
	bool		begins;			/* the next survey begins a pass */
	bool		more;			/* the pass needs another sub-pass */
	int			rounds;			/* that workers have made since the last survey */
	int			running;		/* processes */
	List	   *tasks;			/* that wait for a worker */
	List	   *owners;
	TtlPassState kept;
} TtlDatabase;

/* A queue for what a process says to the session that runs the pass. */
typedef struct TtlMessages TtlMessages;

/* messages.c */
extern TtlMessages *ttl_messages_begin(dsm_handle *handle);
extern void ttl_messages_set_handle(TtlMessages *messages, BackgroundWorkerHandle *handle);
extern void ttl_messages_relay(TtlMessages *messages, bool raises);
extern void ttl_messages_end(TtlMessages *messages);
extern void ttl_messages_redirect(dsm_handle handle);

/* tasks.c */
extern int64 ttl_tasks_elapsed(instr_time since);
extern void ttl_tasks_init(Oid caller);
extern void ttl_tasks_end(int code, Datum arg);
extern int64 ttl_tasks_next_pass(void);
extern void ttl_tasks_note_crash(Oid database, Oid indexrelid);
extern TtlDatabase *ttl_tasks_add_database(Oid oid);
extern void ttl_tasks_forget_unseen(void);
extern void ttl_tasks_begin_pass(TtlDatabase *db);
extern bool ttl_tasks_step(bool may_start);
extern bool ttl_tasks_lack_slot(void);

#endif							/* TTL_TASKS_H */
