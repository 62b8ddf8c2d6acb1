/*-------------------------------------------------------------------------
 *
 * citus.c
 *	  What a table is to Citus: nothing, a shell, or a shard, and on which node.
 *
 * A table of Citus is a shell without rows on each node.  Its rows are in shards, which are
 * named like it with a number appended.  A shard has a placement on one node, or on several
 * nodes if the table is replicated.  Citus moves, splits and copies shards while they are
 * written to, so a table that looks like a shard may be an incomplete copy or a remnant.  Rows
 * may be deleted only if the only placement of the shard is on this node.
 *
 * Only this file reads the catalogs of Citus, which are the same on all nodes.  Citus is not
 * linked.  In a database without Citus, only the name of one table is looked up.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/state/citus.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "executor/spi.h"
#include "parser/parse_func.h"
#include "storage/lock.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "definition/definition.h"
#include "definition/option.h"
#include "state/state.h"
#include "ttl_index.h"

#define CITUS_SCHEMA "pg_catalog"

/* The group of nodes that the coordinator is in. */
#define COORDINATOR_GROUP 0

/* The state of a placement that holds the shard; others are about to be deleted. */
#define PLACEMENT_ACTIVE 1

/* Shards are numbered from here on. */
#define FIRST_SHARD 102008

/* A name that is cut ends with a hash of the whole, in so many digits, and the number. */
#define HASH_DIGITS 8

/*
 * How long the lock on a shard is waited for.  Whoever moves it holds that for as long as
 * nobody may write to it, maybe for hours.
 */
#define SHARD_LOCK_TIMEOUT "10ms"

/* Is Citus in this database? */
static bool
is_here(void)
{
	return OidIsValid(ttl_other_catalog_find(CITUS_SCHEMA, "pg_dist_partition"));
}

/* Finds the group of this node; false if that is not clear. */
static bool
find_local_group(int32 *group)
{
	TtlOtherColumn column = {"groupid", INT4OID};

	if (ttl_other_catalog_read(CITUS_SCHEMA, "pg_dist_local_group", &column, 1, NULL,
							   NULL) != TTL_OTHER_FOUND)
		return false;
	*group = DatumGetInt32(column.value);
	return true;
}

/* Does this node know any nodes, of the cluster that it belongs to? */
static bool
has_nodes(void)
{
	TtlOtherColumn column = {"groupid", INT4OID};

	return ttl_other_catalog_read(CITUS_SCHEMA, "pg_dist_node", &column, 1, NULL,
								  NULL) == TTL_OTHER_FOUND;
}

/* Is this node the coordinator of a cluster? */
static bool
is_coordinator(void)
{
	int32		group;

	return is_here() && find_local_group(&group) &&
		group == COORDINATOR_GROUP && has_nodes();
}

/* Where the placements of a shard are. */
typedef struct Placements
{
	int32		group;			/* of this node */
	int			here;
	int			others;
} Placements;

static bool
add_placement(const TtlOtherColumn *columns, void *arg)
{
	Placements *placements = arg;

	if (DatumGetInt32(columns[1].value) != PLACEMENT_ACTIVE)
		return false;
	if (DatumGetInt32(columns[2].value) == placements->group)
		placements->here++;
	else
		placements->others++;
	return false;
}

/* Finds the placements of a shard; false if they are not clear. */
static bool
find_placements(int64 shard, Placements *placements)
{
	TtlOtherColumn columns[] = {
		{"shardid", INT8OID, F_INT8EQ, Int64GetDatum(shard)},
		{"shardstate", INT4OID},
		{"groupid", INT4OID}
	};

	memset(placements, 0, sizeof(*placements));
	return find_local_group(&placements->group) &&
		ttl_other_catalog_read(CITUS_SCHEMA, "pg_dist_placement", columns,
							   lengthof(columns), add_placement,
							   placements) != TTL_OTHER_UNCLEAR;
}

/* Is a shard of a table on more than one node?  Ends with the first such. */
static bool
find_replicated(const TtlOtherColumn *columns, void *arg)
{
	Placements	placements;

	*(bool *) arg = !find_placements(DatumGetInt64(columns[1].value), &placements) ||
		placements.here + placements.others > 1;
	return *(bool *) arg;
}

/*
 * Finds a table of Citus, and how it is replicated: 't' for a reference table, 'c' for one
 * whose copies, if it has any, were made by statements.
 */
static TtlOtherFound
find_table(Oid relid, char *replication)
{
	TtlOtherColumn columns[] = {
		{"logicalrelid", REGCLASSOID, F_OIDEQ, ObjectIdGetDatum(relid)},
		{"repmodel", CHAROID}
	};
	TtlOtherFound found = ttl_other_catalog_read(CITUS_SCHEMA, "pg_dist_partition",
												 columns, lengthof(columns), NULL, NULL);

	*replication = found == TTL_OTHER_FOUND ? DatumGetChar(columns[1].value) : '\0';
	return found;
}

/* Is a table of Citus on more than one node? */
static bool
is_replicated(Oid relid, char replication)
{
	TtlOtherColumn columns[] = {
		{"logicalrelid", REGCLASSOID, F_OIDEQ, ObjectIdGetDatum(relid)},
		{"shardid", INT8OID}
	};
	bool		replicated = replication == 't';

	if (replication == 'c')
		(void) ttl_other_catalog_read(CITUS_SCHEMA, "pg_dist_shard", columns,
									  lengthof(columns), find_replicated, &replicated);
	return replicated;
}

/* The number behind the last "_" of a name, and where that is; 0 for none. */
static int64
number_of(const char *name, const char **suffix)
{
	*suffix = name ? strrchr(name, '_') : NULL;
	if (*suffix == NULL || (*suffix)[1] == '\0' || (*suffix)[1] == '0' ||
		strspn(*suffix + 1, "0123456789") != strlen(*suffix + 1) ||
		strlen(*suffix + 1) > 18)
		return 0;
	return strtoi64(*suffix + 1, NULL, 10);
}

/* The relation that Citus calls like this one with the number of a shard; invalid for none. */
static Oid
named_by_citus(Oid relid, int64 shard)
{
	Oid			types[] = {REGCLASSOID, INT8OID, BOOLOID};
	Oid			function = LookupFuncName(list_make2(makeString(CITUS_SCHEMA),
													 makeString("shard_name")),
										  lengthof(types), types, true);
	FmgrInfo	call;
	Datum		qualified;
	char	   *schema;
	char	   *name;

	if (!OidIsValid(function))
		return InvalidOid;
	fmgr_info(function, &call);
	/* it raises an error if the relation has just been dropped */
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		return InvalidOid;
	/* with the schema, also where that is public */
	qualified = FunctionCall3(&call, ObjectIdGetDatum(relid), Int64GetDatum(shard),
							  BoolGetDatum(false));
	DeconstructQualifiedName(textToQualifiedNameList(DatumGetTextPP(qualified)),
							 &schema, &name);
	return schema ? get_relname_relid(name, get_namespace_oid(schema, true)) : InvalidOid;
}

/* Is a relation called like another one, with the number of a shard behind its name? */
static bool
is_named_after(Oid relid, Oid shell, int64 shard)
{
	const char *name = get_rel_name(relid);
	const char *whole = get_rel_name(shell);

	if (name == NULL || whole == NULL ||
		get_rel_namespace(relid) != get_rel_namespace(shell))
		return false;
	whole = psprintf("%s_" INT64_FORMAT, whole, shard);
	/* a long name is cut */
	return strlen(whole) < NAMEDATALEN ? strcmp(name, whole) == 0 :
		named_by_citus(shell, shard) == relid;
}

/* The index of its table after which Citus has named one of a shard; invalid for none. */
Oid
ttl_citus_shell_index(Oid indexrelid, const TtlCitusTable *table)
{
	ListCell   *lc;

	if (!OidIsValid(table->shell))
		return InvalidOid;
	foreach(lc, ttl_catalog_table_indexes(table->shell))
	{
		if (is_named_after(indexrelid, lfirst_oid(lc), table->shard))
			return lfirst_oid(lc);
	}
	return InvalidOid;
}

/* Does a name end with a hash before the number, as one does that was cut? */
static bool
is_cut(const char *name, const char *suffix)
{
	const char *hash = suffix - HASH_DIGITS - 1;

	return strlen(name) > NAMEDATALEN - 1 - MAX_MULTIBYTE_CHAR_LEN && hash > name &&
		*hash == '_' && strspn(hash + 1, "0123456789abcdef") >= HASH_DIGITS;
}

/* Has a table an index with this number behind its name? */
static bool
has_index_with(Oid relid, int64 number)
{
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		const char *suffix;

		if (number_of(get_rel_name(lfirst_oid(lc)), &suffix) == number)
			return true;
	}
	return false;
}

/*
 * Can a table be a shard that is missing in the catalogs of this node?  A split fills new
 * shards before they are in the catalogs, and leaves the old one; a removed node keeps its
 * shards.
 */
static bool
may_be_unknown_shard(Oid relid, const char *name, const char *suffix, int64 number)
{
	char		replication;
	Oid			shell = get_relname_relid(pnstrdup(name, suffix - name),
										  get_rel_namespace(relid));

	if (number < FIRST_SHARD)
		return false;
	return (OidIsValid(shell) && find_table(shell, &replication) != TTL_OTHER_NONE) ||
		is_cut(name, suffix) ||
		(!has_nodes() && has_index_with(relid, number));
}

/* What a shard is to this node, by its placements. */
static TtlCitusKind
kind_of_shard(int64 shard, char replication)
{
	Placements	placements;

	if (!find_placements(shard, &placements) || placements.here == 0)
		return TTL_CITUS_ELSEWHERE;
	if (replication == 't')
		return TTL_CITUS_REPLICATED;
	if (placements.others == 0 && placements.here == 1)
		return TTL_CITUS_SHARD;
	return replication == 'c' ? TTL_CITUS_REPLICATED : TTL_CITUS_ELSEWHERE;
}

/* Finds the shard of this number and its table, if the table is named like it. */
static TtlOtherFound
find_shard(Oid relid, int64 number, TtlCitusTable *table)
{
	TtlOtherColumn columns[] = {
		{"shardid", INT8OID, F_INT8EQ, Int64GetDatum(number)},
		{"logicalrelid", REGCLASSOID}
	};
	TtlOtherFound found = ttl_other_catalog_read(CITUS_SCHEMA, "pg_dist_shard", columns,
												 lengthof(columns), NULL, NULL);

	if (found == TTL_OTHER_FOUND &&
		is_named_after(relid, DatumGetObjectId(columns[1].value), number))
	{
		table->shell = DatumGetObjectId(columns[1].value);
		table->shard = number;
	}
	return found;
}

/* Looks at a table that is no shell. */
static void
look_at_shard(Oid relid, TtlCitusTable *table)
{
	const char *name = get_rel_name(relid);
	const char *suffix;
	int64		number = number_of(name, &suffix);
	char		replication;

	if (number == 0)
		return;
	switch (find_shard(relid, number, table))
	{
		case TTL_OTHER_NONE:
			if (may_be_unknown_shard(relid, name, suffix, number))
				table->kind = TTL_CITUS_ELSEWHERE;
			break;
		case TTL_OTHER_UNCLEAR:
			table->kind = TTL_CITUS_ELSEWHERE;
			break;
		case TTL_OTHER_FOUND:
			if (OidIsValid(table->shell))
				table->kind = find_table(table->shell, &replication) == TTL_OTHER_FOUND ?
					kind_of_shard(number, replication) : TTL_CITUS_ELSEWHERE;
			break;
	}
}

/* Describes a table by the current catalogs of Citus.  If unclear, it is a shard elsewhere. */
void
ttl_citus_look(Oid relid, TtlCitusTable *table)
{
	char		replication;

	memset(table, 0, sizeof(*table));
	if (!is_here())
		return;
	switch (find_table(relid, &replication))
	{
		case TTL_OTHER_FOUND:
			table->kind = TTL_CITUS_SHELL;
			table->replicated = is_replicated(relid, replication);
			break;
		case TTL_OTHER_UNCLEAR:
			table->kind = TTL_CITUS_ELSEWHERE;
			break;
		case TTL_OTHER_NONE:
			look_at_shard(relid, table);
			break;
	}
}

/* The same, where its kind is all that matters. */
TtlCitusKind
ttl_citus_kind(Oid relid)
{
	TtlCitusTable table;

	ttl_citus_look(relid, &table);
	return table.kind;
}

/* Are the partitions of this table dropped and made here?  Those of Citus at the coordinator. */
bool
ttl_citus_keeps_partitions(const TtlCitusTable *table)
{
	return table->kind == TTL_CITUS_NONE ||
		(table->kind == TTL_CITUS_SHELL && !table->replicated &&
		 is_coordinator());
}

/* Are rows of this table deleted here, from all copies at once?  The coordinator does so. */
bool
ttl_citus_goes_by_value(const TtlCitusTable *table)
{
	return table->kind == TTL_CITUS_SHELL && table->replicated &&
		is_coordinator();
}

/* Are rows that are in this table, or seem to be, deleted elsewhere? */
bool
ttl_citus_goes_elsewhere(const TtlCitusTable *table)
{
	return table->kind == TTL_CITUS_REPLICATED ||
		(table->kind == TTL_CITUS_SHELL && !ttl_citus_goes_by_value(table));
}

/* Does an index of a shard say what the one of its table does, on this node? */
static bool
has_option_of_shell(Oid indexrelid, const TtlCitusTable *table)
{
	Oid			shell = ttl_citus_shell_index(indexrelid, table);
	Oid			governor;
	TtlOption	own;
	TtlOption	whole;

	return OidIsValid(shell) && ttl_option_read(indexrelid, &own) &&
		ttl_catalog_governor(shell, &governor, &whole) &&
		ttl_option_same(&own, &whole);
}

/*
 * May an index delete now, as far as Citus is concerned?  Its table and the governor's must
 * both be plain, or both shards of this node.  A table with copies needs
 * ttl_citus_goes_elsewhere().
 */
TtlState
ttl_citus_state(TtlIndex *index)
{
	TtlCitusKind kind = index->citus.kind;

	if (kind == TTL_CITUS_REPLICATED)
		return TTL_ACTIVE;
	if (kind == TTL_CITUS_ELSEWHERE || kind != index->citus_governor.kind)
		return ttl_state_set(index, TTL_SHARD_ELSEWHERE, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
							 "by the catalogs of Citus this shard is not on this node, or it is being moved or split",
							 NULL);
	if (kind == TTL_CITUS_SHARD &&
		!has_option_of_shell(index->governor, &index->citus_governor))
		return ttl_state_set(index, TTL_OPTION_DIFFERS, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
							 "the option of this shard is not that of its table",
							 "Set it again at the coordinator with ttl_index.coll_mod_index().");
	return TTL_ACTIVE;
}

/*
 * Locks the placement of a shard as whoever writes to it does, or raises
 * lock_not_available.  The tag of that lock is Citus's own affair: it is one of all shards
 * with the same range, or of this one, as the table is distributed.
 */
static void
lock_placement(int64 shard)
{
	Oid			types[] = {INT4OID, INT8ARRAYOID};
	Oid			function = LookupFuncName(list_make2(makeString(CITUS_SCHEMA),
													 makeString("lock_shard_metadata")),
										  lengthof(types), types, false);
	Datum		shards[] = {Int64GetDatum(shard)};
	int			level = NewGUCNestLevel();

	ttl_settings_set("lock_timeout", SHARD_LOCK_TIMEOUT);
	(void) OidFunctionCall2(function, Int32GetDatum(ShareLock),
							PointerGetDatum(construct_array(shards, lengthof(shards), INT8OID,
															sizeof(int64), FLOAT8PASSBYVAL,
															TYPALIGN_DOUBLE)));
	AtEOXact_GUC(false, level);
}

/*
 * Locks the placement of a shard until the end of the transaction.  Returns the shard's
 * number, or 0 for a table that is not named like one.  The placement can have changed before,
 * so the caller must look again.  Raises lock_not_available while Citus moves or splits the
 * shard.
 */
int64
ttl_citus_lock(Oid relid)
{
	const char *suffix;
	int64		number = number_of(get_rel_name(relid), &suffix);
	TtlCitusTable table = {0};

	if (number != 0 && find_shard(relid, number, &table) == TTL_OTHER_FOUND &&
		table.shard != 0)
		lock_placement(table.shard);
	return table.shard;
}

/*
 * Wraps a command that Citus propagates, so that this lock_timeout holds on other nodes too:
 * Citus sends it only in a block of several commands.  Otherwise the locks here would be held
 * for as long as somebody reads a shard there.
 */
static const char *
limit_waits(const char *command)
{
	const char *timeout = GetConfigOption("lock_timeout", false, false);

	if (strcmp(timeout, "0") == 0 || !is_coordinator())
		return command;
	return psprintf("DO %s",
					quote_literal_cstr(psprintf("BEGIN SET LOCAL citus.propagate_set_commands = 'local'; "
												"SET LOCAL lock_timeout = %s; %s; END",
												quote_literal_cstr(timeout), command)));
}

/* Runs a command; where Citus carries it to other nodes, lock_timeout holds there too. */
void
ttl_citus_run_command(const char *command)
{
	command = limit_waits(command);
	SPI_connect();
	if (SPI_execute(command, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not run: %s", command);
	SPI_finish();
}

/* The nodes in use, by their groups. */
typedef struct Nodes
{
	List	   *all;
	List	   *known;			/* those that Citus keeps metadata for, as of
								 * the primary node */
} Nodes;

static bool
add_node(const TtlOtherColumn *columns, void *arg)
{
	Nodes	   *nodes = arg;
	int32		group = DatumGetInt32(columns[0].value);

	if (!DatumGetBool(columns[1].value))
		return false;
	nodes->all = list_append_unique_int(nodes->all, group);
	if (DatumGetBool(columns[2].value))
		nodes->known = list_append_unique_int(nodes->known, group);
	return false;
}

/*
 * Makes sure that LOCK TABLE reaches all nodes.  Citus leaves out those that it sends no
 * metadata.  They may have some of before, so that sessions can write there.
 */
static void
check_nodes(void)
{
	TtlOtherColumn columns[] = {
		{"groupid", INT4OID},
		{"isactive", BOOLOID},
		{"hasmetadata", BOOLOID}
	};
	Nodes		nodes = {list_make1_int(COORDINATOR_GROUP), list_make1_int(COORDINATOR_GROUP)};

	if (ttl_other_catalog_read(CITUS_SCHEMA, "pg_dist_node", columns, lengthof(columns),
							   add_node, &nodes) == TTL_OTHER_UNCLEAR ||
		list_difference_int(nodes.all, nodes.known) != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("a table with copies cannot be locked on all nodes"),
				 errdetail("Citus does not send metadata to one of them."),
				 errhint("SELECT start_metadata_sync_to_all_nodes().")));
}

/*
 * Blocks all writers to a table of Citus, on all nodes, until the end of the transaction.
 * Limits waits until the caller's GUC level ends.  Raises lock_not_available.
 */
void
ttl_citus_lock_copies(Oid relid)
{
	check_nodes();
	/* else the lock would be one of this node */
	ttl_settings_set("citus.enable_ddl_propagation", "on");
	ttl_settings_set("citus.enable_metadata_sync", "on");
	ttl_lock_limit_waits();
	ttl_name_keep(relid);
	ttl_citus_run_command(psprintf("LOCK TABLE %s IN EXCLUSIVE MODE", ttl_name_qualified(relid)));
}
