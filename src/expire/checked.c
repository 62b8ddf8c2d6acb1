/*-------------------------------------------------------------------------
 *
 * checked.c
 *	  Which tables were looked at since anything has changed.
 *
 * A foreign key gives a command for each row, and what it leads to is looked at before each: all
 * partitions of a table, thousands perhaps.  Nothing of that changes between two rows but by what
 * core tells of, and locks that were taken for it are there until a (sub)transaction ends.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/checked.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/inval.h"
#include "utils/syscache.h"

#include "compat.h"
#include "expire/cascade.h"

/* One more table than these is looked at again. */
#define MAX_CHECKED 32

typedef struct Checked
{
	Oid			relid;
	Oid			role;
	TtlCheck	check;
} Checked;

static Checked checked[MAX_CHECKED];
static int	nchecked = 0;
static int	next = 0;
static uint64 nchanges = 0;

/*
 * Was this found to be well for a table and a role, and is it so still?  Else it is to be looked at,
 * and noted with what has changed until now.
 */
bool
ttl_checked_find(Oid relid, Oid role, TtlCheck check, uint64 *since)
{
	/* a lock that is held already tells nothing of changes */
	AcceptInvalidationMessages();
	*since = nchanges;
	for (int i = 0; i < nchecked; i++)
	{
		if (checked[i].relid == relid && checked[i].role == role && checked[i].check == check)
			return true;
	}
	return false;
}

/* Notes it, unless something has changed while it was looked at. */
void
ttl_checked_add(Oid relid, Oid role, TtlCheck check, uint64 since)
{
	if (since != nchanges)
		return;
	checked[next] = (Checked)
	{
		relid, role, check
	};
	next = (next + 1) % MAX_CHECKED;
	nchecked = Min(nchecked + 1, MAX_CHECKED);
}

static void
forget_all(void)
{
	nchecked = 0;
	next = 0;
	nchanges++;
}

static void
relation_changed(Datum arg, Oid relid)
{
	forget_all();
}

static void
other_changed(Datum arg, SysCacheIdentifier cacheid, uint32 hashvalue)
{
	forget_all();
}

static void
xact_event(XactEvent event, void *arg)
{
	forget_all();
}

static void
subxact_event(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		forget_all();
}

void
ttl_checked_init(void)
{
	/* whose privileges a role has, and what is code of a user */
	static const SysCacheIdentifier caches[] = {AUTHMEMROLEMEM, AUTHOID, PROCOID, TYPEOID};

	for (int i = 0; i < lengthof(caches); i++)
		CacheRegisterSyscacheCallback(caches[i], other_changed, (Datum) 0);
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	RegisterXactCallback(xact_event, NULL);
	RegisterSubXactCallback(subxact_event, NULL);
}
