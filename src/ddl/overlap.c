/*-------------------------------------------------------------------------
 *
 * overlap.c
 *	  Other TTL indexes on the same table.
 *
 * TTL indexes on the same table are independent: a row is deleted as soon as any of them makes
 * it due.  A NOTICE says so when a second one is created, unless no row can be in both.
 *
 * If indexes use the TTL that documents have of their own (own_ttl.c), another index on the same
 * date that ignores it would delete documents that must live longer.  Our functions refuse
 * such an index.  DDL, which also restores dumps, warns.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "ddl/ddl.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "ttl_index.h"

/* What matters of an index to other TTL indexes. */
typedef struct Side
{
	TtlDate		date;
	bool		uses_own_ttl;
	List	   *filter;			/* without the condition on own TTLs */
} Side;

/* Reads an index, whether it has a TTL or not. */
static bool
read_side(Oid indexrelid, Side *side)
{
	TtlOption	option;

	if (!ttl_option_read(indexrelid, &option) || option.problem != NULL ||
		!ttl_own_ttl_date(indexrelid, &side->date))
		return false;
	side->uses_own_ttl = side->date.ttl != NULL ||
		ttl_own_ttl_asked_for(option.filter) != NULL;
	side->filter = ttl_own_ttl_plain_filter(option.filter);
	return true;
}

/*
 * Finds another TTL index of the table that can hold the same rows.  With ignoring, it must
 * have the same date, and one of the two ignores the own TTLs that the other one uses.
 */
static Oid
find_overlap(Oid relid, Oid itself, const Side *side, bool ignoring)
{
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		Oid			indexrelid = lfirst_oid(lc);
		TtlOption	option;
		Oid			governor;
		Side		other;
		bool		same_date;

		if (indexrelid == itself || !read_side(indexrelid, &other) ||
			!ttl_catalog_governor(indexrelid, &governor, &option) ||
			!option.present || option.problem != NULL)
			continue;
		same_date = side->date.attnum == other.date.attnum &&
			equal(side->date.expression, other.date.expression);
		if (ignoring && (!same_date || side->uses_own_ttl == other.uses_own_ttl))
			continue;
		/* the two indexes for documents with own TTLs are one TTL index */
		if (same_date && side->uses_own_ttl && other.uses_own_ttl)
			continue;
		/* as far as core can tell, by the filters as they are stored */
		if (predicate_refuted_by(other.filter, side->filter, true))
			continue;
		return indexrelid;
	}
	return InvalidOid;
}

/* Reports, at this level, an index that ignores own TTLs which another one uses. */
static bool
report_ignoring(int elevel, Oid relid, Oid itself, const Side *side)
{
	Oid			other = find_overlap(relid, itself, side, true);

	if (!OidIsValid(other))
		return false;
	ereport(elevel,
			(errcode(ERRCODE_DUPLICATE_OBJECT),
			 side->uses_own_ttl ?
			 errmsg("TTL index \"%s\" on the same key ignores the documents' own TTLs",
					get_rel_name(other)) :
			 errmsg("TTL index \"%s\" on the same key uses the documents' own TTLs",
					get_rel_name(other)),
			 errdetail("TTL indexes are independent, so documents with a longer TTL of their own would be deleted."),
			 errhint("SELECT ttl_index.remove_ttl(%s);",
					 quote_literal_cstr(ttl_name_qualified(other)))));
	return true;
}

/* Raises an error if one of two TTL indexes, this one to be created, ignored own TTLs. */
void
ttl_overlap_check_new(Oid relid, const TtlKey *key, List *filter)
{
	Side		side = {
		.date = {key->expression ? InvalidAttrNumber : key->attnum, key->expression},
		.uses_own_ttl = ttl_own_ttl_asked_for(filter) != NULL,
		.filter = ttl_own_ttl_plain_filter(filter)
	};

	(void) report_ignoring(ERROR, relid, InvalidOid, &side);
}

/*
 * Tells the client of other TTL indexes on the table of a new one.  If one of two ignores own
 * TTLs, that is reported at this level.
 */
void
ttl_overlap_report(Oid indexrelid, int elevel)
{
	Oid			relid = IndexGetRelation(indexrelid, false);
	Side		side;
	TtlOption	own;
	TtlOption	others;
	Oid			other;

	if (list_length(ttl_catalog_table_indexes(relid)) < 2 ||
		!read_side(indexrelid, &side) ||
		report_ignoring(elevel, relid, indexrelid, &side) ||
		side.date.ttl != NULL)
		return;
	other = find_overlap(relid, indexrelid, &side, false);
	if (!OidIsValid(other))
		return;

	/* rows that one of them would move can be deleted by the other one */
	if (ttl_option_read(indexrelid, &own) && ttl_option_read(other, &others) &&
		OidIsValid(own.archive_to) != OidIsValid(others.archive_to))
	{
		bool		moves = OidIsValid(own.archive_to);
		char	   *archive = ttl_name_find(moves ? own.archive_to : others.archive_to);

		ereport(WARNING,
				(errmsg("TTL index \"%s\" deletes rows that TTL index \"%s\" would move to an archive",
						get_rel_name(moves ? other : indexrelid),
						get_rel_name(moves ? indexrelid : other)),
				 errdetail("A row is deleted or moved by the index that makes it due first."),
				 errhint("SELECT * FROM ttl_index.coll_mod_index(%s, %d, archive_to => %s);",
						 quote_literal_cstr(ttl_name_qualified(moves ? other : indexrelid)),
						 moves ? others.seconds : own.seconds,
						 archive ? quote_literal_cstr(archive) : "...")));
	}
	else
		ereport(NOTICE,
				(errmsg("table \"%s\" already has TTL index \"%s\"",
						get_rel_name(relid), get_rel_name(other)),
				 errdetail("A row is deleted as soon as any of its TTL indexes makes it due.")));
}
