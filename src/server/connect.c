/*-------------------------------------------------------------------------
 *
 * connect.c
 *	  Connecting a worker as the owner of tables, also one without LOGIN.
 *
 * From PostgreSQL 17 on a background worker can connect as any role.  Up to 16,
 * InitializeSessionUserId() refuses a role without LOGIN.  There the user and the session's
 * user are set before the connection, as ParallelWorkerMain() does, and the connection
 * looks up no role.  This needs the minor releases 15.11 and 16.7; before these, owners need
 * LOGIN.
 *
 * The caller checks that the role still exists.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/guc.h"
#include "utils/syscache.h"

#include "server/server.h"
#include "pass/pass.h"

#ifdef BGWORKER_BYPASS_ROLELOGINCHECK

bool
ttl_connect_is_possible(Oid owner)
{
	return true;
}

void
ttl_connect_as(Oid database, Oid owner, bool is_superuser)
{
	BackgroundWorkerInitializeConnectionByOid(database, owner,
											  BGWORKER_BYPASS_ALLOWCONN |
											  BGWORKER_BYPASS_ROLELOGINCHECK);
}

#else

/* the oldest minor releases do not have it, and the library must load there */
#pragma weak SetAuthenticatedUserId

/* Can this minor release connect a role without LOGIN in the way of a parallel worker? */
static bool
can_skip_login(void)
{
	int			version = atoi(GetConfigOption("server_version_num", false, false));

	return version >= 160007 || (version >= 150011 && version < 160000);
}

/* Can a worker connect as this owner?  Asked in a transaction. */
bool
ttl_connect_is_possible(Oid owner)
{
	HeapTuple	tuple;
	bool		result;

	if (can_skip_login())
		return true;
	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(owner));
	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_authid) GETSTRUCT(tuple))->rolcanlogin;
	ReleaseSysCache(tuple);
	return result;
}

void
ttl_connect_as(Oid database, Oid owner, bool is_superuser)
{
	if (!can_skip_login())
	{
		BackgroundWorkerInitializeConnectionByOid(database, owner, BGWORKER_BYPASS_ALLOWCONN);
		return;
	}
	InitializingParallelWorker = true;
	SetAuthenticatedUserId(owner, is_superuser);
	SetSessionAuthorization(owner, is_superuser);
	BackgroundWorkerInitializeConnectionByOid(database, owner, BGWORKER_BYPASS_ALLOWCONN);
	InitializingParallelWorker = false;
	/* else SHOW session_authorization is empty */
	StartTransactionCommand();
	SetConfigOption("session_authorization", GetUserNameFromId(owner, false), PGC_BACKEND,
					PGC_S_OVERRIDE);
	CommitTransactionCommand();
}

#endif
