/*-------------------------------------------------------------------------
 *
 * option.h
 *	  The option of a TTL index: read, written, saved, passed on to partitions.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_OPTION_H
#define TTL_OPTION_H

#include "access/htup.h"
#include "fmgr.h"
#include "keytype.h"
#include "nodes/pg_list.h"
#include "nodes/primnodes.h"

#define TTL_SECONDS_RANGE "expire_after_seconds must be between 0 and 2147483647"
#define TTL_SECONDS_HINT "These are seconds, not milliseconds; 2147483647 of them are 68 years."
#define TTL_MIN_BUCKET_SECONDS 60
#define TTL_MAX_BUCKET_SECONDS 31536000
#define TTL_BUCKET_SECONDS_RANGE "bucket_max_span_seconds must be between 60 and 31536000"
#define TTL_DROP_OR_DETACH "drop_expired_partitions and detach_expired_partitions exclude each other"
#define TTL_ARCHIVE_OR_DETACH "archive_to and detach_expired_partitions exclude each other"
#define TTL_SECONDS_OR_NEVER TTL_SECONDS_RANGE ", or -1 for never"

/* The functions that predicates and keys are read by, in the order of option.c. */
typedef struct TtlFunctions
{
	Oid			expire_after_seconds;
	Oid			time_zone;
	Oid			drop_expired_partitions;
	Oid			bucket_max_span_seconds;
	Oid			paused;
	Oid			archive_to;
	Oid			detach_expired_partitions;
	Oid			unit;
	Oid			seconds;
	Oid			document_ttl;	/* of jsonb */
	Oid			column_ttl;		/* of an integer */
	Oid			expire_at;
	Oid			document_date;
	Oid			document_date_in;
} TtlFunctions;

/* How many of these, from the first one on, are options. */
#define TTL_OPTION_FUNCTIONS (offsetof(TtlFunctions, seconds) / sizeof(Oid))

/* How many can stand in what remove_ttl() takes out of an index: these and seconds(). */
#define TTL_REMOVED_FUNCTIONS (TTL_OPTION_FUNCTIONS + 1)

/* What the predicate of one index says. */
typedef struct TtlOption
{
	bool		present;		/* an option function occurs in it */
	const char *problem;		/* why it is malformed, or NULL */
	int32		seconds;
	char	   *time_zone;		/* NULL where the option is not given */
	TtlUnit		unit;			/* of a key that is no date */
	bool		drop_partitions;	/* partitions that are due go as a whole */
	bool		detach_partitions;	/* and stay as tables of their own */
	bool		boundary_rows;	/* due rows of the others go one by one */
	int32		bucket_seconds; /* span of the partitions to be made, or 0 */
	bool		paused;			/* nothing is deleted */
	Oid			archive_to;		/* rows move to this table, or invalid */
	List	   *filter;			/* the other AND members, not folded */
} TtlOption;

/* option.c */
extern bool ttl_option_functions(TtlFunctions *functions);
extern Oid	ttl_option_function(const TtlFunctions *functions, int i);
extern List *ttl_option_arguments(const FuncExpr *call);
extern bool ttl_option_expires(const TtlOption *option);
extern void ttl_option_read_members(List *members, bool usable, TtlOption *option);
extern bool ttl_option_read(Oid indexrelid, TtlOption *option);
extern List *ttl_option_members(const TtlOption *option);
extern TtlOption ttl_option_of_part(const TtlOption *whole, List *filter);
extern Node *ttl_option_stored_tree(HeapTuple tuple, AttrNumber attnum);
extern bool ttl_option_is_within(Node *node, void *context);
extern bool ttl_option_same(const TtlOption *a, const TtlOption *b);
extern bool ttl_option_is_inherited(Oid child, const TtlOption *governing, TtlOption *part);

/* saved_option.c */
extern void ttl_saved_option_put(Oid indexrelid, const TtlOption *option);
extern bool ttl_saved_option_is_dependent(Oid indexrelid);
extern bool ttl_saved_option_apply(Oid indexrelid, TtlOption *option);
extern void ttl_saved_option_write(Oid indexrelid, const TtlOption *option);
extern void ttl_saved_option_trim(void);
extern void ttl_saved_option_restore(Oid indexrelid);
extern bool ttl_saved_option_lock(Oid indexrelid);
extern bool ttl_saved_option_needs_repair(Oid indexrelid);
extern void ttl_saved_option_repair(Oid indexrelid);

#endif							/* TTL_OPTION_H */
