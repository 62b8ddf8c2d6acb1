/*-------------------------------------------------------------------------
 *
 * ttl_index.c
 *	  The start of the library.
 *
 * If the library is preloaded, it registers the launcher of the monitor.  If a session
 * loads it, it provides the functions and the settings, and nothing runs in the
 * background.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ttl_index.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "server/server.h"
#include "ttl_index.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	ttl_settings_init();
	if (process_shared_preload_libraries_in_progress)
		ttl_launcher_register();
}
