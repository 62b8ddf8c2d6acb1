/*-------------------------------------------------------------------------
 *
 * launcher.h
 *	  What the launcher knows of the databases, and of the workers that are left in them.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/launcher.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_LAUNCHER_H
#define TTL_LAUNCHER_H

#include "monitor/kept.h"
#include "portability/instr_time.h"
#include "postmaster/bgworker.h"
#include "utils/dsa.h"

/* What the launcher knows of a database. */
typedef struct TtlDatabase
{
	Oid			oid;
	char		name[NAMEDATALEN];
	bool		seen;			/* in pg_database at the last look */
	bool		pending;		/* it wants a sub-pass */
	bool		had_sub_pass;
	instr_time	last_sub_pass;	/* when its last sub-pass ended */
	int			delay;			/* minutes that it waits since then, or 0 */
	TtlTold		told;			/* what the next worker is told */
	bool		hangs;			/* as many workers are left there as may be */
} TtlDatabase;

/* launcher.c */
extern int64 ttl_launcher_elapsed(instr_time since);

/* database.c */
extern TtlDatabase *ttl_database_find(Oid oid);
extern TtlDatabase *ttl_database_add(Oid oid);
extern List *ttl_database_read(dsa_area *area, bool begins);
extern void ttl_database_keep(TtlDatabase *db, dsa_area *area, dsa_pointer next);
extern void ttl_database_show(dsa_area *area);

/* left.c */
extern void ttl_left_add(const TtlDatabase *db, BackgroundWorkerHandle *handle,
						 dsa_pointer shared);
extern bool ttl_left_adopt(void);
extern bool ttl_left_is_full(const TtlDatabase *db, dsa_area *area);

#endif							/* TTL_LAUNCHER_H */
