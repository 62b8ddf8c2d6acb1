/*-------------------------------------------------------------------------
 *
 * messages.c
 *	  The messages of the processes of run_pass(), for the session that called it.
 *
 * A process sends its messages through a queue in shared memory, as a parallel worker does
 * (libpq/pqmq.h), and the session raises them again.  An error that ended a survey is raised
 * as an error.  An error that ended a worker is raised as a WARNING, because the other
 * workers continue.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "libpq/pqformat.h"
#include "libpq/pqmq.h"
#include "storage/proc.h"

#include "server/server.h"

#define QUEUE_SIZE 16384

/* Makes a queue in the current memory context, whose receiver this session is. */
shm_mq_handle *
ttl_messages_begin(dsm_handle *handle)
{
	dsm_segment *segment = dsm_create(QUEUE_SIZE, 0);
	shm_mq	   *queue = shm_mq_create(dsm_segment_address(segment), QUEUE_SIZE);

	dsm_pin_mapping(segment);
	shm_mq_set_receiver(queue, MyProc);
	*handle = dsm_segment_handle(segment);
	return shm_mq_attach(queue, segment, NULL);
}

/*
 * Raises a message again.  If core cannot send it, because code of an owner wrote what the
 * client's encoding lacks, that is no error of the pass.  The message is in the log by then.
 */
static void
raise_again(ErrorData *edata)
{
	MemoryContext caller = CurrentMemoryContext;

	/* it may be invalid in the encoding of the database, too */
	ttl_work_tidy(edata);
	PG_TRY();
	{
		ThrowErrorData(edata);
	}
	PG_CATCH();
	{
		int			sqlerrcode = geterrcode();

		if (edata->elevel >= ERROR || (sqlerrcode != ERRCODE_UNTRANSLATABLE_CHARACTER &&
									   sqlerrcode != ERRCODE_CHARACTER_NOT_IN_REPERTOIRE))
			PG_RE_THROW();
		MemoryContextSwitchTo(caller);
		FlushErrorState();
	}
	PG_END_TRY();
}

/* Raises again what has come through the queue; errors as such only if the caller wants it. */
void
ttl_messages_relay(shm_mq_handle *messages, bool raises)
{
	Size		size;
	void	   *data;

	while (shm_mq_receive(messages, &size, &data, true) == SHM_MQ_SUCCESS)
	{
		StringInfoData message;
		ErrorData	edata;
		int			type;

		initStringInfo(&message);
		appendBinaryStringInfo(&message, data, size);
		type = pq_getmsgbyte(&message);
		if (type == 'E' || type == 'N')
		{
			pq_parse_errornotice(&message, &edata);
			if (edata.elevel >= ERROR)
				edata.elevel = raises ? ERROR : WARNING;
			raise_again(&edata);
		}
		pfree(message.data);
	}
}

/* Sends what this process says through a queue from now on. */
void
ttl_messages_redirect(dsm_handle handle)
{
	dsm_segment *segment = dsm_attach(handle);
	shm_mq	   *queue;

	/* the session may have gone */
	if (segment == NULL)
		return;
	dsm_pin_mapping(segment);
	queue = dsm_segment_address(segment);
	shm_mq_set_sender(queue, MyProc);
	pq_redirect_to_shm_mq(segment, shm_mq_attach(queue, segment, NULL));
}
