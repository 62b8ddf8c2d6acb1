/*-------------------------------------------------------------------------
 *
 * announce.c
 *	  Telling others that it is a TTL index that deletes.
 *
 * While a batch runs, the setting ttl_index.expiring is the name of the index, so that a
 * trigger can recognize the delete.  Its context is PGC_INTERNAL, so users cannot set it, and
 * it ends with the caller's GUC nesting level, also after an error.
 *
 * A message of logical decoding comes before the rows of a batch, in the same subtransaction,
 * so it is decoded if and only if the deletes are.  A replication origin would make
 * subscribers with origin = none omit the deletes.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/announce.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "lib/stringinfo.h"
#include "utils/guc.h"

#include "compat.h"
#include "expire/expire.h"
#include "ttl_index.h"

#define MESSAGE_PREFIX "ttl_index"

/*
 * Sets what code of users sees, until the level of settings ends.  The index is the one that
 * has a row in the view index_stats: that of the whole table, and the main one of a pair.
 */
void
ttl_announce_to_session(const char *root)
{
	(void) set_config_option("ttl_index.expiring", root, PGC_INTERNAL,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/*
 * Writes the message, if anybody could decode it.  Its lines are the index, the partition that
 * is dropped or moved (or an empty line), and the archive if there is one.
 */
void
ttl_announce_to_wal(const char *root, const char *partition, const char *archive)
{
	StringInfoData message;

	if (!ttl_logical_messages || !XLogLogicalInfoActive())
		return;
	initStringInfo(&message);
	appendStringInfoString(&message, root);
	if (partition != NULL || archive != NULL)
		appendStringInfo(&message, "\n%s", partition ? partition : "");
	if (archive != NULL)
		appendStringInfo(&message, "\n%s", archive);
	ttl_log_logical_message(MESSAGE_PREFIX, message.data, message.len);
	pfree(message.data);
}
