/*-------------------------------------------------------------------------
 *
 * codeless.h
 *	  Where no code of users runs.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/codeless.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_CODELESS_H
#define TTL_CODELESS_H

#include "nodes/nodes.h"
#include "utils/relcache.h"

/* codeless.c */
extern bool ttl_codeless_expression(Node *expression);
extern bool ttl_codeless_checks(Relation rel);
extern bool ttl_codeless_table(Relation rel);
extern bool ttl_codeless_planning(Oid relid);

#endif							/* TTL_CODELESS_H */
