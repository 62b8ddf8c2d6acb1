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

/* What was there before the code of a role began. */
typedef struct TtlLeftover
{
	Oid			role;			/* whose code ran */
	List	   *cursors;		/* the memory of those that were open */
	List	   *locks;			/* of pages, that were held */
	uint64		commands;		/* that had begun, and not come to their end */
	int			spi_levels;		/* of functions that run commands by SPI */
} TtlLeftover;

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

/* leftover.c */
extern void ttl_leftover_init(void);
extern void ttl_leftover_note(TtlLeftover *before);
extern void ttl_leftover_check(const TtlLeftover *before, Oid user);
extern void ttl_leftover_begin(Oid new_role, int guc_level, TtlLeftover *before);
extern void ttl_leftover_close(const TtlLeftover *before);
extern void ttl_leftover_end(const TtlLeftover *before);
extern void ttl_leftover_expect(void);
extern Oid	ttl_leftover_failed(void);
extern Oid	ttl_leftover_beside(void);
extern Oid	ttl_leftover_commander(void);
extern void ttl_leftover_fall_back(void);
extern Datum ttl_leftover_call(PGFunction function, FunctionCallInfo fcinfo);
extern bool ttl_leftover_is_code(Oid function);

#endif							/* TTL_LEFTOVER_H */
