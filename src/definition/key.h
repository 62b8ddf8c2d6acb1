/*-------------------------------------------------------------------------
 *
 * key.h
 *	  The key of a TTL index, and up to where it is due.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_KEY_H
#define TTL_KEY_H

#include "datatype/timestamp.h"
#include "definition/definition.h"
#include "nodes/parsenodes.h"
#include "utils/relcache.h"

/*
 * A partition of a time series, from one key to another; the upper one is
 * exclusive.  Keys are numbers, or in microseconds, a date's too.
 */
typedef struct TtlPartition
{
	Oid			relid;			/* invalid: it is to be made */
	Oid			indexrelid;		/* its part of the index, if that was asked for */
	bool		is_default;
	bool		has_lower;
	bool		has_upper;
	int64		lower;
	int64		upper;
} TtlPartition;

/* Up to which key a scan goes, and which keys have to be checked one by one. */
typedef struct TtlCutoff
{
	TimestampTz instant;		/* what is not later is due */
	Oid			keytype;
	struct pg_tz *zone;			/* NULL unless the key is a local time */
	TtlUnit		unit;
	int64		least;			/* keys below are no dates */
	int64		bound;			/* greatest key that can be due */
	int64		sure;			/* keys up to here are due without a check */
} TtlCutoff;

/* What a key that a user named stands for (see key.c). */
typedef struct TtlKey
{
	AttrNumber	attnum;
	char	   *column;			/* NULL for an expression */
	char	   *sql;			/* as an index element of CREATE INDEX */
	Node	   *expression;		/* NULL for the column itself */
	Oid			type;			/* of the key that is indexed */
	bool		has_format;		/* the unit or zone is in the expression */
} TtlKey;

/* What matters of an index to the TTL indexes beside it. */
typedef struct TtlSide
{
	AttrNumber	attnum;			/* of the column with the date, or invalid */
	Node	   *expression;		/* NULL for a column */
	Node	   *ttl;			/* of documents that have one, which the key
								 * adds, or the predicate tests; or NULL */
	bool		is_main;		/* the key does not add it */
	List	   *filter;			/* without the test of the TTL */
} TtlSide;

/* key.c */
extern char *ttl_key_hint(Oid relid, AttrNumber attnum, Oid type);
extern char *ttl_key_similar(Relation rel, const char *name);
extern Node *ttl_key_parse(Relation rel, const char *text, bool is_filter, const char *name);
extern void ttl_key_resolve(Relation rel, const char *name, TtlUnit unit,
							const char *time_zone, TtlKey *key);
extern bool ttl_key_read(Oid indexrelid, AttrNumber *attnum,
						 Node **expression);
extern Node *ttl_key_node(Oid relid, AttrNumber attnum, Node *expression);
extern Node *ttl_key_strip_coercions(Node *node);
extern char *ttl_key_format(Node *expression);
extern char *ttl_key_path_text(Node *expression, Oid relid);
extern List *ttl_key_indexes(Relation rel, const char *name);
extern List *ttl_key_prefer_ttl(List *indexes);
extern Oid	ttl_key_index(Oid relid, const char *key, bool only_ttl);

/* own_ttl.c */
extern Node *ttl_own_ttl_asked_for(List *members);
extern List *ttl_own_ttl_plain_filter(List *members);
extern bool ttl_own_ttl_read(Oid indexrelid, TtlSide *side);
extern Oid	ttl_own_ttl_find(Oid relid, const TtlSide *side);
extern Oid	ttl_own_ttl_sibling(Oid main);
extern Oid	ttl_own_ttl_main(Oid indexrelid);
extern char *ttl_own_ttl_field_name(Node *call, Oid relid);
extern char *ttl_own_ttl_field_sql(Relation rel, const char *name);

/* cutoff.c */
extern void ttl_cutoff_init(TtlCutoff *cutoff, const TtlIndex *index,
							TimestampTz at);
extern bool ttl_cutoff_is_due(const TtlCutoff *cutoff, int64 key);
extern TimestampTz ttl_cutoff_instant(const TtlCutoff *cutoff, int64 key);
extern int64 ttl_cutoff_clock(const TtlIndex *index, TimestampTz at);
extern char *ttl_cutoff_zone_problem(const char *name);

/* bounds.c */
extern List *ttl_bounds_read(Oid whole);
extern void ttl_bounds_read_one(Oid relid, TtlPartition *partition);
extern bool ttl_bounds_possible(Oid relid, AttrNumber attnum, Oid keytype);

#endif							/* TTL_KEY_H */
