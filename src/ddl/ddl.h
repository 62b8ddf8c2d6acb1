/*-------------------------------------------------------------------------
 *
 * ddl.h
 *	  Declaring, changing and removing TTL indexes.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_DDL_H
#define TTL_DDL_H

#include "definition/key.h"

/* Options to set.  NULL, and 0 for bucket_seconds and unit, keeps the present value. */
typedef struct TtlChange
{
	const int32 *seconds;
	char	   *time_zone;
	TtlUnit		unit;
	const bool *drop_partitions;
	const bool *detach_partitions;
	const bool *boundary_rows;
	const bool *paused;
	const Oid  *archive_to;
	int32		bucket_seconds;
} TtlChange;

/* The arguments of create_index().  Those before or_change identify the index. */
typedef struct TtlCreate
{
	Oid			relid;
	char	   *key;
	char	   *filter;			/* SQL text, or NULL */
	char	   *ttl_field;		/* document_ttl_field */
	char	   *name;
	bool		or_change;
	TtlChange	change;
} TtlCreate;

/* create.c */
extern char *ttl_create_option_sql(const TtlOption *option);
extern Oid	ttl_create_index_for(const TtlCreate *args);

/* coll_mod.c */
extern TtlUnit ttl_coll_mod_read_unit(FunctionCallInfo fcinfo, int i);
extern void ttl_coll_mod_merge(TtlIndex *index, Oid sibling, const TtlChange *change);
extern bool ttl_coll_mod_apply(Oid indexrelid, const TtlChange *change, int32 *old);
extern void ttl_coll_mod_here(Oid indexrelid, const TtlOption *option);

/* cluster.c */
extern void ttl_cluster_change(Oid indexrelid, const TtlOption *option);
extern void ttl_cluster_apply(Node *node);

/* notice.c */
extern void ttl_notice_report_due(Oid indexrelid, bool is_new);
extern Oid	ttl_notice_find_overlap(Oid relid, Oid itself, const TtlSide *side, int elevel);
extern void ttl_notice_report_overlap(Oid indexrelid, int elevel);

#endif							/* TTL_DDL_H */
