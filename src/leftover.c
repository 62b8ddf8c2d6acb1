/*-------------------------------------------------------------------------
 *
 * leftover.c
 *	  What the code of one owner must not leave to that of others in a process.
 *
 * The code of many owners runs in one process, one after another, and then perhaps that of
 * the session which has called run_pass().  Each runs in a security-restricted operation,
 * which keeps it from most of what outlives it.  What is left is taken back here, or where that
 * takes more, in files beside this one: what is cached (code.c, uncomputed.c), types of pg_temp
 * (temporary_object.c), and commands that have not come to their end (unfinished.c).
 *
 * Core makes no cursor WITH HOLD in a restricted operation, as a COMMIT would read it to the
 * end outside of that.  But a COMMIT in a procedure does so with any cursor that a function
 * has pinned, and everywhere else it fails then; and functions in PL/Perl and PL/Python pin
 * those that they leave open.  Each owner's cursors end with its code.
 *
 * PL/Perl lets a function ignore signals.  Then nothing would end the code of others any more
 * that runs for too long, nor the process, and DROP DATABASE would wait for it.  What is
 * done at a signal is put back when an owner's code is over, in an error as well.
 *
 * An error can be raised while a page is locked, as that of a key too long for its index is.  The
 * end of a (sub)transaction gives that lock back, but return_next() of PL/Perl catches errors
 * without one.  Nothing is told that the lock is held, so the process would wait for
 * itself, deaf to signals, where it meets the page again, and VACUUM and the checkpointer for
 * the process.  What is still locked when an owner's code is over is given back, but for what
 * was locked before: core calls code of users while it inserts into an index, as that which
 * tells how far apart two values of a range are, and this can call the extension.  19 tells nobody what is
 * locked; there the command that failed is what ends the turn (unfinished.c), and with it the lock.
 *
 * Forced row security does not apply to expiry, nor to a look at what will be deleted (owner.c).
 * Core would use a plan that was made without it where the same role goes on with it, and the
 * other way round.
 *
 * Nor does return_next() take back the user whom a foreign key or a SECURITY DEFINER function has
 * made of who ran before.  Where an error ends these, nobody goes on.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/leftover.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/portal.h"

#include "compat.h"
#include "ttl_index.h"

/* As whom the extension acts, and since which subtransaction, which can be as deep as this one. */
struct TtlActing
{
	Oid			role;
	int			sec_context;
	int			nest_level;
	int			guc_level;		/* of the settings that end with it */
	int			before;			/* what nest_level was */
	bool		is_own;			/* does the user of a session look at a table of its own? */
	bool		is_changed;		/* is what others have left forgotten for it? */
	bool		is_unforced;	/* is row security not forced any more, as it was before? */
	int			ncalls;			/* see there */
	Oid			commander;		/* who gave the command that runs, whose triggers are fired */
	List	   *uncomputed;		/* see ttl_uncomputed_note() */
	List	   *cursors;		/* those that were open before, as OpenCursor */
	TtlActing  *outer;			/* who goes on behind it, or NULL */
};

/* A cursor that nobody can use for as long as the extension acts as somebody, and what it is else. */
typedef struct OpenCursor
{
	Portal		portal;
	PortalStatus status;
	bool		is_pinned;		/* by a loop, say; PL/Perl takes that away before it closes one */
} OpenCursor;

/* in the memory of the transaction, whose end is that of it; NULL for nobody else */
static TtlActing *acting = NULL;

/* how many functions of the extension, and commands, are being run by code */
static int	ncalls = 0;

/* as whom it acted when errors were raised that were caught since ttl_leftover_expect() */
static Oid	failed_as = InvalidOid;

/*
 * What is done at signals where no code of an owner runs.  All that have names, not only those
 * that core's processes obey: PL/Perl would call the code of an owner at a SIGSEGV in that of
 * another one.  Nobody sends those above, which are for real-time applications.
 */
#define LAST_SIGNAL 31
static struct sigaction handlers[LAST_SIGNAL + 1];

/* how deep in subtransactions that has changed last: an error further in changes nothing */
static int	nest_level = 0;

/* Is the user another role than that for whose code all was forgotten, and which finds what is kept now? */
bool
ttl_leftover_is_other_role(void)
{
	const TtlActing *inner = acting;

	while (inner != NULL && !inner->is_changed)
		inner = inner->outer;
	return inner == NULL || GetUserId() != inner->role;
}

/* Notes what is done at signals, before code of an owner runs. */
static void
note_signals(void)
{
	for (int i = 1; i <= LAST_SIGNAL; i++)
	{
		if (sigaction(i, NULL, &handlers[i]) != 0)
			elog(ERROR, "could not read what is done at signal %d: %m", i);
	}
}

/* Puts it back, which those refuse that cannot be caught. */
static void
restore_signals(void)
{
	for (int i = 1; i <= LAST_SIGNAL; i++)
		(void) sigaction(i, &handlers[i], NULL);
}

/*
 * All cursors that are open.  Core lists them in pg_cursors alone, which would take two queries
 * more in each batch.  But each has a memory context of its own, which is called like it, and
 * these have one in common.
 */
static List *
open_cursors(void)
{
	static MemoryContext all = NULL;
	List	   *cursors = NIL;

	for (MemoryContext child = TopMemoryContext->firstchild; all == NULL; child = child->nextchild)
	{
		if (child == NULL)
			elog(ERROR, "could not find the cursors of the session");
		if (strcmp(child->name, "TopPortalContext") == 0)
			all = child;
	}
	for (MemoryContext child = all->firstchild; child != NULL; child = child->nextchild)
	{
		Portal		portal = child->ident != NULL ? GetPortalByName(child->ident) : NULL;

		/* the one without a name is called otherwise there, by which another one can be called */
		if (portal == NULL || portal->portalContext != child)
			portal = GetPortalByName("");
		if (portal != NULL && portal->portalContext == child)
			cursors = lappend(cursors, portal);
	}
	return cursors;
}

/*
 * Lets nobody read from, rewind or close the cursors that are open before the code of a role runs: core refuses
 * that where one is being run.  What is left to compute of them is what has opened them, as whoever that
 * was, and it would be by the settings of the code that asks: functions in SQL are parsed then.
 */
static void
hold_cursors(TtlActing *inner)
{
	MemoryContext oldcontext = MemoryContextSwitchTo(TopTransactionContext);
	List	   *portals = open_cursors();
	ListCell   *lc;

	foreach(lc, portals)
	{
		OpenCursor *cursor = palloc(sizeof(OpenCursor));

		cursor->portal = lfirst(lc);
		cursor->status = cursor->portal->status;
		cursor->is_pinned = cursor->portal->portalPinned;
		inner->cursors = lappend(inner->cursors, cursor);
		cursor->portal->status = PORTAL_ACTIVE;
	}
	list_free(portals);
	MemoryContextSwitchTo(oldcontext);
}

/*
 * Gives back the cursors, but for those that the end of a (sub)transaction has made fail, and no
 * plan that was made without forced row security.
 */
static void
give_back(TtlActing *inner)
{
	ListCell   *lc;

	if (inner->is_unforced)
		ResetPlanCache();
	foreach(lc, inner->cursors)
	{
		OpenCursor *cursor = lfirst(lc);

		if (cursor->portal->status != PORTAL_ACTIVE)
			continue;
		cursor->portal->status = cursor->status;
		cursor->portal->portalPinned = cursor->is_pinned;
	}
	list_free_deep(inner->cursors);
	inner->cursors = NIL;
}

static void
add_lock(LWLock *lock, LWLockMode mode, void *locks)
{
	*(List **) locks = lappend(*(List **) locks, lock);
}

/* All locks of pages, and of structures in shared memory, that this process holds. */
static List *
held_locks(void)
{
	List	   *locks = NIL;

	ForEachLWLockHeldByMe(add_lock, &locks);
	return locks;
}

/* Gives back what is locked, but for what was before. */
static void
release_locks(const List *before)
{
	ListCell   *lc;

	foreach(lc, held_locks())
	{
		if (list_member_ptr(before, lfirst(lc)))
			continue;
		/* the error has allowed interrupts already */
		HOLD_INTERRUPTS();
		LWLockRelease(lfirst(lc));
	}
}

/*
 * Who gives a command that fires triggers, in the midst of what the extension does as others, is
 * noted until ttl_leftover_end_command().
 */
TtlCommand
ttl_leftover_begin_command(bool fires_triggers)
{
	TtlCommand	command = {0};

	ncalls++;
	if (acting != NULL && fires_triggers)
	{
		command.within = acting;
		command.outer = acting->commander;
		acting->commander = GetUserId();
	}
	return command;
}

/* Also at an error, which can be caught without any other notice. */
void
ttl_leftover_end_command(const TtlCommand *command)
{
	ncalls--;
	if (command->within != NULL)
		command->within->commander = command->outer;
}

/*
 * Is the extension called by code in whose midst others' is, with this security context: by a
 * SECURITY DEFINER function, by what core runs as an owner, or by that of an owner as whom it acts?  Not
 * where it goes on itself to act as another owner.
 */
static bool
is_in_midst(int sec_context)
{
	return acting != NULL ? ncalls > acting->ncalls : sec_context != 0;
}

/*
 * From now on the extension acts as this role, before which there were a user and a security context.
 *
 * Nothing is forgotten in the midst of other code: that would have lost what it had compiled, and who has
 * called the extension could compile it then.  There a call is as a command of core is, and
 * leaves what that would.  So it is where the user's own code runs, but for a pass, which goes on to tables of
 * others.  Nor is anything forgotten where only texts are written: no code of the role runs, and there can be
 * thousands in a view.
 */
void
ttl_leftover_begin(Oid new_role, Oid user, int sec_context, int guc_level, bool runs_code,
				   TtlLeftover *before)
{
	TtlActing  *inner = MemoryContextAlloc(TopTransactionContext, sizeof(TtlActing));
	bool		is_own = acting == NULL && user == new_role && sec_context == 0;
	int			before_level;

	before->role = ttl_code_role();
	before->locks = held_locks();
	ttl_unfinished_note(&before->unfinished);
	/* the code of one owner can make the extension run that of another one */
	if (acting != NULL)
		restore_signals();
	else
		note_signals();
	before_level = nest_level;
	nest_level = GetCurrentTransactionNestLevel();
	*inner = (TtlActing)
	{
		.role = new_role,.nest_level = nest_level,.guc_level = guc_level,.before = before_level,
		.is_own = is_own,
		.is_changed = runs_code && !is_in_midst(sec_context) && (!is_own || ttl_code_is_in_pass()),
		.ncalls = ncalls,
		.commander = new_role,.outer = acting
	};
	GetUserIdAndSecContext(&user, &inner->sec_context);
	acting = inner;
	if (inner->is_changed)
		ttl_code_begin(new_role, false, false);
	else if (runs_code)
		ttl_code_go_on();
	hold_cursors(inner);
}

/*
 * Queries that were planned where row security is forced are planned anew where it is not, as from now
 * on, and the other way when that ends: core compares for whom a plan was made, but not this, and the
 * same role can go on.  In a worker it is never forced.
 */
void
ttl_leftover_forget_plans(int sec_context_before)
{
	acting->is_unforced = !ttl_code_is_worker() &&
		(acting->sec_context & ~sec_context_before & SECURITY_NOFORCE_RLS) != 0;
	if (acting->is_unforced)
		ResetPlanCache();
}

/*
 * Keeps what core has yet to compute for relations that are open from what code of this role makes of
 * it.  Nobody is to be kept from that who calls code of its own: to look at all that a transaction
 * has locked, at each call, would be n squared in a migration.
 */
void
ttl_leftover_note_uncomputed(void)
{
	MemoryContext oldcontext;

	if (acting->is_own)
		return;
	oldcontext = MemoryContextSwitchTo(TopTransactionContext);
	acting->uncomputed = ttl_uncomputed_note(acting->outer != NULL);
	MemoryContextSwitchTo(oldcontext);
}

/*
 * Closes the cursors that the code of a role has left open.  Called while that is still the
 * current user, as whose the executor ends.
 */
void
ttl_leftover_close(void)
{
	ListCell   *lc;

	foreach(lc, open_cursors())
	{
		Portal		portal = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if (portal->status == PORTAL_ACTIVE)
			continue;
		if (portal->portalPinned)
			UnpinPortal(portal);
		PortalDrop(portal, false);
	}
}

/*
 * From now on that goes on whose code ran before.  Not where that code has caught an error as
 * return_next() of PL/Perl does, and has left what only the end of a subtransaction takes back: a
 * type that was refused to it, or a command that did not come to its end, and can have queued
 * deferred triggers, say.  Then an error is raised for who goes on, which takes it back.
 */
void
ttl_leftover_end(const TtlLeftover *before)
{
	TtlActing  *inner = acting;
	Oid			user = inner->role;
	bool		is_changed = inner->is_changed;

	nest_level = is_changed ? GetCurrentTransactionNestLevel() : inner->before;
	restore_signals();
	release_locks(before->locks);
	acting = inner->outer;
	give_back(inner);
	ttl_uncomputed_let_go(inner->uncomputed);
	pfree(inner);
	if (is_changed)
		ttl_code_begin(before->role, true, false);
	ttl_temporary_object_check();
	ttl_unfinished_check(&before->unfinished, user);
}

/* Begins to note as whom errors are raised. */
void
ttl_leftover_expect(void)
{
	failed_as = InvalidOid;
}

/*
 * As whom the extension acted when errors were raised that have been caught since then; invalid
 * for nobody else, and no role that there is for more than one.  Code that has caught an error
 * of another role can say what that was in one of its own.
 */
Oid
ttl_leftover_failed(void)
{
	return failed_as;
}

/* Who gave the command that runs, whose triggers are fired; invalid where nobody else is acted as. */
Oid
ttl_leftover_commander(void)
{
	return acting != NULL ? acting->commander : InvalidOid;
}

/*
 * Becomes nobody, where an error is raised while core can have become somebody else, for a foreign
 * key, a SECURITY DEFINER function or a command such as CREATE INDEX.  The end of a
 * (sub)transaction restores the user.  But the error can be caught as ttl_leftover_call() says, by
 * any code in whose midst that was, and this code would go on with the rights of that role.
 * Whose they should be is not known: there can be functions of several roles in between.  A role
 * that does not exist has the rights of PUBLIC, and is neither a member nor an owner of anything;
 * and the turn ends with an error (unfinished.c).
 */
void
ttl_leftover_become_nobody(void)
{
	if (acting != NULL)
		SetUserIdAndSecContext(TTL_ANY_ROLE,
							   acting->sec_context | SECURITY_LOCAL_USERID_CHANGE);
}

/*
 * For what the extension itself does next, what SECURITY DEFINER functions of others have let core
 * compile or keep meanwhile is not there, as it is not at the beginning; and where nobody goes on, that
 * is an error.  False where it does something for code of another role in the midst of that.
 */
bool
ttl_leftover_renew(void)
{
	if (GetUserId() == TTL_ANY_ROLE)
		ttl_unfinished_raise(acting->role);
	if (GetUserId() != acting->role)
		return false;
	if (acting->is_changed)
		ttl_code_renew(acting->role);
	return true;
}

/* An error has ended what the extension did as others within this one. */
static void
end_acting(TtlActing *outer)
{
	if (acting == outer)
		return;
	restore_signals();
	for (TtlActing *inner = acting; inner != outer; inner = inner->outer)
	{
		give_back(inner);
		ttl_uncomputed_forget(inner->uncomputed);
	}
	failed_as = OidIsValid(failed_as) && failed_as != acting->role ? TTL_ANY_ROLE : acting->role;
	/* the memory is that of the transaction */
	acting = outer;
}

/*
 * Ends what the extension did within this one, by an error that has been caught.  The code goes on
 * as it was, or the session does.  What the same role had done is nothing to take back: its functions
 * would be compiled anew at each error, and PL/pgSQL would keep those of before, which run.
 */
static void
go_on(TtlActing *outer)
{
	bool		is_same = outer != NULL && acting != outer && ttl_code_role() == outer->role;
	/* else one had come to its end before the error */
	bool		is_changed = acting == outer;
	int			before = nest_level;

	for (TtlActing *inner = acting; inner != outer; inner = inner->outer)
	{
		is_same = is_same && (!inner->is_changed || inner->role == outer->role);
		is_changed = is_changed || inner->is_changed;
		before = inner->before;
	}
	is_changed = is_changed && !is_same;
	end_acting(outer);
	nest_level = is_changed ? GetCurrentTransactionNestLevel() : before;
	if (OidIsValid(ttl_code_role()) && is_changed)
		ttl_code_begin(acting != NULL ? TTL_ANY_ROLE : InvalidOid, true, true);
}

/*
 * Calls a function that can become the owner of a table, as it was declared (TTL_FUNCTION).  An
 * error needs no clean-up where the end of a (sub)transaction restores the user and the
 * settings.  But return_next() of PL/Perl catches errors without that, as functions in C can: the code
 * that called it, of any role, would go on as the owner.
 */
Datum
ttl_leftover_call(PGFunction function, FunctionCallInfo fcinfo)
{
	TtlActing  *outer = acting;
	TtlCandidates candidates = ttl_uncomputed_forget_candidates();
	Oid			user;
	int			sec_context;
	Datum		result;

	GetUserIdAndSecContext(&user, &sec_context);
	ncalls++;
	PG_TRY();
	{
		result = function(fcinfo);
	}
	PG_CATCH();
	{
		ncalls--;
		SetUserIdAndSecContext(user, sec_context);
		ttl_uncomputed_restore_candidates(candidates);
		if (acting != outer)
		{
			for (TtlActing *inner = acting; inner != outer; inner = inner->outer)
				AtEOXact_GUC(false, inner->guc_level);
			go_on(outer);
		}
		PG_RE_THROW();
	}
	PG_END_TRY();
	ncalls--;
	ttl_uncomputed_restore_candidates(candidates);
	return result;
}

/* An error can have ended what ran as another role. */
static void
xact_event(XactEvent event, void *arg)
{
	/* their memory is that of the transaction */
	(void) ttl_uncomputed_forget_candidates();
	if (event != XACT_EVENT_ABORT)
	{
		Assert(acting == NULL);
		return;
	}
	end_acting(NULL);
	if (OidIsValid(ttl_code_role()))
		ttl_code_begin(InvalidOid, true, true);
}

static void
subxact_event(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();
	TtlActing  *outer = acting;

	if (event != SUBXACT_EVENT_ABORT_SUB || nest_level < level)
		return;
	while (outer != NULL && outer->nest_level >= level)
		outer = outer->outer;
	go_on(outer);
	nest_level = Min(nest_level, level - 1);
}

void
ttl_leftover_init(void)
{
	RegisterXactCallback(xact_event, NULL);
	RegisterSubXactCallback(subxact_event, NULL);
}
