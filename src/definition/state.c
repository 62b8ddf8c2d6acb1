/*-------------------------------------------------------------------------
 *
 * state.c
 *	  The states of TTL indexes: names, reasons, errors and hints.
 *
 * The same list serves DDL, which raises a state as an error, passes, which skip the index,
 * and the view, which shows it. catalog.c decides which state an index has.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/state.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "ttl_index.h"

typedef struct StateText
{
	const char *name;
	int			sqlerrcode;
	const char *reason;			/* NULL: ttl_state_reason() makes it */
	const char *hint;
} StateText;

/* in the order of TtlState */
static const StateText state_texts[] = {
	{"active", ERRCODE_SUCCESSFUL_COMPLETION, NULL, NULL},
	{"malformed_option", ERRCODE_INVALID_PARAMETER_VALUE, NULL,
	"Write WHERE [filter AND] ttl_index.expire_after_seconds(seconds), with seconds between 0 and 2147483647."},
	{"not_btree", ERRCODE_FEATURE_NOT_SUPPORTED,
		"a TTL index must be a btree index",
	"Create it with USING btree, which is the default."},
	{"constraint_index", ERRCODE_FEATURE_NOT_SUPPORTED,
		"the index of a constraint or replica identity cannot be a TTL index",
	"Create another index on the same key for the TTL."},
	{"unique_index", ERRCODE_FEATURE_NOT_SUPPORTED,
		"a TTL index cannot be unique",
	"Create another index on the same key for the TTL."},
	{"compound_key", ERRCODE_FEATURE_NOT_SUPPORTED,
		"a TTL index must have one key only",
	"Further columns can be added with INCLUDE."},
	{"long_definition", ERRCODE_PROGRAM_LIMIT_EXCEEDED,
		"the key and the filter of a TTL index cannot take more than 1 MB",
	"Keep in a column what says of a row whether it expires."},
	{"id_key", ERRCODE_FEATURE_NOT_SUPPORTED,
		"_id, the identity of a document, cannot be the key of a TTL index",
	"Create one on the column or path that holds the date."},
	{"key_type", ERRCODE_DATATYPE_MISMATCH, NULL, NULL},
	{"operator_class", ERRCODE_FEATURE_NOT_SUPPORTED,
		"a TTL index must use the default operator class of its key",
	"Create it without naming an operator class."},
	{"time_zone_missing", ERRCODE_INVALID_PARAMETER_VALUE, NULL,
	"Give the time zone in which the key is read: AND ttl_index.time_zone('...')."},
	{"time_zone_invalid", ERRCODE_INVALID_PARAMETER_VALUE, NULL,
	"The view pg_timezone_names lists the names; Europe/Berlin, say."},
	{"time_zone_unused", ERRCODE_INVALID_PARAMETER_VALUE,
		"a TTL index on a key of type timestamp with time zone takes no time zone",
	"Leave time_zone out: such a key names an instant by itself."},
	{"temporary_table", ERRCODE_FEATURE_NOT_SUPPORTED,
		"a temporary table cannot have a TTL index",
	"Other sessions cannot reach its rows; it ends with its own session."},
	{"materialized_view", ERRCODE_WRONG_OBJECT_TYPE,
		"a materialized view cannot have a TTL index",
	"Create it on the table that the view reads."},
	{"hypertable", ERRCODE_FEATURE_NOT_SUPPORTED,
		"a hypertable of TimescaleDB, or a chunk of one, cannot have a TTL index",
	"Let TimescaleDB drop its chunks: SELECT add_retention_policy(...)."},
	{"table_access_method", ERRCODE_FEATURE_NOT_SUPPORTED,
		"a TTL index needs a table of the access method heap",
	"ALTER TABLE ... SET ACCESS METHOD changes it."},
	{"instead_rule", ERRCODE_FEATURE_NOT_SUPPORTED,
		"a TTL index needs a table without a rule ON DELETE DO INSTEAD",
	"Replace the rule with a trigger, which can do the same for rows that expire."},
	{"not_partitioned_by_key", ERRCODE_FEATURE_NOT_SUPPORTED,
		"partitions can be dropped and made only where the table is partitioned by RANGE of the key alone",
		"The key of the index and of PARTITION BY RANGE must be the same column. "
	"Create the index on the table that is partitioned so, above or below this one."},
	{"filtered_buckets", ERRCODE_FEATURE_NOT_SUPPORTED,
		"a TTL index with a filter cannot drop or make partitions",
	"Let an index without a filter do that; this one can expire its rows earlier."},
	{"archive_mismatch", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, NULL,
	"Another table can be named with ttl_index.coll_mod_index(..., archive_to => ...)."},
	{"not_valid", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
		"the index is being built, or its build failed, or a partition has no index of it",
	"Drop and create the index again, or REINDEX it, or attach an index of each partition."},
	{"option_remembered", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
		"the option was lost by REINDEX CONCURRENTLY and will be restored by the next pass",
	NULL},
	{"option_lost", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
		"the option was lost, and no saved option was found",
	"Set it again with ttl_index.coll_mod_index(), or make it a plain index with ttl_index.remove_ttl()."},
	{"table_locked", ERRCODE_LOCK_NOT_AVAILABLE,
		"the table is locked exclusively by another session",
	NULL},
	{"no_replica_identity", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
		"the table is published with its deletes and has no replica identity",
	"Set one with ALTER TABLE ... REPLICA IDENTITY."},
	{"owner_lacks_privilege", ERRCODE_INSUFFICIENT_PRIVILEGE,
		"the table's owner lacks SELECT or DELETE on it, or USAGE on its schema",
	"Rows are deleted with the privileges of the owner: GRANT them."},
	{"old_snapshots", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
		"the index cannot be used until transactions older than it have ended",
	NULL},
	{"repack_copy", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
		"pg_repack fills this copy of a table, or has left it behind",
	"The rows expire in the table itself."},
	{"shard_elsewhere", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
		"by the catalogs of Citus this shard is not on this node, or it is being moved or split",
	NULL},
	{"option_differs", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
		"the option of this shard is not that of its table",
	"Set it again at the coordinator with ttl_index.coll_mod_index()."},
	{"no_monitor", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, NULL, NULL},
	{"crashed_server", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, NULL, NULL},
	{"held", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, NULL, NULL},
	{"paused", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
		"the index is paused, until ttl_index.unpause_index()",
	NULL},
	{"failing", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
		"the last visit ended in an error, or rows that cannot be deleted are left: see last_error in ttl_index.index_stats",
	NULL},
	{"bucket_failing", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
		"the partition was due and could not be dropped, detached or moved: see last_error in ttl_index.index_stats",
	NULL},
	{"bucket_missing", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, NULL, NULL},
};

StaticAssertDecl(lengthof(state_texts) == TTL_BUCKET_MISSING + 1,
				 "one text for each state");

const char *
ttl_state_name(TtlState state)
{
	return state_texts[state].name;
}

/* Why the index is not active, or what it leaves out; NULL for neither. */
char *
ttl_state_reason(const TtlIndex *index)
{
	switch (index->state)
	{
		case TTL_ACTIVE:
			return index->left_out;
		case TTL_MALFORMED_OPTION:
			return pstrdup(index->option.problem);
		case TTL_KEY_TYPE:
			return psprintf("the key of a TTL index cannot be of type %s",
							index->detail);
		case TTL_TIME_ZONE_MISSING:
			return psprintf("a TTL index on a key of type %s needs a time zone",
							index->detail);
		case TTL_TIME_ZONE_INVALID:
			if (ttl_time_zone_is_ambiguous(index->detail))
				return psprintf("time zone \"%s\" is also an abbreviation with another meaning",
								index->detail);
			return psprintf("time zone \"%s\" is not a name of pg_timezone_names",
							index->detail);
		case TTL_ARCHIVE_MISMATCH:
		case TTL_NO_MONITOR:
		case TTL_CRASHED_SERVER:
		case TTL_HELD:
		case TTL_BUCKET_MISSING:
			return pstrdup(index->detail);
		case TTL_OWNER_LACKS_PRIVILEGE:
			return pstrdup(index->mend ? index->detail : state_texts[index->state].reason);
		default:
			return pstrdup(state_texts[index->state].reason);
	}
}

/* What to do about a state; NULL where nothing is, or the state alone does not tell. */
const char *
ttl_state_hint(const TtlIndex *index)
{
	const char *hint = state_texts[index->state].hint;

	return index->mend ? psprintf("%s %s", index->mend, hint) : hint;
}

static void
raise_with_hint(const TtlIndex *index, const char *hint)
{
	Assert(index->state != TTL_ACTIVE);
	if (index->state == TTL_KEY_TYPE)
		hint = ttl_hint_key_type(index->relid, index->keyattnum, index->keytype, NULL);
	ereport(ERROR,
			(errcode(state_texts[index->state].sqlerrcode),
			 errmsg_internal("%s", ttl_state_reason(index)),
			 hint ? errhint("%s", hint) : 0));
}

/* Raises the state as an error, for DDL. */
void
ttl_state_raise(const TtlIndex *index)
{
	raise_with_hint(index, ttl_state_hint(index));
}

/* Raises it for the argument of a function, where a hint on CREATE INDEX is of no use. */
void
ttl_state_raise_argument(const TtlIndex *index)
{
	raise_with_hint(index, index->state == TTL_TIME_ZONE_MISSING ?
					"Give the time zone in which the key is read: time_zone => 'Europe/Berlin', say." :
					ttl_state_hint(index));
}

/* Raises it for ALTER TABLE ... TYPE, which cannot give or take the time zone. */
void
ttl_state_raise_altered(const TtlIndex *index)
{
	if (index->state == TTL_TIME_ZONE_MISSING || index->state == TTL_TIME_ZONE_UNUSED)
		raise_with_hint(index,
						psprintf("Make it a plain index first: ttl_index.remove_ttl(%s). ttl_index.coll_mod_index() makes it a TTL index again%s.",
								 quote_literal_cstr(ttl_name_qualified(index->indexrelid)),
								 index->state == TTL_TIME_ZONE_MISSING ?
								 ", with a time zone" : ""));
	ttl_state_raise(index);
}

/*
 * Raises an error unless there is an index with this OID.  A stored definition that names an
 * index by a constant of type regclass has its OID, which does not outlive REINDEX CONCURRENTLY.
 */
void
ttl_state_check_is_index(Oid relid)
{
	char		relkind = get_rel_relkind(relid);

	if (relkind == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("index with OID %u does not exist", relid),
				 OidIsValid(relid) ?
				 errhint("REINDEX CONCURRENTLY gives an index a new OID. In a view, policy or function, write its name as text: 'schema.index'::text::regclass.") : 0));
	if (relkind != RELKIND_INDEX && relkind != RELKIND_PARTITIONED_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an index", get_rel_name(relid)),
				 errhint("The view ttl_index.indexes lists the TTL indexes.")));
}

/* Is the index there, and valid? */
bool
ttl_state_is_usable(Oid indexrelid)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	Form_pg_index form;
	bool		usable;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_index) GETSTRUCT(tuple);
	usable = form->indisvalid && form->indisready && form->indislive;
	ReleaseSysCache(tuple);
	return usable;
}

/*
 * Is this an index that a failed build or REINDEX CONCURRENTLY has left behind?  An invalid
 * index of a partitioned table is none: it waits for the indexes of its partitions.
 */
bool
ttl_state_is_leftover(Oid indexrelid)
{
	return get_rel_relkind(indexrelid) == RELKIND_INDEX &&
		!ttl_state_is_usable(indexrelid);
}

/*
 * Is this a remnant of REINDEX CONCURRENTLY, by its name?  A plain REINDEX of the table,
 * VACUUM FULL and CLUSTER make it valid.
 */
bool
ttl_state_is_copy(Oid indexrelid)
{
	char	   *name = get_rel_name(indexrelid);
	int			length = name ? strlen(name) : 0;

	if (ttl_state_is_leftover(indexrelid))
		return true;
	while (length > 0 && isdigit((unsigned char) name[length - 1]))
		length--;
	return length > 6 && !get_rel_relispartition(indexrelid) &&
		(strncmp(name + length - 6, "_ccnew", 6) == 0 ||
		 strncmp(name + length - 6, "_ccold", 6) == 0);
}

/* Raises an error unless the index is usable. */
void
ttl_state_check_usable(Oid indexrelid)
{
	if (!ttl_state_is_usable(indexrelid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is not valid", get_rel_name(indexrelid)),
				 errhint("Drop and create it again, or REINDEX it, or attach an index of each partition.")));
}

/*
 * Returns an argument that is a number of seconds, or NULL.  It is a bigint in SQL: milliseconds
 * must not end in an error that there is no such function.
 */
const int32 *
ttl_state_read_seconds(FunctionCallInfo fcinfo, int i)
{
	int64		seconds = PG_ARGISNULL(i) ? 0 : PG_GETARG_INT64(i);
	int32	   *value = palloc(sizeof(int32));

	if (seconds > PG_INT32_MAX || seconds < PG_INT32_MIN)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg_internal("%s", TTL_SECONDS_RANGE),
				 errhint(TTL_SECONDS_HINT)));
	*value = (int32) seconds;
	return PG_ARGISNULL(i) ? NULL : value;
}

/* Raises an error unless the seconds are in the range of the option. */
void
ttl_state_check_seconds(int32 seconds, bool may_be_never)
{
	if (seconds >= 0 || (seconds == -1 && may_be_never))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg_internal("%s", may_be_never ? TTL_SECONDS_OR_NEVER : TTL_SECONDS_RANGE),
			 seconds == -1 ?
			 errhint("-1, never, is for documents with a TTL of their own (document_ttl_field) and for time series. Rows of a table without a TTL index never expire.") :
			 errhint("ttl_index.seconds('30 days') is the number of seconds of 30 days.")));
}
