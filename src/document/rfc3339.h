/*-------------------------------------------------------------------------
 *
 * rfc3339.h
 *	  The one function of rfc3339.c; needs nothing of PostgreSQL.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_RFC3339_H
#define TTL_RFC3339_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern bool rfc3339_parse(const char *string, size_t length,
						  bool *has_offset, int64_t *micros);

#endif							/* TTL_RFC3339_H */
