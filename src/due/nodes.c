/*-------------------------------------------------------------------------
 *
 * nodes.c
 *	  What is due in the shards of a table of Citus, asked for at one node.
 *
 * Each node knows what is due in its own shards.  It is asked as the caller, in a transaction
 * of its own, so what the caller has not committed is not counted: no pass would delete it
 * either.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/due/nodes.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "due/due.h"
#include "state/state.h"
#include "ttl_index.h"

/* Are the rows of an index in the shards of a table of Citus? */
bool
ttl_nodes_have(Oid indexrelid)
{
	return ttl_citus_kind(IndexGetRelation(indexrelid, true)) == TTL_CITUS_SHELL;
}

/* Is each of these rows on one node, which knows whether it is due? */
bool
ttl_nodes_know(Oid indexrelid)
{
	TtlCitusTable table;

	ttl_citus_look(IndexGetRelation(indexrelid, true), &table);
	return table.kind == TTL_CITUS_SHELL && !table.replicated;
}

/*
 * What each node is to run: an array of what a function returns for each of the shards that
 * are there.  One that is moved is on two nodes, and belongs to one of them.
 */
static char *
node_query(Oid indexrelid, const char *call)
{
	return psprintf("SELECT coalesce(pg_catalog.jsonb_agg(%s), '[]') FROM ttl_index.indexes AS i "
					"WHERE i.logical_indexrelid::pg_catalog.oid OPERATOR(pg_catalog.=) "
					"%s::pg_catalog.regclass::pg_catalog.oid "
					"AND i.state OPERATOR(pg_catalog.<>) 'shard_elsewhere'",
					call, quote_literal_cstr(ttl_name_qualified(indexrelid)));
}

/*
 * Calls a function on all nodes for their shards of an index ("i", a row of
 * ttl_index.indexes), and aggregates the values "e.v" with the numbers "e.n".  If a node does
 * not answer, reports it at elevel and returns NULL.
 */
Datum
ttl_nodes_ask(Oid indexrelid, const char *call, const char *aggregate, int elevel,
			  bool *isnull)
{
	char	   *problem;
	Datum		result;

	SPI_connect();
	if (SPI_execute(psprintf("SELECT %s, pg_catalog.min(pg_catalog.format('node %%s:%%s: %%s', "
							 "a.nodename, a.nodeport, a.error)) FILTER (WHERE a.error IS NOT NULL) "
							 "FROM ttl_index.ask_nodes(%s) AS a LEFT JOIN LATERAL "
							 "pg_catalog.jsonb_array_elements_text(a.answer) WITH ORDINALITY AS e (v, n) ON true",
							 aggregate, quote_literal_cstr(node_query(indexrelid, call))),
					false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not ask the nodes for index %u", indexrelid);
	problem = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2);
	result = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, isnull);
	if (problem != NULL)
	{
		ereport(elevel,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("could not ask all nodes for the shards of index \"%s\"",
						get_rel_name(indexrelid)),
				 errdetail_internal("%s", problem)));
		*isnull = true;
	}
	else if (!*isnull && !TupleDescAttr(SPI_tuptable->tupdesc, 0)->attbyval)
		result = SPI_datumTransfer(result, false, TupleDescAttr(SPI_tuptable->tupdesc, 0)->attlen);
	SPI_finish();
	return result;
}
