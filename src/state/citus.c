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
 * Only this file reads the catalogs of Citus, which are the same on all nodes.  In a database
 * without Citus, only the name of one table is looked up.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "state/state.h"
#include "ttl_index.h"

/* The state of a placement that holds the shard; others are about to be deleted. */
#define PLACEMENT_ACTIVE 1

/* Shards are numbered from here on. */
#define FIRST_SHARD 102008

/* A name that is too long is cut, and gets an "_" and this many digits of a hash. */
#define HASH_DIGITS 8

/* The limit of a wait for the lock on a shard.  Moving a shard can hold it for hours. */
#define SHARD_LOCK_TIMEOUT "10ms"

/* Is Citus in this database? */
static bool
is_here(void)
{
	return ttl_select_has_catalog("pg_catalog", "pg_dist_partition");
}

/* Is this node the coordinator?  A node without metadata is in the same group by default. */
static bool
is_coordinator(void)
{
	return is_here() &&
		ttl_select_value("SELECT 1 FROM pg_dist_local_group "
						 "WHERE groupid = 0 AND EXISTS (SELECT FROM pg_dist_node)") != NULL;
}

/* The number after the last "_" of a name, and where that is; 0 for none. */
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

/* Is a relation named after another one, with the number of a shard appended? */
static bool
is_named_after(Oid relid, Oid shell, int64 shard)
{
	const char *name = get_rel_name(relid);
	const char *whole = get_rel_name(shell);
	const char *suffix;
	int			length;

	if (number_of(name, &suffix) != shard || whole == NULL ||
		get_rel_namespace(relid) != get_rel_namespace(shell))
		return false;
	length = suffix - name;
	if (strlen(whole) + strlen(suffix) < NAMEDATALEN)
		return strlen(whole) == length && strncmp(name, whole, length) == 0;
	/* a name that was cut is compared up to the hash */
	length -= HASH_DIGITS + 1;
	return length > 0 && strncmp(name, whole, length) == 0;
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

/*
 * Can a table be a shard that is missing in the catalogs of this node?  A split fills new shards
 * before they are in the catalogs, and a node without metadata has shards only.  The indexes of
 * a shard have its number, too.
 */
static bool
may_be_unknown_shard(Oid relid, const char *name, const char *suffix, int64 number)
{
	Oid			shell = get_relname_relid(pnstrdup(name, suffix - name), get_rel_namespace(relid));
	ListCell   *lc;

	if (number < FIRST_SHARD)
		return false;
	if (OidIsValid(shell) && ttl_citus_kind(shell) == TTL_CITUS_SHELL)
		return true;
	/* a node with metadata knows some nodes, and all tables of Citus */
	if (OidIsValid(shell) && ttl_select_value("SELECT 1 FROM pg_dist_node") != NULL)
		return false;
	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		if (number_of(get_rel_name(lfirst_oid(lc)), &suffix) == number)
			return true;
	}
	return false;
}

/*
 * Describes a table by the current catalogs of Citus.
 *
 * The repmodel of a table is 't' for a reference table and 'c' if its copies, where it has any,
 * were made by statements.
 */
void
ttl_citus_look(Oid relid, TtlCitusTable *table)
{
	const char *name = get_rel_name(relid);
	const char *suffix;
	int64		number;
	char	   *answer;

	memset(table, 0, sizeof(*table));
	if (!is_here())
		return;
	answer = ttl_select_value(psprintf("SELECT repmodel = 't' OR repmodel = 'c' AND EXISTS ("
									   "SELECT FROM pg_dist_shard AS s JOIN pg_dist_placement AS p USING (shardid) "
									   "WHERE s.logicalrelid = t.logicalrelid AND shardstate = %d "
									   "GROUP BY shardid HAVING count(*) > 1) "
									   "FROM pg_dist_partition AS t WHERE logicalrelid = %u",
									   PLACEMENT_ACTIVE, relid));
	if (answer != NULL)
	{
		table->kind = TTL_CITUS_SHELL;
		table->replicated = *answer == 't';
		return;
	}

	/* it is no shell, so it may be a shard */
	number = number_of(name, &suffix);
	if (number == 0)
		return;
	answer = ttl_select_value(psprintf("SELECT format('%%s %%s', logicalrelid::oid, "
									   "CASE WHEN here = 0 OR repmodel IS NULL THEN %d WHEN repmodel = 't' THEN %d "
									   "WHEN here = 1 AND placements = 1 THEN %d WHEN repmodel = 'c' THEN %d ELSE %d END) "
									   "FROM (SELECT s.logicalrelid, t.repmodel, count(p.shardid) AS placements, "
									   "count(*) FILTER (WHERE p.groupid = (SELECT groupid FROM pg_dist_local_group)) AS here "
									   "FROM pg_dist_shard AS s LEFT JOIN pg_dist_partition AS t USING (logicalrelid) "
									   "LEFT JOIN pg_dist_placement AS p ON p.shardid = s.shardid AND p.shardstate = %d "
									   "WHERE s.shardid = " INT64_FORMAT " GROUP BY 1, 2) AS shard",
									   TTL_CITUS_ELSEWHERE, TTL_CITUS_REPLICATED, TTL_CITUS_SHARD,
									   TTL_CITUS_REPLICATED, TTL_CITUS_ELSEWHERE, PLACEMENT_ACTIVE, number));
	if (answer == NULL)
	{
		if (may_be_unknown_shard(relid, name, suffix, number))
			table->kind = TTL_CITUS_ELSEWHERE;
	}
	else if (is_named_after(relid, atooid(answer), number))
	{
		table->shell = atooid(answer);
		table->shard = number;
		table->kind = atoi(strchr(answer, ' '));
	}
}

/* What a table is to Citus. */
TtlCitusKind
ttl_citus_kind(Oid relid)
{
	TtlCitusTable table;

	ttl_citus_look(relid, &table);
	return table.kind;
}

/* Are the partitions of this table dropped and made on this node?  Citus: on the coordinator. */
bool
ttl_citus_keeps_partitions(const TtlCitusTable *table)
{
	return table->kind == TTL_CITUS_NONE ||
		(table->kind == TTL_CITUS_SHELL && !table->replicated &&
		 is_coordinator());
}

/*
 * Are the rows of this table deleted by other nodes, or through another table?  The coordinator
 * deletes them from all copies at once.
 */
bool
ttl_citus_deletes_elsewhere(const TtlCitusTable *table)
{
	return table->kind == TTL_CITUS_REPLICATED ||
		(table->kind == TTL_CITUS_SHELL && !(table->replicated && is_coordinator()));
}

/*
 * May an index delete now, as far as Citus is concerned?  Its table and the governor's must
 * both be plain, or both shards of this node, with the option of their shell.  A table with
 * copies needs ttl_citus_deletes_elsewhere().
 */
TtlState
ttl_citus_state(TtlIndex *index)
{
	TtlCitusKind kind = index->citus.kind;
	Oid			shell;
	Oid			governor;
	TtlOption	own;
	TtlOption	whole;

	if (kind == TTL_CITUS_REPLICATED)
		return TTL_ACTIVE;
	if (kind == TTL_CITUS_ELSEWHERE || kind != index->citus_governor.kind)
		return ttl_state_set(index, TTL_SHARD_ELSEWHERE, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
							 "by the catalogs of Citus this shard is not on this node, or it is being moved or split",
							 NULL);
	if (kind != TTL_CITUS_SHARD)
		return TTL_ACTIVE;
	shell = ttl_citus_shell_index(index->governor, &index->citus_governor);
	if (OidIsValid(shell) && ttl_option_read(index->governor, &own) &&
		ttl_catalog_governor(shell, &governor, &whole) &&
		ttl_option_same(&own, &whole))
		return TTL_ACTIVE;
	return ttl_state_set(index, TTL_OPTION_DIFFERS, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
						 "the option of this shard is not that of its table",
						 "Set it again at the coordinator with ttl_index.coll_mod_index().");
}

/*
 * Locks the placement of a shard until the end of the transaction, as writers do.  The tag of
 * that lock depends on how the table is distributed, so a function of Citus takes it.  Returns
 * the shard's number, or 0 for a table that is not named like one.  The placement can have
 * changed before, so the caller must look again.  Raises lock_not_available while Citus moves
 * or splits the shard.
 */
int64
ttl_citus_lock(Oid relid)
{
	TtlCitusTable table;

	ttl_citus_look(relid, &table);
	if (table.shard != 0)
	{
		int			level = NewGUCNestLevel();

		ttl_settings_set("lock_timeout", SHARD_LOCK_TIMEOUT);
		(void) ttl_select_value(psprintf("SELECT lock_shard_metadata(%d, '{" INT64_FORMAT "}')",
										 ShareLock, table.shard));
		AtEOXact_GUC(false, level);
	}
	return table.shard;
}

/*
 * Runs a command.  Where Citus propagates it, lock_timeout holds on other nodes too, because
 * otherwise the locks here would be held for as long as a shard there is being read.  Citus
 * sends that setting only in a block of several commands.
 */
void
ttl_citus_run_command(const char *command)
{
	const char *timeout = GetConfigOption("lock_timeout", false, false);

	if (strcmp(timeout, "0") != 0 && is_coordinator())
		command = psprintf("DO %s",
						   quote_literal_cstr(psprintf("BEGIN SET LOCAL citus.propagate_set_commands = 'local'; "
													   "SET LOCAL lock_timeout = %s; %s; END",
													   quote_literal_cstr(timeout), command)));
	SPI_connect();
	if (SPI_execute(command, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not run: %s", command);
	SPI_finish();
}

/*
 * Blocks all writers to a table of Citus, on all nodes, until the end of the transaction.
 * Limits waits until the caller's GUC level ends.  Raises lock_not_available.
 *
 * LOCK TABLE does not reach nodes that Citus sends no metadata.  Sessions can write there if
 * they got some before, so this is an error.
 */
void
ttl_citus_lock_copies(Oid relid)
{
	if (ttl_select_value("SELECT 1 FROM pg_dist_node WHERE isactive AND groupid <> 0 "
						 "GROUP BY groupid HAVING NOT bool_or(hasmetadata)") != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("a table with copies cannot be locked on all nodes"),
				 errdetail("Citus does not send metadata to one of them."),
				 errhint("SELECT start_metadata_sync_to_all_nodes();")));
	/* otherwise the lock would be one of this node */
	ttl_settings_set("citus.enable_ddl_propagation", "on");
	ttl_settings_set("citus.enable_metadata_sync", "on");
	ttl_lock_limit_waits();
	ttl_citus_run_command(psprintf("LOCK TABLE %s IN EXCLUSIVE MODE", ttl_name_qualified(relid)));
}
