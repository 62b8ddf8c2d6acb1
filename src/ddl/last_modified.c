/*-------------------------------------------------------------------------
 *
 * last_modified.c
 *	  A column that holds the time of a row's last change, as Azure Cosmos DB's
 *	  _ts does.
 *
 * track_last_modified() (sql/ttl_index.sql) adds the column and a trigger that calls
 * set_last_modified().  The trigger overwrites what the client wrote with the time of the
 * clock.  The start of the transaction would not do: when a long transaction commits, a row
 * could be due.
 *
 * The argument of the trigger is the name of the column, because column numbers differ between
 * partitions.  If the column is renamed, the trigger raises an error.
 *
 * Copyright (c) 2026, ttl_index contributors
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

	if (!CALLED_AS_TRIGGER(fcinfo) ||
		!TRIGGER_FIRED_BEFORE(trigger->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
		TRIGGER_FIRED_BY_DELETE(trigger->tg_event) ||
		trigger->tg_trigger->tgnargs != 1)
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"set_last_modified\" must be called by a trigger BEFORE INSERT OR UPDATE FOR EACH ROW, with the name of a column"),
				 errhint("ttl_index.track_last_modified() creates the trigger.")));

	desc = RelationGetDescr(trigger->tg_relation);
	name = trigger->tg_trigger->tgargs[0];
	attnum = SPI_fnumber(desc, name);
	if (attnum <= 0 || SPI_gettypeid(desc, attnum) != TIMESTAMPTZOID)
		ereport(ERROR,
				(errcode(attnum <= 0 ? ERRCODE_UNDEFINED_COLUMN : ERRCODE_DATATYPE_MISMATCH),
				 errmsg("relation \"%s\" has no column \"%s\" of type timestamp with time zone",
						RelationGetRelationName(trigger->tg_relation), name),
				 errdetail("Trigger \"%s\" sets this column to the time of the last change.",
						   trigger->tg_trigger->tgname),
				 errhint("ttl_index.untrack_last_modified() drops the trigger, also with the former name of the column.")));

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
