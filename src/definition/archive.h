/*-------------------------------------------------------------------------
 *
 * archive.h
 *	  Can rows move to the table that archive_to() names?
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/archive.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_ARCHIVE_H
#define TTL_ARCHIVE_H

#include "catalog/pg_attribute.h"
#include "definition/definition.h"

extern TtlState ttl_archive_state(TtlIndex *index);
extern TtlState ttl_archive_rights(TtlIndex *index);
extern TtlState ttl_archive_state_now(TtlIndex *index);
extern void ttl_archive_check(TtlIndex *index);
extern char *ttl_archive_name(Oid target);
extern Oid	ttl_archive_of(Oid indexrelid, Oid *governor);
extern bool ttl_archive_is_attachable(const TtlIndex *index);
extern char *ttl_archive_column_type(const FormData_pg_attribute *column);

#endif							/* TTL_ARCHIVE_H */
