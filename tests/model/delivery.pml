/*
 * delivery -- lease, present, send, read ahead, acknowledge, fold, takeover.
 *
 * Two workers, one peer, one message that is written and perhaps edited and
 * deleted. A worker may stop for good at any step (it is then never scheduled
 * again, and its lease is taken over); a POST may be lost, done
 * with its answer lost, or arrive after its worker has lost the lease. At
 * the end, with nothing left to send and nothing on the wire, both nodes must
 * hold the same. README.md maps the steps to statements.
 *
 * Switches that break it, to see that the model can fail:
 *   -DNO_MARK     fold create and delete although the create was presented
 *   -DSTALE_MARK  a lease leaves what the one before had presented for the next
 *   -DNO_TOMB     the peer forgets what was deleted
 *   -DSEND_LAST   of a presented create and a delete, send the delete alone
 *   -DSEND_EARLY  what was read ahead leaves before what precedes it is answered
 */
#define WORKERS 2
#define LEASES 3
#define SLOTS 2

/* Rows of the outbox, by id; drawn in commit order. */
#define CREATE 1
#define UPDATE 2
#define DELETE 3
#define UNKNOWN 4

mtype = { create, update, erase, accepted, duplicate, unknown };

bool row[4];
byte written;              /* rows that were ever inserted */
bool edited, deleted;      /* what the sender's user did */
bool done_writing;

byte lease_owner;          /* 0: free */
byte lease_token;
byte presented_through;    /* durable before a POST leaves */
byte exact = UNKNOWN;      /* what was really presented, while no lease is held */

/* The peer. */
bool there, tombstone;
byte content;              /* 1: as written, 2: as edited */

/* POSTs on the wire, taken in any order; an answer names its POST. */
mtype slot_kind[SLOTS];
byte slot_text[SLOTS], slot_who[SLOTS], slot_nr[SLOTS];
chan answer[3] = [2] of { mtype, byte };

inline post(a_kind, a_text, a_who, a_nr)
{
	atomic {
		if
		:: slot_kind[0] == 0 -> at = 0
		:: slot_kind[0] != 0 && slot_kind[1] == 0 -> at = 1
		fi;
		slot_kind[at] = a_kind;
		slot_text[at] = a_text;
		slot_who[at] = a_who;
		slot_nr[at] = a_nr
	}
}

inline take(place)
{
	kind = slot_kind[place];
	text = slot_text[place];
	who = slot_who[place];
	nr = slot_nr[place];
	slot_kind[place] = 0
}

proctype user()
{
	atomic { row[CREATE] = true; written = CREATE }
	if
	:: atomic { row[UPDATE] = true; written = UPDATE; edited = true }
	:: skip
	fi
	if
	:: atomic { row[DELETE] = true; written = DELETE; deleted = true }
	:: skip
	fi
	done_writing = true
}

/* One batch of a peer at a time; stale edits ignored; tombstones. */
proctype peer()
{
	mtype kind, said;
	byte text, who, nr;

end:	do
	:: atomic {
		if
		:: slot_kind[0] != 0 -> take(0)
		:: slot_kind[1] != 0 -> take(1)
		fi;
		if
		:: kind == create && (there || tombstone) -> said = duplicate
		:: kind == create && !there && !tombstone ->
			there = true; content = text; said = accepted
		:: kind == update && there ->
			if
			:: text > content -> content = text
			:: else
			fi;
			said = accepted
		:: kind == update && !there -> said = unknown
		:: kind == erase && there ->
			there = false;
#ifndef NO_TOMB
			tombstone = true;
#endif
			said = accepted
		:: kind == erase && !there ->
			said = (tombstone -> accepted : unknown)
		fi;
		if
		:: nfull(answer[who]) -> answer[who] ! said, nr
		:: true /* the answer is lost */
		fi
		}
	:: atomic {
		/* Lost on the way; a sender that lives will try again. */
		if
		:: slot_kind[0] != 0 -> slot_kind[0] = 0
		:: slot_kind[1] != 0 -> slot_kind[1] = 0
		fi
		}
	od
}

/* What was accepted leaves; under the lease, with the reading that follows. */
inline acknowledge_owed()
{
	row[CREATE] = row[CREATE] && !owed[CREATE];
	row[UPDATE] = row[UPDATE] && !owed[UPDATE];
	row[DELETE] = row[DELETE] && !owed[DELETE];
	owed[CREATE] = false; owed[UPDATE] = false; owed[DELETE] = false
}

/* Up to what leaves, or a little further: who comes next need not wait. */
inline mark(highest)
{
	shown = (shown < highest -> highest : shown);
	if
	:: presented_through < highest ->
		if
		:: presented_through = highest
		:: presented_through = DELETE
		fi
	:: else
	fi
}

inline forget_ahead()
{
	ahead_u = false; ahead_d = false
}

proctype worker(byte me)
{
	byte mine, text, high, at, nr, got;
	byte shown; /* presented by this lease and those before */
	bool c, u, d, folded, ahead_u, ahead_d;
	bool owed[4]; /* accepted, not yet acknowledged */
	mtype kind, said;

claim:	atomic {
		/* A lease is free, or ends: its owner may still believe in it.
		 * Workers are alike: the first one goes first. */
		lease_owner != me && lease_token < LEASES &&
		    (lease_token > 0 || me == 1) ->
		lease_owner = me;
		lease_token++;
		mine = lease_token;
		/* A crash of the database forgets what is exact. */
		if
		:: exact != UNKNOWN -> shown = exact
		:: shown = presented_through
		fi;
#ifndef STALE_MARK
		exact = UNKNOWN
#endif
	}
fetch:	atomic {
		if
		:: lease_token != mine -> goto lost
		:: else
		fi;
		acknowledge_owed();
		c = row[CREATE]; u = row[UPDATE]; d = row[DELETE];
		kind = 0; said = 0; got = 0; high = 0; folded = false
	}
	if
	:: !c && !u && !d -> goto rest
	:: !c && !u && !d && !done_writing -> goto fetch /* kept warm */
	:: else
	fi;
	if
#ifdef NO_MARK
	:: c && d ->
#else
	:: c && d && shown < CREATE ->
#endif
		/* Never seen by the peer: both go, nothing is sent. */
		atomic {
			if
			:: lease_token == mine ->
				row[CREATE] = false; row[UPDATE] = false;
				row[DELETE] = false
			:: else
			fi
		}
		goto rest
#ifdef SEND_LAST
	:: c && d && shown >= CREATE -> kind = erase; text = 0
#else
	:: c && d && shown >= CREATE ->
		/* In order: the create first, the delete when it is settled. */
		kind = create; text = (u -> 2 : 1); d = false; folded = u
#endif
	:: c && !d -> kind = create; text = (u -> 2 : 1); folded = u
	:: !c && d -> kind = erase; text = 0
	:: !c && !d && u -> kind = update; text = 2
	fi;

present: atomic {
		if
		:: lease_token == mine ->
			high = (d -> DELETE : (u -> UPDATE : CREATE));
			mark(high)
		:: else -> goto lost
		fi
	}

send:	nr = (nr + 1) % 4;
	post(kind, text, me, nr);

	/* While it is out, and nothing was folded or left behind: what is above
	 * is read, marked and made ready. */
	at = 0; text = 0;
	if
	:: skip
	:: !folded && high < written ->
		atomic {
			if
			:: lease_token != mine -> goto lost
			:: else
			fi;
			acknowledge_owed();
			ahead_u = high < UPDATE && row[UPDATE];
			ahead_d = row[DELETE];
			if
			:: ahead_d -> mark(DELETE)
			:: !ahead_d && ahead_u -> mark(UPDATE)
			:: else
			fi
		}
	fi;
#ifdef SEND_EARLY
	if
	:: ahead_u || ahead_d ->
		owed[(kind == create -> CREATE : UPDATE)] = true;
		goto next
	:: else
	fi;
#endif
	if
	:: atomic {
		/* Answers to POSTs that were given up go nowhere. */
		do
		:: answer[me] ? said, got ->
			if
			:: got == nr -> break
			:: else
			fi
		od
		}
	:: true -> goto lost /* no answer in time: outcome unknown */
	fi;

	if
	:: said == accepted ->
		atomic {
			owed[CREATE] = owed[CREATE] || kind == create;
			owed[UPDATE] = owed[UPDATE] || u;
			owed[DELETE] = owed[DELETE] || kind == erase;
#ifdef SEND_LAST
			owed[CREATE] = owed[CREATE] || c;
#endif
		}
		if
		:: ahead_u || ahead_d -> goto next
		:: else -> goto fetch
		fi
	:: else
	fi;

	/* Anything else: what was read is dropped, and the answer booked. */
acknowledge: atomic {
		forget_ahead();
		if
		:: lease_token == mine ->
			acknowledge_owed();
			if
			:: kind == create && folded ->
				/* It was there: the change goes by itself. */
				row[CREATE] = false
			:: kind == create && !folded -> row[CREATE] = false
			:: kind == update -> skip /* unknown */
			:: kind == erase ->
				/* unknown is success */
				row[UPDATE] = row[UPDATE] && !u;
				row[DELETE] = false;
#ifdef SEND_LAST
				row[CREATE] = row[CREATE] && !c
#endif
			fi
		:: else -> goto lost
		fi
	}
	goto fetch;

	/* What was read ahead leaves, for all before it was accepted. */
next:	atomic {
		c = false; u = ahead_u; d = ahead_d; folded = u && d;
		kind = (d -> erase : update);
		text = (d -> 0 : 2);
		high = (d -> DELETE : UPDATE);
		said = 0; got = 0;
		forget_ahead()
	}
	goto send;

rest:	atomic {
		if
		:: lease_token == mine && lease_owner == me ->
			lease_owner = 0; exact = shown
		:: else
		fi
	}
lost:	atomic {
		/* Nothing of the old lease is used any more. */
		c = false; u = false; d = false; folded = false;
		owed[CREATE] = false; owed[UPDATE] = false; owed[DELETE] = false;
		forget_ahead();
		kind = 0; said = 0; text = 0; high = 0; at = 0; mine = 0; got = 0; shown = 0
	}
	if
	:: row[CREATE] || row[UPDATE] || row[DELETE] || !done_writing ->
		goto claim
	:: else
	fi
}

/* Nothing to send, nothing on the wire: both hold the same. */
active proctype same_at_the_end()
{
	(done_writing && !row[CREATE] && !row[UPDATE] && !row[DELETE] &&
	    slot_kind[0] == 0 && slot_kind[1] == 0);
#ifdef REACH
	assert(false);
#endif
	if
	:: deleted -> assert(!there)
	:: !deleted && edited -> assert(there && content == 2)
	:: !deleted && !edited -> assert(there && content == 1)
	fi
}

init {
	byte i;

	atomic {
		run user();
		run peer();
		i = 1;
		do
		:: i <= WORKERS -> run worker(i); i++
		:: else -> break
		od
	}
}
