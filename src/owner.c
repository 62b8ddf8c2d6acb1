/*-------------------------------------------------------------------------
 *
 * owner.c
 *	  Becoming the owner of a table.
 *
 * Whatever a user wrote (index expressions, predicates, triggers, the functions
 * they call) runs between ttl_become_owner() and ttl_restore_user(): as the
 * table's owner, in a security-restricted operation, with a search_path on which
 * nobody can put anything, and with a level of settings of its own, so that a
 * SET of theirs does not outlive them.  An error needs no clean-up: the end of
 * the (sub)transaction restores the user and the settings.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/owner.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "compat.h"
#include "ttl_index.h"

void
ttl_become_owner(Oid owner, TtlUser *saved)
{
	GetUserIdAndSecContext(&saved->userid, &saved->sec_context);

	/* Row security does not apply to expiry, even where it is forced. */
	SetUserIdAndSecContext(owner,
						   saved->sec_context | SECURITY_RESTRICTED_OPERATION |
						   SECURITY_NOFORCE_RLS);
	saved->guc_level = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp",
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
							 true, 0, false);
}

void
ttl_restore_user(const TtlUser *saved)
{
	AtEOXact_GUC(false, saved->guc_level);
	SetUserIdAndSecContext(saved->userid, saved->sec_context);
}

/* Raises an error unless the current user owns the table. */
void
ttl_check_owner(Oid relid)
{
	if (!object_ownercheck(RelationRelationId, relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, get_rel_name(relid));
}

/* Opens a table on which its owner declares something. */
Relation
ttl_open_table(Oid relid, LOCKMODE lockmode)
{
	Relation	rel;
	char		relkind;

	/* before the lock: nobody else may queue here */
	ttl_check_owner(relid);
	rel = relation_open(relid, lockmode);
	relkind = rel->rd_rel->relkind;
	if (relkind != RELKIND_RELATION && relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table", RelationGetRelationName(rel)),
				 errhint("Rows of ordinary and partitioned tables can expire.")));
	return rel;
}
