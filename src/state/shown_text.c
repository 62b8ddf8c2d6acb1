/*-------------------------------------------------------------------------
 *
 * shown_text.c
 *	  The keys and filters of TTL indexes, as the views show them.
 *
 * They are deparsed with the reader's search_path, as \d does.  The view ttl_index.indexes calls
 * these functions only for columns that a query asks for.
 *
 * A query of all indexes must not wait because of one of them, so it waits for no locks.
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

/*
 * Deparses a filter, or the key of an index if there is no filter.  Returns NULL if the index is
 * locked or gone.
 */
static char *
write_text(Oid indexrelid, Oid relid, List *filter)
{
	char	   *text = NULL;

	if (!ConditionalLockRelationOid(relid, AccessShareLock))
		return NULL;
	if (ConditionalLockRelationOid(indexrelid, AccessShareLock))
	{
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)) &&
			SearchSysCacheExists1(INDEXRELID, ObjectIdGetDatum(indexrelid)))
			text = filter == NIL ? pg_get_indexdef_columns(indexrelid, true) :
				deparse_expression((Node *) make_ands_explicit(filter),
								   deparse_context_for(get_rel_name(relid), relid), false, false);
		UnlockRelationOid(indexrelid, AccessShareLock);
	}
	UnlockRelationOid(relid, AccessShareLock);
	return text;
}

static Datum
return_text(FunctionCallInfo fcinfo, const char *text)
{
	if (text == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(text));
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

/* index_filter(index regclass): the user's filter, from the index whose option governs this one */
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
	return return_text(fcinfo, write_text(governor, relid, filter));
}

/* index_document_ttl(index regclass): the field of the documents' own TTL, as the user named it */
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
	return return_text(fcinfo, text != NULL ? text : write_text(indexrelid, relid, NIL));
}
