/*-------------------------------------------------------------------------
 *
 * last_modified.c
 *	  A column that holds the time of a row's last change, as Azure Cosmos DB's
 *	  _ts does.
 *
 * track_last_modified() (sql/ttl_index.sql) adds the column and a trigger that calls
 * set_last_modified().  The trigger overwrites what the client wrote with the time of the
 * clock: with the start of the transaction, a row could be due when a long transaction
 * commits.  Logical replication fires no triggers, so the rows that it applies keep their
 * time.
 *
 * The argument of the trigger is the name of the column, because column numbers differ between
 * partitions.  If the column is renamed, the trigger raises an error.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ddl/last_modified.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/fmgrprotos.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#define TRIGGER_FUNCTION "set_last_modified"

PG_FUNCTION_INFO_V1(ttl_set_last_modified);

/* set_last_modified('column') returns trigger */
Datum
ttl_set_last_modified(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	TupleDesc	desc;
	const char *name;
	int			attnum;
	int32		typmod;
	Datum		now;
	bool		isnull = false;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" was not called by trigger manager",
						TRIGGER_FUNCTION)));
	if (!TRIGGER_FIRED_BEFORE(trigger->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
		TRIGGER_FIRED_BY_DELETE(trigger->tg_event) ||
		trigger->tg_trigger->tgnargs != 1)
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" must be fired before INSERT or UPDATE for each row, with the name of a column",
						TRIGGER_FUNCTION),
				 errhint("Call ttl_index.track_last_modified() to create the trigger.")));

	desc = RelationGetDescr(trigger->tg_relation);
	name = trigger->tg_trigger->tgargs[0];
	attnum = SPI_fnumber(desc, name);
	if (attnum <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist",
						name, RelationGetRelationName(trigger->tg_relation)),
				 errdetail("Trigger \"%s\" sets this column to the time of the last change.",
						   trigger->tg_trigger->tgname),
				 errhint("Call ttl_index.untrack_last_modified() with this name; where the column was renamed, then ttl_index.track_last_modified() with the new one.")));
	if (SPI_gettypeid(desc, attnum) != TIMESTAMPTZOID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of relation \"%s\" is not of type timestamp with time zone",
						name, RelationGetRelationName(trigger->tg_relation)),
				 errhint("Call ttl_index.untrack_last_modified(), or change the type of the column.")));

	now = TimestampTzGetDatum(GetCurrentTimestamp());
	typmod = TupleDescAttr(desc, attnum - 1)->atttypmod;
	if (typmod >= 0)
		now = DirectFunctionCall2(timestamptz_scale, now, Int32GetDatum(typmod));

	return PointerGetDatum(heap_modify_tuple_by_cols(TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
													 trigger->tg_newtuple :
													 trigger->tg_trigtuple,
													 desc, 1, &attnum, &now,
													 &isnull));
}
