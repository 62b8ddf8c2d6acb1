/*-------------------------------------------------------------------------
 *
 * children.c
 *	  The option of a partitioned TTL index, in the indexes of its partitions.
 *
 * The option of the topmost ancestor that has one governs an index.  It is written into the
 * children as well, so that a partition keeps its TTL after DETACH, and does not get back
 * an older one.  ddl/event.c does that with each command, and prepare.c in each pass.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/children.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "utils/lsyscache.h"

#include "definition/definition.h"
#include "definition/option.h"
#include "ttl_index.h"

/* Do two options say the same, whatever the filters are? */
bool
ttl_children_same(const TtlOption *a, const TtlOption *b)
{
	if (a->present != b->present || a->seconds != b->seconds ||
		a->problem != NULL || b->problem != NULL ||
		a->drop_partitions != b->drop_partitions ||
		a->detach_partitions != b->detach_partitions ||
		a->bucket_seconds != b->bucket_seconds ||
		a->paused != b->paused ||
		a->archive_to != b->archive_to)
		return false;
	if (a->time_zone == NULL || b->time_zone == NULL)
		return a->time_zone == b->time_zone;
	return strcmp(a->time_zone, b->time_zone) == 0;
}

/*
 * Does the index of a partition carry what the option that governs it says?  One
 * that is malformed is left as it is: it expires nothing once it is detached.
 */
bool
ttl_children_is_right(Oid child, const TtlOption *governing, TtlOption *part)
{
	TtlOption	own;

	if (!governing->present || governing->problem != NULL ||
		!ttl_option_read(child, &own) || own.problem != NULL)
		return true;
	*part = ttl_option_of_part(governing, own.filter);
	return ttl_children_same(&own, part);
}

/*
 * Writes the option that governs a partition's index into it, whose lock the
 * caller holds.  It is read only now: who changes it locks every index that it
 * governs before.
 */
void
ttl_children_write(Oid child)
{
	TtlOption	governing;
	TtlOption	part;
	Oid			parent;
	Oid			governor;

	if (ttl_catalog_governor(child, &parent, &governor, &governing) &&
		governor != child && !ttl_children_is_right(child, &governing, &part))
		ttl_saved_option_put(child, &part);
}

/*
 * Writes the option of a partitioned TTL index into its children where they
 * carry none or another, so that DETACH neither silences nor revives one.  A
 * child that is locked just now waits for the next pass.
 */
void
ttl_children_follow(Oid root)
{
	TtlOption	option;
	TtlOption	part;
	ListCell   *lc;

	if (get_rel_relkind(root) != RELKIND_PARTITIONED_INDEX ||
		!ttl_option_read(root, &option))
		return;
	foreach(lc, ttl_inherit_tree(root))
	{
		Oid			child = lfirst_oid(lc);

		if (child != root && !ttl_children_is_right(child, &option, &part) &&
			ttl_saved_option_lock(child))
			ttl_children_write(child);
	}
}
