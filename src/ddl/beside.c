/*-------------------------------------------------------------------------
 *
 * beside.c
 *	  TTL indexes beside each other on one table.
 *
 * TTL indexes on the same table are independent: a row is deleted as soon as any of them makes
 * it due.  A message says so when a second one is created, unless no row can be in both.
 *
 * If indexes heed the TTL that documents have of their own (own_ttl.c), another index on the same
 * date that does not heed it would delete documents that must live longer.  Our functions
 * refuse it.  DDL, which also restores dumps, warns.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ddl/beside.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "ddl/ddl.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "ttl_index.h"

/* What matters of a TTL index beside others. */
typedef struct Side
{
	Oid			indexrelid;		/* invalid: it is to be made */
	TtlDate		date;
	bool		heeds_own_ttl;
	List	   *filter;
} Side;

/* False where the index has no TTL, its own or that of an index above it. */
static bool
has_ttl(Oid indexrelid)
{
	TtlOption	option;
	Oid			parent;
	Oid			governor;

	return ttl_catalog_governor(indexrelid, &parent, &governor, &option) &&
		option.present && option.problem == NULL;
}

/* Reads an index, whether it has a TTL or not. */
static bool
read_side(Oid indexrelid, Side *side)
{
	TtlOption	option;

	if (!ttl_option_read(indexrelid, &option) || option.problem != NULL ||
		!ttl_own_ttl_date(indexrelid, &side->date))
		return false;
	side->indexrelid = indexrelid;
	side->filter = option.filter;
	side->heeds_own_ttl = side->date.ttl != NULL ||
		ttl_own_ttl_asked_for(option.filter) != NULL;
	return true;
}

/*
 * A TTL index of the table that can hold the same rows as this one, and is not its sibling;
 * with clashing, only one that deletes what the other keeps.  Invalid for none.
 */
static Oid
find_beside(Oid relid, const Side *side, bool clashing)
{
	Oid			main = OidIsValid(side->indexrelid) ? ttl_own_ttl_main(side->indexrelid) : InvalidOid;
	Oid			sibling = OidIsValid(main) ? ttl_own_ttl_sibling(main) : InvalidOid;
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		Oid			indexrelid = lfirst_oid(lc);
		Side		other;

		if (indexrelid == main || indexrelid == sibling ||
			!read_side(indexrelid, &other) ||
			(clashing && (side->heeds_own_ttl == other.heeds_own_ttl ||
						  side->date.attnum != other.date.attnum ||
						  !equal(side->date.expression, other.date.expression))) ||
			!has_ttl(indexrelid) ||
			/* as far as core can tell, by the filters as they are stored */
			predicate_refuted_by(other.filter, side->filter, true))
			continue;
		return indexrelid;
	}
	return InvalidOid;
}

static void
refuse_clash(Oid relid, const Side *side)
{
	Oid			other = find_beside(relid, side, true);

	if (OidIsValid(other))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 side->heeds_own_ttl ?
				 errmsg("TTL index \"%s\" on the same key does not heed the documents' own TTLs",
						get_rel_name(other)) :
				 errmsg("TTL index \"%s\" on the same key heeds the documents' own TTLs",
						get_rel_name(other)),
				 errdetail("A row goes when one of the two says so, so documents that are to live longer, or for ever, would be deleted."),
				 errhint("Make that one a plain index with ttl_index.remove_ttl(), or drop it.")));
}

/* Raises an error where a TTL index with this key and filter would clash. */
void
ttl_beside_check_new(Oid relid, const TtlKey *key, List *filter)
{
	Side		side = {
		.date = {key->expression ? InvalidAttrNumber : key->attnum,
		key->expression},
		.heeds_own_ttl = ttl_own_ttl_asked_for(filter) != NULL
	};

	/* siblings divide the rows between them */
	side.filter = side.heeds_own_ttl ? ttl_own_ttl_plain_filter(filter) : filter;
	refuse_clash(relid, &side);
}

/* The same for a plain index that is to get a TTL. */
void
ttl_beside_check(Oid indexrelid)
{
	Oid			relid = IndexGetRelation(indexrelid, false);
	Side		side;

	if (read_side(indexrelid, &side))
		refuse_clash(relid, &side);
}

/* Tells the client what else expires rows of a new TTL index's table. */
void
ttl_beside_report(Oid indexrelid)
{
	Oid			relid = IndexGetRelation(indexrelid, false);
	Side		side;
	Oid			other;

	/* of documents with a TTL of their own, all is said of the main index */
	if (list_length(ttl_catalog_table_indexes(relid)) < 2 ||
		!has_ttl(indexrelid) || ttl_own_ttl_main(indexrelid) != indexrelid ||
		!read_side(indexrelid, &side))
		return;
	other = find_beside(relid, &side, true);
	if (OidIsValid(other))
	{
		ereport(WARNING,
				(errmsg("of TTL indexes \"%s\" and \"%s\" on the same key only \"%s\" heeds the documents' own TTLs",
						get_rel_name(indexrelid), get_rel_name(other),
						get_rel_name(side.heeds_own_ttl ? indexrelid : other)),
				 errdetail("A row goes when one of the two says so, so documents that are to live longer, or for ever, are deleted."),
				 errhint("Make the other one a plain index with ttl_index.remove_ttl(), or drop it.")));
		return;
	}
	other = find_beside(relid, &side, false);
	if (OidIsValid(other))
		ereport(NOTICE,
				(errmsg("rows of table \"%s\" expire by TTL index \"%s\", too",
						get_rel_name(relid), get_rel_name(other)),
				 errdetail("A row goes when one of the two says so.")));
}
