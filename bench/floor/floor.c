/*-------------------------------------------------------------------------
 *
 * floor.c
 *	  What deleting rows costs at least, and what it costs to touch memory.
 *
 * bench_delete() calls heap_delete() for tuple IDs that bench_know() was given before, and does
 * nothing else: no way to delete rows one by one can take less time.  bench_touch() measures
 * what a process pays for a page of shared memory that it has not read before.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "utils/array.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* The page of the operating system. */
#define TOUCHED_BYTES 4096

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(bench_know);
PG_FUNCTION_INFO_V1(bench_delete);
PG_FUNCTION_INFO_V1(bench_touch);

static ItemPointerData *known;
static int	nknown;

/* bench_know(tid[]): keeps the tuple IDs for bench_delete(). */
Datum
bench_know(PG_FUNCTION_ARGS)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(0);
	Datum	   *values;
	bool	   *nulls;

	deconstruct_array(array, TIDOID, sizeof(ItemPointerData), false, TYPALIGN_SHORT,
					  &values, &nulls, &nknown);
	known = MemoryContextAllocHuge(TopMemoryContext, (Size) nknown * sizeof(ItemPointerData));
	for (int i = 0; i < nknown; i++)
	{
		if (nulls[i])
			elog(ERROR, "a tuple ID is null");
		known[i] = *(ItemPointer) DatumGetPointer(values[i]);
	}
	PG_RETURN_INT64(nknown);
}

/* bench_delete(regclass): deletes the rows. */
Datum
bench_delete(PG_FUNCTION_ARGS)
{
	Relation	heap = table_open(PG_GETARG_OID(0), RowExclusiveLock);
	CommandId	cid = GetCurrentCommandId(true);

	for (int i = 0; i < nknown; i++)
	{
		TM_FailureData failure;

		CHECK_FOR_INTERRUPTS();
		if (heap_delete(heap, &known[i], cid, InvalidSnapshot, true, &failure, false) != TM_Ok)
			elog(ERROR, "could not delete row (%u,%u)",
				 ItemPointerGetBlockNumber(&known[i]), ItemPointerGetOffsetNumber(&known[i]));
	}
	table_close(heap, NoLock);
	PG_RETURN_INT64(nknown);
}

/* Reads something of each page, and returns how long that took. */
static double
read_all(Relation rel, BlockNumber nblocks)
{
	instr_time	begun;
	instr_time	took;
	volatile char sink;

	INSTR_TIME_SET_CURRENT(begun);
	for (BlockNumber block = 0; block < nblocks; block++)
	{
		Buffer		buffer = ReadBuffer(rel, block);

		for (int at = 0; at < BLCKSZ; at += TOUCHED_BYTES)
			sink = ((char *) BufferGetPage(buffer))[at];
		ReleaseBuffer(buffer);
		CHECK_FOR_INTERRUPTS();
	}
	(void) sink;
	INSTR_TIME_SET_CURRENT(took);
	INSTR_TIME_SUBTRACT(took, begun);
	return INSTR_TIME_GET_MICROSEC(took);
}

/*
 * bench_touch(regclass): touches all pages of the table or index, and returns how many
 * microseconds more a page took than when they were touched again.
 */
Datum
bench_touch(PG_FUNCTION_ARGS)
{
	Relation	rel = relation_open(PG_GETARG_OID(0), AccessShareLock);
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	double		first = read_all(rel, nblocks);
	double		again = read_all(rel, nblocks);

	relation_close(rel, AccessShareLock);
	PG_RETURN_FLOAT8(nblocks == 0 ? 0 : (first - again) / nblocks);
}
