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
 * IDENTIFICATION
 *	  src/state/state.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_publication.h"
#include "catalog/pg_rewrite.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "rewrite/rewriteDefine.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"
#include "definition/key.h"
#include "state/state.h"
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
			return psprintf(TTL_KEY_TYPE_REASON, index->detail);
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

/* Can a key of this type expire with this option?  Fills in the detail. */
static TtlState
key_state(TtlIndex *index, Oid type)
{
	const char *time_zone = index->option.time_zone;

	index->keytype = getBaseType(type);
	index->detail = format_type_be(type);
	if (!ttl_catalog_key_type_ok(index->keytype))
		return TTL_KEY_TYPE;
	if (!index->option.present)
		return TTL_ACTIVE;
	if (index->keytype == TIMESTAMPTZOID && time_zone != NULL)
		return TTL_TIME_ZONE_UNUSED;
	if (index->keytype != TIMESTAMPTZOID && time_zone == NULL)
		return TTL_TIME_ZONE_MISSING;
	if (time_zone != NULL && !ttl_time_zone_ok(time_zone))
	{
		index->detail = pstrdup(time_zone);
		return TTL_TIME_ZONE_INVALID;
	}
	return TTL_ACTIVE;
}

/* Checks a column (invalid: an expression) that is to get a TTL index, and the time zone. */
void
ttl_state_check_key(Oid relid, AttrNumber attnum, Oid type,
					  const char *time_zone)
{
	TtlIndex	index = {.relid = relid,.keyattnum = attnum};

	index.option.present = true;
	index.option.time_zone = unconstify(char *, time_zone);
	index.state = key_state(&index, type);
	if (index.state != TTL_ACTIVE)
		ttl_state_raise_argument(&index);
}

/*
 * Is the index part of a constraint, its own or a foreign key to it?  That is to a unique one;
 * what core finds of others are constraints, of anybody's, that name the index.
 */
static bool
has_constraint(Oid indexrelid, Form_pg_index form)
{
	return form->indisprimary || form->indisexclusion || form->indisreplident ||
		OidIsValid(get_index_constraint(indexrelid)) ||
		(form->indisunique && get_index_ref_constraints(indexrelid) != NIL);
}

/* Does an enabled rule add a command to this one or, if asked for, replace it? */
bool
ttl_state_has_rule(Oid relid, CmdType event, bool instead)
{
	FormData_pg_class form;
	bool		found = false;
	Relation	rel;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (!ttl_catalog_class(relid, &form) || !form.relhasrules)
		return false;
	rel = table_open(RewriteRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_rewrite_ev_class, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, RewriteRelRulenameIndexId, true, NULL, 1, &key);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_rewrite rule = (Form_pg_rewrite) GETSTRUCT(tuple);

		found = rule->ev_type == '0' + (int) event &&
			(rule->is_instead || !instead) &&
			rule->ev_enabled != RULE_DISABLED;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

/* The state by the table alone. */
static TtlState
table_state(Oid relid, TtlCitusTable *citus)
{
	FormData_pg_class form;
	TtlState	state;

	ttl_catalog_class(relid, &form);
	if (form.relkind == RELKIND_MATVIEW)
		return TTL_MATERIALIZED_VIEW;
	if (form.relpersistence == RELPERSISTENCE_TEMP)
		return TTL_TEMPORARY_TABLE;
	state = ttl_reach_state(relid, citus);
	/* such a rule would keep rows, or change them in every pass */
	if (state == TTL_ACTIVE && ttl_state_has_rule(relid, CMD_DELETE, true))
		state = TTL_INSTEAD_RULE;
	return state;
}

/* Raises what is wrong with a table that is to get a TTL index. */
void
ttl_state_check_table(Oid relid)
{
	TtlIndex	index = {0};

	index.state = table_state(relid, &index.citus);
	if (index.state != TTL_ACTIVE)
		ttl_state_raise(&index);
}

/* Asks the operator class itself: GetDefaultOpClass() reads all of pg_opclass. */
static bool
is_default_opclass(Oid opclass, Oid type)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass form;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_opclass) GETSTRUCT(tuple);
	result = form->opcmethod == BTREE_AM_OID && form->opcdefault &&
		form->opcintype == type;
	ReleaseSysCache(tuple);
	return result;
}

/* The state by what the index is defined on; needs no lock. */
static TtlState
definition_state(TtlIndex *index, HeapTuple tuple)
{
	Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);
	Oid			indexrelid = index->indexrelid;
	Oid			type = get_atttype(indexrelid, 1);
	TtlState	state;
	FormData_pg_class index_class;
	FormData_pg_class table_class;
	Datum		indclass;
	bool		isnull;

	ttl_catalog_class(indexrelid, &index_class);
	ttl_catalog_class(index->relid, &table_class);
	if (ttl_option_is_long(tuple))
		return TTL_LONG_DEFINITION;
	if (index->option.problem != NULL)
		return TTL_MALFORMED_OPTION;
	state = table_state(index->relid, &index->citus);
	index->citus_governor = index->citus;
	if (state == TTL_ACTIVE && index->governor != indexrelid)
		state = table_state(IndexGetRelation(index->governor, true), &index->citus_governor);
	if (state != TTL_ACTIVE)
		return state;
	if (index_class.relam != BTREE_AM_OID)
		return TTL_NOT_BTREE;
	if (has_constraint(indexrelid, form))
		return TTL_CONSTRAINT_INDEX;
	if (form->indisunique)
		return TTL_UNIQUE_INDEX;
	if (form->indnkeyatts != 1)
		return TTL_COMPOUND_KEY;
	if (ttl_key_is_id(indexrelid, index->relid))
		return TTL_ID_KEY;

	if (!OidIsValid(type))		/* dropped just now */
		return TTL_NOT_VALID;
	index->keyattnum = form->indkey.values[0];
	state = key_state(index, type);
	if (state == TTL_KEY_TYPE)
		return state;
	indclass = SysCacheGetAttr(INDEXRELID, tuple, Anum_pg_index_indclass,
							   &isnull);
	if (!is_default_opclass(((oidvector *) DatumGetPointer(indclass))->values[0],
							index->keytype))
		return TTL_OPERATOR_CLASS;
	if (state != TTL_ACTIVE)
		return state;
	if (table_class.relkind == RELKIND_RELATION &&
		table_class.relam != HEAP_TABLE_AM_OID)
		return TTL_TABLE_ACCESS_METHOD;
	state = ttl_bounds_state(index);
	return state == TTL_ACTIVE ? ttl_archive_state(index) : state;
}

static bool
has_publications(void)
{
	Relation	rel = table_open(PublicationRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	bool		result = HeapTupleIsValid(systable_getnext(scan));

	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/*
 * Does a publication of deletes need what the table cannot give?  It is locked, so
 * that it can be opened.  Before 18, core's look at the publications of each of many tables
 * gets slower with their number.
 */
static bool
lacks_replica_identity(Oid relid)
{
	PublicationDesc publications;
	Relation	rel = try_relation_open(relid, NoLock);
	bool		result = false;

	if (rel == NULL)
		return false;
	if (rel->rd_rel->relkind == RELKIND_RELATION &&
		rel->rd_rel->relreplident != REPLICA_IDENTITY_FULL &&
		!OidIsValid(RelationGetReplicaIndex(rel)) && has_publications())
	{
		RelationBuildPublicationDesc(rel, &publications);
		result = publications.pubactions.pubdelete;
	}
	relation_close(rel, NoLock);
	return result;
}

static bool
owner_may_delete(const TtlIndex *index)
{
	AclMode		needed = ACL_SELECT | ACL_DELETE;

	return pg_class_aclmask(index->relid, index->owner, needed,
							ACLMASK_ALL) == needed &&
		object_aclcheck(NamespaceRelationId, get_rel_namespace(index->relid),
						index->owner, ACL_USAGE) == ACLCHECK_OK;
}

/*
 * The tables that a partition belongs to have triggers there, and the TTL index of one of them
 * says what is deleted, and where to rows move.  All of it acts as the owner of the partition
 * whose rows are deleted.  So their owners need the privileges of that role; else this gives the
 * index a state, and returns false.
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
		index->state = TTL_OWNER_LACKS_PRIVILEGE;
		index->detail = psprintf("the owner of table %s lacks the privileges of the owner of partition %s",
								 ttl_name_qualified(lfirst_oid(lc)), ttl_name_qualified(index->relid));
		index->mend = psprintf("ALTER TABLE %s OWNER TO %s;", ttl_name_qualified(index->relid),
							   quote_identifier(GetUserNameFromId(owner, false)));
		return false;
	}
	return true;
}

/* The state of the moment, for an index that is well defined. */
static TtlState
runtime_state(TtlIndex *index, HeapTuple tuple, bool locked)
{
	Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);
	TtlState	state;

	if (ttl_reach_is_repack_copy(index->relid))
		return TTL_REPACK_COPY;
	if (!locked)
		return TTL_TABLE_LOCKED;
	if (!owner_may_delete(index))
		return TTL_OWNER_LACKS_PRIVILEGE;
	if (lacks_replica_identity(index->relid))
		return TTL_NO_REPLICA_IDENTITY;

	/* The planner's rule: a broken HOT chain would show keys of old versions. */
	if (form->indcheckxmin &&
		!TransactionIdPrecedes(HeapTupleHeaderGetXmin(tuple->t_data),
							   TransactionXmin))
		return TTL_OLD_SNAPSHOTS;
	state = ttl_archive_rights(index);
	return state == TTL_ACTIVE ? ttl_citus_state(index) : state;
}

/* Can what REINDEX CONCURRENTLY lost be restored? */
static TtlState
lost_state(Oid indexrelid)
{
	TtlOption	option = {0};

	return ttl_saved_option_apply(indexrelid, &option) ?
		TTL_OPTION_REMEMBERED : TTL_OPTION_LOST;
}

/* Describes an index whose table is locked against being dropped, if it can be. */
static bool
describe(Oid indexrelid, bool definition_only, bool locked, TtlIndex *index)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	FormData_pg_class table;

	if (!HeapTupleIsValid(tuple))
		return false;
	index->relid = ((Form_pg_index) GETSTRUCT(tuple))->indrelid;
	index->relkind = get_rel_relkind(indexrelid);
	ttl_catalog_class(index->relid, &table);
	index->owner = table.relowner;
	if (!OidIsValid(index->owner) || index->relkind == '\0' ||
		!ttl_catalog_read(indexrelid, index))
	{
		ReleaseSysCache(tuple);
		return false;
	}
	if (!definition_only &&
		!(ttl_catalog_is_usable(indexrelid) && ttl_catalog_is_usable(index->governor)))
		index->state = TTL_NOT_VALID;
	else if (!definition_only && !index->option.present)
		index->state = lost_state(indexrelid);
	else
		index->state = definition_state(index, tuple);
	if (index->state == TTL_ACTIVE && !definition_only)
		index->state = runtime_state(index, tuple, locked);
	ReleaseSysCache(tuple);
	return true;
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

	memset(index, 0, sizeof(*index));
	index->indexrelid = indexrelid;
	if (!OidIsValid(relid))
		return false;
	locked = ConditionalLockRelationOid(relid, AccessShareLock);
	found = describe(indexrelid, definition_only, locked, index);
	if (locked)
		UnlockRelationOid(relid, AccessShareLock);
	return found;
}

/*
 * Was the option of an index lost for good?  Not where it has just been removed, or the
 * partition moved to an archive, beside whoever has a list of indexes.
 */
bool
ttl_state_is_lost(Oid indexrelid)
{
	TtlIndex	index;

	return ttl_state_describe(indexrelid, false, &index) &&
		index.state == TTL_OPTION_LOST && ttl_saved_option_is_dependent(indexrelid);
}
