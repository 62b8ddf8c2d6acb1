/*-------------------------------------------------------------------------
 *
 * state.c
 *	  The states of TTL indexes: which one an index has, its reason, error and hint.
 *
 * The same list serves DDL, which raises a state as an error, passes, which skip the index,
 * and the view, which shows it.  server/shown_state.c adds what concerns the server or a
 * single partition.
 *
 * An index is judged by catalog scans and the syscache, never SQL over pg_class, and without
 * waiting for a table lock.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/index.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_publication.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "pgtime.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"
#include "definition/key.h"
#include "state/state.h"
#include "ttl_index.h"

/* in the order of TtlState */
static const char *const state_names[] = {
	"active",
	"malformed_option",
	"unsuitable_index",
	"unsuitable_table",
	"wrong_time_zone",
	"wrong_unit",
	"unsuitable_partitions",
	"archive_mismatch",
	"not_valid",
	"option_lost",
	"table_locked",
	"no_replica_identity",
	"owner_lacks_privilege",
	"old_snapshots",
	"repack_copy",
	"shard_elsewhere",
	"option_differs",
	"no_monitor",
	"crashed_server",
	"held",
	"paused",
	"failing",
	"bucket_failing",
	"bucket_missing"
};

StaticAssertDecl(lengthof(state_names) == TTL_BUCKET_MISSING + 1, "one name for each state");

const char *
ttl_state_name(TtlState state)
{
	return state_names[state];
}

/* Sets the state of an index, and the error that DDL raises for it; returns the state. */
TtlState
ttl_state_set(TtlIndex *index, TtlState state, int sqlerrcode, const char *reason,
			  const char *hint)
{
	index->state = state;
	index->sqlerrcode = sqlerrcode;
	index->reason = reason;
	index->hint = hint;
	return state;
}

/* Raises the state as an error. */
void
ttl_state_raise(const TtlIndex *index)
{
	Assert(index->state != TTL_ACTIVE);
	ereport(ERROR,
			(errcode(index->sqlerrcode),
			 errmsg_internal("%s", index->reason),
			 index->hint ? errhint("%s", index->hint) : 0));
}

/* Raises an error unless there is an index with this OID. */
void
ttl_state_check_is_index(Oid relid)
{
	char		relkind = get_rel_relkind(relid);

	if (relkind == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("index with OID %u does not exist", relid)));
	if (relkind != RELKIND_INDEX && relkind != RELKIND_PARTITIONED_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an index", get_rel_name(relid)),
				 errhint("The view ttl_index.indexes lists the TTL indexes.")));
}

/* Raises an error unless a described index is a TTL index, or was one before REINDEX CONCURRENTLY. */
void
ttl_state_check_is_ttl(const TtlIndex *index)
{
	if (!index->option.present && !ttl_saved_option_is_dependent(index->indexrelid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("index \"%s\" is not a TTL index", get_rel_name(index->indexrelid))));
}

/* Raises an error unless the index is usable. */
void
ttl_state_check_usable(Oid indexrelid)
{
	if (!ttl_catalog_is_usable(indexrelid))
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

/* The state of an index whose unit is missing, or does not fit its key. */
static TtlState
unit_state(TtlIndex *index, Oid type)
{
	const char *name = index->keytype == UUIDOID ? "uuidv7" : "seconds";

	if (ttl_keytype_is_date(index->keytype))
		return ttl_state_set(index, TTL_WRONG_UNIT, ERRCODE_INVALID_PARAMETER_VALUE,
							 psprintf("a TTL index on a key of type %s takes no unit", format_type_be(type)),
							 "Leave unit out: such a key is a date by itself.");
	return ttl_state_set(index, TTL_WRONG_UNIT, ERRCODE_INVALID_PARAMETER_VALUE,
						 psprintf("a TTL index on a key of type %s needs %s unit", format_type_be(type),
								  index->option.unit == TTL_UNIT_NONE ? "a" : "another"),
						 psprintf("Add the argument unit => '%s', or AND ttl_index.unit('%s') to the predicate.%s",
								  name, name, index->keytype == UUIDOID ? "" :
								  " The unit can also be milliseconds, microseconds or nanoseconds."));
}

/* The state by the type of the key, and the time zone or unit in which it is read. */
static TtlState
key_state(TtlIndex *index, Oid type)
{
	const char *time_zone = index->option.time_zone;
	const char *problem;

	index->keytype = getBaseType(type);
	if (!OidIsValid(ttl_keytype_opclass(index->keytype)))
		return ttl_state_set(index, TTL_UNSUITABLE_INDEX, ERRCODE_DATATYPE_MISMATCH,
							 psprintf("the key of a TTL index cannot be of type %s", format_type_be(type)),
							 ttl_key_hint(index->relid, index->keyattnum, index->keytype));
	if (!index->option.present)
		return TTL_ACTIVE;
	if (ttl_keytype_is_date(index->keytype) ? index->option.unit != TTL_UNIT_NONE :
		(index->option.unit == TTL_UNIT_UUIDV7) != (index->keytype == UUIDOID) ||
		index->option.unit == TTL_UNIT_NONE)
		return unit_state(index, type);
	if (!ttl_keytype_is_date(index->keytype) && time_zone == NULL)
		return TTL_ACTIVE;
	if ((index->keytype == TIMESTAMPTZOID || index->option.unit != TTL_UNIT_NONE) && time_zone != NULL)
		return ttl_state_set(index, TTL_WRONG_TIME_ZONE, ERRCODE_INVALID_PARAMETER_VALUE,
							 psprintf("a TTL index on a key of type %s takes no time zone", format_type_be(type)),
							 "Leave time_zone out: such a key is an instant by itself.");
	if (index->keytype != TIMESTAMPTZOID && time_zone == NULL)
		return ttl_state_set(index, TTL_WRONG_TIME_ZONE, ERRCODE_INVALID_PARAMETER_VALUE,
							 psprintf("a TTL index on a key of type %s needs a time zone",
									  format_type_be(type)),
							 psprintf("Name the zone of the sessions that write the dates. This one has %1$s: add AND ttl_index.time_zone(%1$s) to the predicate, or the argument time_zone => %1$s.",
									  quote_literal_cstr(pg_get_timezone_name(session_timezone))));
	if (time_zone != NULL && (problem = ttl_cutoff_zone_problem(time_zone)) != NULL)
		return ttl_state_set(index, TTL_WRONG_TIME_ZONE, ERRCODE_INVALID_PARAMETER_VALUE,
							 problem,
							 "Give a name of the view pg_timezone_names, such as Europe/Berlin.");
	return TTL_ACTIVE;
}

/* Does an enabled rule add a command to this one or, if asked for, replace it? */
bool
ttl_state_has_rule(Oid relid, CmdType event, bool instead)
{
	FormData_pg_class form;

	return ttl_catalog_class(relid, &form) && form.relhasrules &&
		ttl_select_value(psprintf("SELECT 1 FROM pg_rewrite WHERE ev_class = %u AND ev_type = '%d' "
								  "AND ev_enabled <> 'D'%s",
								  relid, (int) event, instead ? " AND is_instead" : "")) != NULL;
}

/*
 * Is this a hypertable of TimescaleDB, or a chunk of one, which inherits from it?  Their rows are
 * compressed and copied: one that is deleted could come back, or be lost in its newer version.
 */
static bool
is_hypertable(Oid relid)
{
	return ttl_select_has_catalog("_timescaledb_catalog", "hypertable") &&
		ttl_select_value(psprintf("SELECT 1 FROM _timescaledb_catalog.hypertable AS h "
								  "JOIN pg_class AS c ON c.relname = h.table_name "
								  "JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = h.schema_name "
								  "WHERE c.oid IN (%u, %u)",
								  relid, ttl_inherit_parent(relid, NULL))) != NULL;
}

/* The state by the table alone. */
static TtlState
table_state(TtlIndex *index, Oid relid, TtlCitusTable *citus)
{
	FormData_pg_class form;

	ttl_catalog_class(relid, &form);
	ttl_citus_look(relid, citus);
	if (form.relkind == RELKIND_MATVIEW)
		return ttl_state_set(index, TTL_UNSUITABLE_TABLE, ERRCODE_WRONG_OBJECT_TYPE,
							 "a materialized view cannot have a TTL index",
							 "Create it on the table that the view reads.");
	if (form.relpersistence == RELPERSISTENCE_TEMP)
		return ttl_state_set(index, TTL_UNSUITABLE_TABLE, ERRCODE_FEATURE_NOT_SUPPORTED,
							 "a temporary table cannot have a TTL index",
							 "Other sessions cannot reach its rows; it ends with its own session.");
	if (is_hypertable(relid))
		return ttl_state_set(index, TTL_UNSUITABLE_TABLE, ERRCODE_FEATURE_NOT_SUPPORTED,
							 "a hypertable of TimescaleDB, or a chunk of one, cannot have a TTL index",
							 "Let TimescaleDB drop its chunks: SELECT add_retention_policy(...).");
	if (form.relkind == RELKIND_RELATION && form.relam != HEAP_TABLE_AM_OID)
		return ttl_state_set(index, TTL_UNSUITABLE_TABLE, ERRCODE_FEATURE_NOT_SUPPORTED,
							 "a TTL index needs a table of the access method heap",
							 "ALTER TABLE ... SET ACCESS METHOD changes it.");
	/* such a rule would keep rows, or change them in every pass */
	if (ttl_state_has_rule(relid, CMD_DELETE, true))
		return ttl_state_set(index, TTL_UNSUITABLE_TABLE, ERRCODE_FEATURE_NOT_SUPPORTED,
							 "a TTL index needs a table without a rule ON DELETE DO INSTEAD",
							 "Replace the rule with a trigger, which can do the same for rows that expire.");
	return TTL_ACTIVE;
}

/* Raises what is wrong with a table that is to get a TTL index. */
void
ttl_state_check_table(Oid relid)
{
	TtlIndex	index = {0};

	if (table_state(&index, relid, &index.citus) != TTL_ACTIVE)
		ttl_state_raise(&index);
}

/* The state by whether an index on this column can drop and make partitions of the table, if asked for. */
static TtlState
partitions_state(TtlIndex *index, Oid relid, AttrNumber attnum)
{
	if (!index->option.drop_partitions && index->option.bucket_seconds == 0)
		return TTL_ACTIVE;
	if (!ttl_bounds_possible(relid, attnum, index->keytype))
		return ttl_state_set(index, TTL_UNSUITABLE_PARTITIONS, ERRCODE_FEATURE_NOT_SUPPORTED,
							 "partitions can be dropped and made only where the table is partitioned by RANGE of the key alone",
							 "The key of the index and of PARTITION BY RANGE must be the same column. "
							 "Create the index on the table that is partitioned so, above or below this one.");
	if (index->keytype == UUIDOID)
		return ttl_state_set(index, TTL_UNSUITABLE_PARTITIONS, ERRCODE_FEATURE_NOT_SUPPORTED,
							 "partitions by UUID cannot be dropped or made",
							 "They can hold UUIDs of other versions, which never expire.");
	if (index->option.filter != NIL)
		return ttl_state_set(index, TTL_UNSUITABLE_PARTITIONS, ERRCODE_FEATURE_NOT_SUPPORTED,
							 "a TTL index with a filter cannot drop or make partitions",
							 "Let an index without a filter do that; this one can expire its rows earlier.");
	return TTL_ACTIVE;
}

/* Raises what in its key or its table is wrong for an index that is to have this option. */
void
ttl_state_check_option(TtlIndex *index)
{
	/* a part of an index cannot drop partitions, and cannot be changed */
	if (key_state(index, index->keytype) != TTL_ACTIVE ||
		(index->governor == index->indexrelid &&
		 partitions_state(index, index->relid, index->keyattnum) != TTL_ACTIVE))
		ttl_state_raise(index);
}

static TtlState
not_valid(TtlIndex *index)
{
	return ttl_state_set(index, TTL_NOT_VALID, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
						 "the index is being built, or its build failed, or a partition has no index of it",
						 "Drop and create the index again, or REINDEX it, or attach an index of each partition.");
}

/* The state by what the index is defined on; needs no lock. */
static TtlState
definition_state(TtlIndex *index, HeapTuple tuple)
{
	Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);
	Oid			indexrelid = index->indexrelid;
	Oid			governed = IndexGetRelation(index->governor, true);
	Oid			type = get_atttype(indexrelid, 1);
	FormData_pg_class class;
	Datum		classes;
	bool		isnull;
	AttrNumber	attnum;
	Node	   *expression;

	if (index->option.problem != NULL)
		return ttl_state_set(index, TTL_MALFORMED_OPTION, ERRCODE_INVALID_PARAMETER_VALUE,
							 index->option.problem,
							 "Write WHERE [filter AND] ttl_index.expire_after_seconds(seconds), with seconds between 0 and 2147483647.");

	/* the tables */
	if (table_state(index, index->relid, &index->citus) != TTL_ACTIVE)
		return index->state;
	index->citus_governor = index->citus;
	if (index->governor != indexrelid &&
		table_state(index, governed, &index->citus_governor) != TTL_ACTIVE)
		return index->state;

	/* the kind of index */
	ttl_catalog_class(indexrelid, &class);
	if (class.relam != BTREE_AM_OID)
		return ttl_state_set(index, TTL_UNSUITABLE_INDEX, ERRCODE_FEATURE_NOT_SUPPORTED,
							 "a TTL index must be a btree index",
							 "Create it with USING btree, which is the default.");
	if (form->indisunique || form->indisexclusion)
		return ttl_state_set(index, TTL_UNSUITABLE_INDEX, ERRCODE_FEATURE_NOT_SUPPORTED,
							 "a TTL index cannot be unique or belong to a constraint",
							 "Create another index on the same key for the TTL.");
	if (form->indnkeyatts != 1)
		return ttl_state_set(index, TTL_UNSUITABLE_INDEX, ERRCODE_FEATURE_NOT_SUPPORTED,
							 "a TTL index must have one key only",
							 "Further columns can be added with INCLUDE.");

	/* the key; its type is gone if the index was dropped just now */
	if (!OidIsValid(type))
		return not_valid(index);
	index->keyattnum = form->indkey.values[0];
	if (key_state(index, type) == TTL_UNSUITABLE_INDEX)
		return index->state;
	classes = SysCacheGetAttr(INDEXRELID, tuple, Anum_pg_index_indclass, &isnull);
	if (((oidvector *) DatumGetPointer(classes))->values[0] !=
		ttl_keytype_opclass(index->keytype))
		return ttl_state_set(index, TTL_UNSUITABLE_INDEX, ERRCODE_FEATURE_NOT_SUPPORTED,
							 "a TTL index must use the default operator class of its key",
							 "Create it without naming an operator class.");
	if (index->state != TTL_ACTIVE)
		return index->state;

	/* what the option asks for */
	if (partitions_state(index, governed,
						 ttl_key_read(index->governor, &attnum, &expression) ? attnum : 0) != TTL_ACTIVE)
		return index->state;
	return ttl_archive_state(index);
}

/*
 * Are deletes of this locked table published, although it has no replica identity?  Before 18,
 * RelationBuildPublicationDesc() gets slower with the number of tables that ask it, so that it
 * is called only if there are publications.
 */
static bool
lacks_replica_identity(Oid relid)
{
	PublicationDesc publications;
	Relation	rel = try_relation_open(relid, NoLock);
	Relation	catalog;
	SysScanDesc scan;
	bool		result = false;

	if (rel == NULL)
		return false;
	if (rel->rd_rel->relkind == RELKIND_RELATION &&
		rel->rd_rel->relreplident != REPLICA_IDENTITY_FULL &&
		!OidIsValid(RelationGetReplicaIndex(rel)))
	{
		catalog = table_open(PublicationRelationId, AccessShareLock);
		scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
		result = HeapTupleIsValid(systable_getnext(scan));
		systable_endscan(scan);
		table_close(catalog, AccessShareLock);
	}
	if (result)
	{
		RelationBuildPublicationDesc(rel, &publications);
		result = publications.pubactions.pubdelete;
	}
	relation_close(rel, NoLock);
	return result;
}

/*
 * The triggers of the tables that a partition belongs to, and the option of their TTL index, act
 * with the rights of the partition's owner.  So the owners of these tables need the privileges
 * of that role; otherwise this sets a state, and returns false.
 */
bool
ttl_state_owners_above(TtlIndex *index)
{
	ListCell   *lc;

	foreach(lc, get_rel_relispartition(index->relid) ? get_partition_ancestors(index->relid) : NIL)
	{
		Oid			owner = ttl_owner_of(lfirst_oid(lc));

		if (!OidIsValid(owner) || has_privs_of_role(owner, index->owner))
			continue;
		ttl_state_set(index, TTL_OWNER_LACKS_PRIVILEGE, ERRCODE_INSUFFICIENT_PRIVILEGE,
					  psprintf("the owner of table %s lacks the privileges of the owner of partition %s",
							   ttl_name_qualified(lfirst_oid(lc)), ttl_name_qualified(index->relid)),
					  psprintf("ALTER TABLE %s OWNER TO %s;", ttl_name_qualified(index->relid),
							   quote_identifier(GetUserNameFromId(owner, false))));
		return false;
	}
	return true;
}

/*
 * Is this the copy that pg_repack fills and then swaps in?  Its rows are updated from a log.
 * A row deleted from the copy alone would miss an update to a later date, and would be
 * archived twice.  The log exists as long as the copy.
 */
static bool
is_repack_copy(Oid relid)
{
	Oid			schema = get_rel_namespace(relid);
	const char *nspname = get_namespace_name(schema);
	const char *relname = get_rel_name(relid);
	const char *number;

	if (nspname == NULL || strcmp(nspname, "repack") != 0 ||
		relname == NULL || strncmp(relname, "table_", strlen("table_")) != 0)
		return false;
	number = relname + strlen("table_");
	return OidIsValid(get_relname_relid(psprintf("log_%s", number), schema));
}

/* The state of the moment, for an index that is well defined. */
static TtlState
runtime_state(TtlIndex *index, HeapTuple tuple, bool locked)
{
	AclMode		needed = ACL_SELECT | ACL_DELETE;

	if (is_repack_copy(index->relid))
		return ttl_state_set(index, TTL_REPACK_COPY, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
							 "pg_repack fills this copy of a table, or has left it behind",
							 "The rows expire in the table itself.");
	if (!locked)
		return ttl_state_set(index, TTL_TABLE_LOCKED, ERRCODE_LOCK_NOT_AVAILABLE,
							 "the table is locked exclusively by another session", NULL);
	if (pg_class_aclmask(index->relid, index->owner, needed, ACLMASK_ALL) != needed ||
		object_aclcheck(NamespaceRelationId, get_rel_namespace(index->relid),
						index->owner, ACL_USAGE) != ACLCHECK_OK)
		return ttl_state_set(index, TTL_OWNER_LACKS_PRIVILEGE, ERRCODE_INSUFFICIENT_PRIVILEGE,
							 "the table's owner lacks SELECT or DELETE on it, or USAGE on its schema",
							 "Rows are deleted with the privileges of the owner: GRANT them.");
	if (lacks_replica_identity(index->relid))
		return ttl_state_set(index, TTL_NO_REPLICA_IDENTITY,
							 ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
							 "the table is published with its deletes and has no replica identity",
							 "Set one with ALTER TABLE ... REPLICA IDENTITY.");

	/* The planner's rule: a broken HOT chain would show keys of old versions. */
	if (((Form_pg_index) GETSTRUCT(tuple))->indcheckxmin &&
		!TransactionIdPrecedes(HeapTupleHeaderGetXmin(tuple->t_data),
							   TransactionXmin))
		return ttl_state_set(index, TTL_OLD_SNAPSHOTS, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
							 "the index cannot be used until transactions older than it have ended",
							 NULL);
	/* otherwise a view would read all partitions of the archive for each partition */
	if ((index->governor == index->indexrelid || index->owner != ttl_owner_of(index->governor)) &&
		ttl_archive_rights(index) != TTL_ACTIVE)
		return index->state;
	return ttl_citus_state(index);
}

/* The state of an index whose option REINDEX CONCURRENTLY has lost. */
static TtlState
lost(TtlIndex *index)
{
	TtlOption	saved = {0};

	if (ttl_saved_option_apply(index->indexrelid, &saved))
		return ttl_state_set(index, TTL_OPTION_LOST, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
							 "the option was lost by REINDEX CONCURRENTLY and will be restored by the next pass",
							 NULL);
	return ttl_state_set(index, TTL_OPTION_LOST, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
						 "the option was lost, and no saved option was found",
						 "Set it again with ttl_index.coll_mod_index(), or make it a plain index with ttl_index.remove_ttl().");
}

/*
 * Describes an index as it is now, with its governing option; false if it or its table is
 * gone.  With definition_only the state is what DDL checks, also for a plain index.  The table
 * is locked if that takes no waiting.  Otherwise nothing is asked that raises an error for a
 * table that was dropped concurrently.
 */
bool
ttl_state_describe(Oid indexrelid, bool definition_only, TtlIndex *index)
{
	Oid			relid = IndexGetRelation(indexrelid, true);
	bool		locked;
	bool		found;
	HeapTuple	tuple;

	memset(index, 0, sizeof(*index));
	index->indexrelid = indexrelid;
	if (!OidIsValid(relid))
		return false;
	locked = ConditionalLockRelationOid(relid, AccessShareLock);
	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	if (HeapTupleIsValid(tuple))
	{
		index->relid = relid;
		index->relkind = get_rel_relkind(indexrelid);
		index->owner = ttl_owner_of(relid);
	}
	found = OidIsValid(index->owner) && index->relkind != '\0' &&
		ttl_catalog_governor(indexrelid, &index->governor, &index->option);
	if (found)
	{
		if (!definition_only &&
			!(ttl_catalog_is_usable(indexrelid) && ttl_catalog_is_usable(index->governor)))
			(void) not_valid(index);
		else if (!definition_only && !index->option.present)
			(void) lost(index);
		else if (definition_state(index, tuple) == TTL_ACTIVE && !definition_only)
			(void) runtime_state(index, tuple, locked);
	}
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	if (locked)
		UnlockRelationOid(relid, AccessShareLock);
	return found;
}
