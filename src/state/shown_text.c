/*-------------------------------------------------------------------------
 *
 * shown_text.c
 *	  The keys and filters of TTL indexes, as the views show them.
 *
 * They are deparsed as the reader, as \d does, by functions that the view ttl_index.indexes
 * calls only for columns that a query asks for.
 *
 * A query of all indexes must neither fail nor wait because of one of them.  So locks are
 * only tried, and "..." stands for an expression that cannot be deparsed, or is too long.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/state/shown_text.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"

#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_shown_text_key);
PG_FUNCTION_INFO_V1(ttl_shown_text_filter);
PG_FUNCTION_INFO_V1(ttl_shown_text_document_ttl);

#define NOT_SHOWN "..."

/* The greatest length of an expression, as it is stored and as it is shown. */
#define MAX_LENGTH (256 * 1024)

/* An index to write a text of. */
typedef struct TextWork
{
	Oid			indexrelid;
	Oid			relid;
	List	   *filter;			/* NIL for the key of the index, which is: */
	Node	   *key;
	char	   *text;			/* result, or NULL if the index is locked or
								 * gone */
} TextWork;

static void
text_work(void *arg)
{
	TextWork   *work = arg;

	if (!ConditionalLockRelationOid(work->relid, AccessShareLock) ||
		!ConditionalLockRelationOid(work->indexrelid, AccessShareLock) ||
		!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(work->relid)) ||
		!SearchSysCacheExists1(INDEXRELID, ObjectIdGetDatum(work->indexrelid)))
		return;
	if (strlen(nodeToString(work->filter != NIL ? (Node *) work->filter : work->key)) > MAX_LENGTH)
		work->text = NOT_SHOWN;
	else if (work->filter == NIL)
		work->text = pg_get_indexdef_columns(work->indexrelid, true);
	else
		work->text = deparse_expression((Node *) make_ands_explicit(work->filter),
										deparse_context_for(get_rel_name(work->relid), work->relid),
										false, false);
}

/* Deparses a filter, or the key of an index if there is no filter. */
static char *
write_text(Oid indexrelid, Oid relid, List *filter, Node *key)
{
	TextWork	work = {.indexrelid = indexrelid,.relid = relid,.filter = filter,.key = key};
	ErrorData  *edata = ttl_error_catch(text_work, &work, false);

	if (edata != NULL && ttl_error_is_interrupt(edata, ERRCODE_QUERY_CANCELED))
		ReThrowError(edata);
	return edata != NULL ? NOT_SHOWN : work.text;
}

static Datum
return_text(FunctionCallInfo fcinfo, const char *text)
{
	if (text == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(strlen(text) <= MAX_LENGTH ? text : NOT_SHOWN));
}

/* Finds the index whose option governs this one; false where there is none. */
static bool
find_governor(Oid indexrelid, Oid *governor, Oid *relid, TtlOption *option)
{

	if (get_rel_relkind(indexrelid) == '\0' ||
		!ttl_catalog_governor(indexrelid, governor, option))
		return false;
	*relid = IndexGetRelation(*governor, true);
	return OidIsValid(*relid);
}

/*
 * index_filter(index regclass): the user's filter, from the index whose option governs this
 * one
 */
Datum
ttl_shown_text_filter(PG_FUNCTION_ARGS)
{
	Oid			governor;
	Oid			relid;
	TtlOption	option;
	List	   *filter;

	if (!find_governor(PG_GETARG_OID(0), &governor, &relid, &option))
		PG_RETURN_NULL();
	filter = ttl_own_ttl_plain_filter(option.filter);
	if (filter == NIL)
		PG_RETURN_NULL();
	return return_text(fcinfo, write_text(governor, relid, filter, NULL));
}

/*
 * index_document_ttl(index regclass): where documents have a TTL of their own, as the user
 * named it
 */
Datum
ttl_shown_text_document_ttl(PG_FUNCTION_ARGS)
{
	Oid			governor;
	Oid			relid;
	TtlOption	option;
	Node	   *call;

	if (!find_governor(PG_GETARG_OID(0), &governor, &relid, &option))
		PG_RETURN_NULL();
	call = ttl_own_ttl_asked_for(option.filter);
	return return_text(fcinfo, call != NULL ? ttl_own_ttl_field_name(call, relid) : NULL);
}

/* index_key(index regclass): the key as users write it */
Datum
ttl_shown_text_key(PG_FUNCTION_ARGS)
{
	Oid			indexrelid = PG_GETARG_OID(0);
	Oid			relid = IndexGetRelation(indexrelid, true);
	Oid			governor;
	Oid			governed;
	TtlOption	option;
	AttrNumber	attnum;
	Node	   *key;
	char	   *text = NULL;

	if (!OidIsValid(relid) || !find_governor(indexrelid, &governor, &governed, &option))
		PG_RETURN_NULL();
	if (ttl_key_read(indexrelid, &attnum, &key))
		text = key == NULL ? get_attname(relid, attnum, true) : ttl_key_path_text(key, relid);
	return return_text(fcinfo, text != NULL ? text : write_text(indexrelid, relid, NIL, key));
}
