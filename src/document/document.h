/*-------------------------------------------------------------------------
 *
 * document.h
 *	  Dates and times to live inside jsonb documents.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/document/document.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_DOCUMENT_H
#define TTL_DOCUMENT_H

#include "datatype/timestamp.h"
#include "fmgr.h"
#include "utils/jsonb.h"

/* document_date.c */
extern bool ttl_document_date_find(Jsonb *document, ArrayType *path,
								   TimestampTz *date);
extern bool ttl_document_date_integer(const JsonbValue *value, int64 *integer);

#endif							/* TTL_DOCUMENT_H */
