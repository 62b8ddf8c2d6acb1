/*-------------------------------------------------------------------------
 *
 * leftover.h
 *	  What the code of one owner must not leave to that of others in a process.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/leftover.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_LEFTOVER_H
#define TTL_LEFTOVER_H

#include "fmgr.h"
#include "nodes/pg_list.h"

/* What had begun before the code of a role did, and not come to its end. */
typedef struct TtlUnfinished
{
	uint64		commands;
	int			spi_levels;		/* of functions that run commands by SPI */
} TtlUnfinished;

/* What was there before the code of a role began. */
typedef struct TtlLeftover
{
	Oid			role;			/* whose code ran */
	List	   *locks;			/* of pages, that were held */
	TtlUnfinished unfinished;
} TtlLeftover;

/* The relations that are open or new; see uncomputed.c. */
typedef struct TtlCandidates
{
	bool		known;
	List	   *relids;
} TtlCandidates;

typedef struct TtlActing TtlActing;

/* Who gives a command that fires triggers, in the midst of what the extension does as others. */
typedef struct TtlCommand
{
	TtlActing  *within;			/* or NULL */
	Oid			outer;			/* who gave the one in whose midst that is */
} TtlCommand;

/* code that goes on after an error can be that of any role, and no role has this OID */
#define TTL_ANY_ROLE OID_MAX

/* Declares a function of SQL that can become the owner of a table: NAME_called() is what it does. */
#define TTL_FUNCTION(name) \
	PG_FUNCTION_INFO_V1(name); \
	static Datum name##_called(PG_FUNCTION_ARGS); \
	Datum \
	name(PG_FUNCTION_ARGS) \
	{ \
		return ttl_leftover_call(name##_called, fcinfo); \
	} \
	extern int	ttl_function_ends

/* code.c */
extern void ttl_code_init(void);
extern Oid	ttl_code_role(void);
extern bool ttl_code_is_worker(void);
extern void ttl_code_set_in_pass(bool is_in_pass);
extern bool ttl_code_is_in_pass(void);
extern void ttl_code_begin(Oid new_role, bool goes_on, bool after_error);
extern void ttl_code_go_on(void);
extern void ttl_code_renew(Oid new_role);
extern Oid	ttl_code_language(Oid function);
extern bool ttl_code_is_of_user(Oid function);

/* leftover.c */
extern void ttl_leftover_init(void);
extern bool ttl_leftover_is_other_role(void);
extern TtlCommand ttl_leftover_begin_command(bool fires_triggers);
extern void ttl_leftover_end_command(const TtlCommand *command);
extern void ttl_leftover_begin(Oid new_role, Oid user, int sec_context, int guc_level,
							   bool runs_code, TtlLeftover *before);
extern void ttl_leftover_forget_plans(int sec_context_before);
extern void ttl_leftover_note_uncomputed(void);
extern void ttl_leftover_close(void);
extern void ttl_leftover_end(const TtlLeftover *before);
extern void ttl_leftover_expect(void);
extern Oid	ttl_leftover_failed(void);
extern Oid	ttl_leftover_commander(void);
extern void ttl_leftover_become_nobody(void);
extern bool ttl_leftover_renew(void);
extern Datum ttl_leftover_call(PGFunction function, FunctionCallInfo fcinfo);

/* temporary_object.c */
extern void ttl_temporary_object_init(void);
extern void ttl_temporary_object_check(void);

/* uncomputed.c */
extern void ttl_uncomputed_begin_pass(void);
extern TtlCandidates ttl_uncomputed_forget_candidates(void);
extern void ttl_uncomputed_restore_candidates(TtlCandidates before);
extern List *ttl_uncomputed_note(bool within_other);
extern void ttl_uncomputed_forget(List *notes);
extern void ttl_uncomputed_let_go(List *notes);

/* unfinished.c */
extern void ttl_unfinished_init(void);
extern void ttl_unfinished_note(TtlUnfinished *before);
extern void ttl_unfinished_raise(Oid user);
extern void ttl_unfinished_check(const TtlUnfinished *before, Oid user);

#endif							/* TTL_LEFTOVER_H */
