/*-------------------------------------------------------------------------
 *
 * own_ttl.c
 *	  What a predicate says of the TTL that documents have of their own.
 *
 * The main index of a pair (pair.c) holds the documents without one, by a member
 * "document_ttl(...) IS NULL" of its predicate, and the other one those that have one.
 * Only beside such a member does -1 make sense, for "never".
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/own_ttl.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"

#include "definition/option.h"
#include "ttl_index.h"

/* Completes document_ttl(d) to document_ttl(d, 'ttl'), all arguments in their order. */
Node *
ttl_own_ttl_complete_call(FuncExpr *call, const TtlFunctions *functions)
{
	call = copyObject(call);
	call->args = ttl_function_arguments(call);
	if (call->funcid != functions->document_ttl || list_length(call->args) != 1)
		return (Node *) call;
	call->inputcollid = DEFAULT_COLLATION_OID;
	call->args = lappend(call->args,
						 makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1,
								   CStringGetTextDatum("ttl"), false, false));
	return (Node *) call;
}

/* The TTL of a document, if the node asks whether it has none. */
static Node *
of_null_test(Node *node, const TtlFunctions *functions, NullTestType type)
{
	NullTest   *test = (NullTest *) node;
	FuncExpr   *call;

	if (!IsA(node, NullTest) || test->nulltesttype != type ||
		!IsA(test->arg, FuncExpr))
		return NULL;
	call = (FuncExpr *) test->arg;
	if (call->funcid != functions->document_ttl &&
		call->funcid != functions->column_ttl)
		return NULL;
	return ttl_own_ttl_complete_call(call, functions);
}

/* The call that the AND members require to be NULL, or NULL if there is none. */
Node *
ttl_own_ttl_asked_for(List *members)
{
	TtlFunctions functions;
	ListCell   *lc;

	if (!ttl_function_lookup(&functions))
		return NULL;
	foreach(lc, members)
	{
		Node	   *call = of_null_test(lfirst(lc), &functions, IS_NULL);

		if (call != NULL)
			return call;
	}
	return NULL;
}

/* The members but those that ask for a document's TTL, for the view. */
List *
ttl_own_ttl_plain_filter(List *members)
{
	TtlFunctions functions;
	List	   *plain = NIL;
	ListCell   *lc;

	if (!ttl_function_lookup(&functions))
		return members;
	foreach(lc, members)
	{
		if (of_null_test(lfirst(lc), &functions, IS_NULL) == NULL &&
			of_null_test(lfirst(lc), &functions, IS_NOT_NULL) == NULL)
			plain = lappend(plain, lfirst(lc));
	}
	return plain;
}
