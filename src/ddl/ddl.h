/*-------------------------------------------------------------------------
 *
 * ddl.h
 *	  Declaring, changing and removing TTL indexes.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ddl/ddl.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_DDL_H
#define TTL_DDL_H

#include "commands/event_trigger.h"
#include "definition/key.h"
#include "definition/option.h"
#include "tcop/deparse_utility.h"
#include "utils/snapshot.h"

typedef struct TtlCreate
{
	Oid			relid;
	char	   *key;
	int32		seconds;
	char	   *filter;			/* SQL text, or NULL */
	char	   *time_zone;
	char	   *ttl_field;		/* document_ttl_field */
	char	   *name;
	bool		drop_partitions;
	bool		detach_partitions;
	bool		paused;			/* of a new index */
	bool		boundary_rows;
	int32		bucket_seconds;
	bool		or_change;
	bool		has_archive_to; /* it was given */
	Oid			archive_to;
} TtlCreate;

/* create.c */
extern Oid	ttl_create_index_for(const TtlCreate *args);
extern bool ttl_create_is_running(void);
extern void ttl_create_check_together(bool drop_partitions, bool detach_partitions,
									  bool boundary_rows, Oid archive_to);

/* coll_mod.c */
extern void ttl_coll_mod_apply(Oid indexrelid, const TtlCreate *args);
extern void ttl_coll_mod_here(Oid indexrelid, const TtlOption *option);

/* cluster.c */
extern void ttl_cluster_change(Oid indexrelid, const TtlOption *option);

/* event.c */
extern EventTriggerData *ttl_event_data(FunctionCallInfo fcinfo);
extern HeapTuple ttl_event_class_before(Oid relid, Snapshot before);
extern bool ttl_event_has_deleted(const HeapTupleData *tuple);

/* beside.c */
extern void ttl_beside_check_new(Oid relid, const TtlKey *key, List *filter);
extern void ttl_beside_check(Oid indexrelid);
extern void ttl_beside_report(Oid indexrelid);

/* hypertable.c */
extern void ttl_hypertable_init(void);

/* dropped.c */
extern void ttl_dropped_report(const CollectedCommand *command, Snapshot before);

/* mismatch.c */
extern void ttl_mismatch_report(const CollectedCommand *command,
								Snapshot before);

/* mistake.c */
extern void ttl_mistake_init(void);

/* notice.c */
extern void ttl_notice_report_due(Oid indexrelid, bool is_new);

#endif							/* TTL_DDL_H */
