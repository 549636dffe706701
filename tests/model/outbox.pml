/*
 * outbox -- where a reading begins, and what may still appear behind it.
 *
 * Ids are drawn before commit, so that entries appear out of order. Two
 * conversations, one of them with two messages; an operator who puts back what
 * had died, under its old id; a worker that may stop for good or lose its lease
 * at any step, and one that takes over. A thing of a conversation is never presented
 * before what precedes it there, and nothing is left behind where nobody looks.
 * That a minute's claim relies on no floor is left out: it would hide what is
 * to be found. README.md maps the steps to statements.
 *
 * Switches that break it, to see that the model can fail:
 *   -DNO_LATE       nobody asks what appeared behind the cursor
 *   -DID_FIRST      an id is drawn before the transaction is known
 *   -DFLOOR_AT_ONCE the floor does not wait for those who drew an id
 *   -DLOW_PAST      an entry that is there does not hold the beginning back
 *   -DPUT_BACK_LOST a release overwrites what an operator has moved down
 */
#define LEASES 2

/* Transactions; each writes one entry. */
#define BACK 0	 /* the operator's */
#define FIRST 1	 /* of a conversation */
#define SECOND 2 /* of the same one */
#define OTHER 3	 /* of another */
#define ALL 4

mtype = { running, committed };

mtype state[ALL];
byte xid[ALL], id[ALL];
bool gone[ALL];	     /* accepted and acknowledged */
bool presented[ALL]; /* ever */
byte next_xid = 1;
byte next_id = 2; /* what died was the very first */

bool lease_held;
byte lease_token;
short empty_through;

#define is_there(t) (state[t] == committed && !gone[t])
#define waits_above(t, e) (is_there(t) && id[t] > e)
#define waits(e) (waits_above(BACK, e) || waits_above(FIRST, e) || \
	waits_above(SECOND, e) || waits_above(OTHER, e))

inline begin(t)
{
	xid[t] = next_xid;
	next_xid++;
	state[t] = running
}

inline draw(t)
{
	id[t] = next_id;
	next_id++
}

/* The row of the conversation is locked before the id is drawn, and the lock
 * has given the transaction its number. One that is rolled back never appears,
 * and is left out. */
inline write(t)
{
#ifdef ID_FIRST
	atomic { draw(t) }
	atomic { begin(t) }
#else
	atomic { begin(t); draw(t) }
#endif
	state[t] = committed
}

proctype talk()
{
	write(FIRST);
	write(SECOND)
}

proctype talk_elsewhere()
{
	write(OTHER)
}

proctype operator()
{
	atomic { begin(BACK); id[BACK] = 1 }
	atomic {
		state[BACK] = committed;
		empty_through = (empty_through < 0 -> empty_through : 0) - 1
	}
}

/* What a snapshot says; blind: of one that was taken before BACK was there. */
#define is_running(t) (state[t] == running || (t == BACK && blind))
#define is_seen(t) (state[t] == committed && !(t == BACK && blind))
#define seen_bit(t) (is_seen(t) << t)
#define appeared(t) (is_seen(t) && !gone[t] && id[t] > floor && \
	id[t] <= cursor && !((seen >> t) & 1))

inline oldest_of(t)
{
	oldest = (is_running(t) && xid[t] < oldest -> xid[t] : oldest)
}

inline first_of(t)
{
	if
	:: is_seen(t) && waits_above(t, after) &&
	    (found == ALL || id[t] < id[found]) ->
		found = t
	:: else
	fi
}

/* Who holds the mine-th lease. */
proctype worker(byte mine)
{
	byte cursor, floor, mark, mark_after, seen, oldest, found, after;
	byte owed = ALL;
	short low, was;
	bool busy, late, whole, blind;

	atomic {
		/* A lease is free, or ends: its owner may still believe in it. */
		lease_token == mine - 1 && waits(empty_through) ->
		lease_held = true;
		lease_token = mine;
		was = empty_through;
		low = (empty_through > 0 -> empty_through : 0);
		floor = low;
		whole = true
	}

read:	atomic {
		if
		:: lease_token != mine -> goto lost
		:: else
		fi;
		if
		:: true
		:: cursor = 0; whole = true /* a second has passed */
		fi;
		/* What waited for the peer's row sees that as it is now, and
		 * all else as it was. */
		if
		:: true
		:: was != empty_through -> blind = true
		fi;
		after = (cursor > low -> cursor : low);
		oldest = next_xid;
		oldest_of(BACK); oldest_of(FIRST);
		oldest_of(SECOND); oldest_of(OTHER);
#ifndef NO_LATE
		late = busy && (appeared(BACK) || appeared(FIRST) ||
		    appeared(SECOND) || appeared(OTHER));
#endif
		if
		:: owed < ALL -> gone[owed] = true; owed = ALL
		:: else
		fi;
		found = ALL;
		first_of(BACK); first_of(FIRST);
		first_of(SECOND); first_of(OTHER);

		/* horizon_note */
		if
#ifdef FLOOR_AT_ONCE
		:: true -> floor = (after > floor -> after : floor)
#else
		:: oldest >= mark_after ->
			floor = (mark > floor -> mark : floor);
			mark = after;
			mark_after = next_xid
		:: else
#endif
		fi;
		busy = oldest < next_xid;
		seen = seen_bit(BACK) | seen_bit(FIRST) | seen_bit(SECOND) |
		    seen_bit(OTHER);

		/* low_raise */
		if
		:: !late && after == low ->
			low = (floor > low -> floor : low)
#ifndef LOW_PAST
			;
			low = (found < ALL && id[found] <= low ->
			    id[found] - 1 : low)
#endif
		:: else
		fi;
		/* low_moved */
		if
		:: was != empty_through ->
			was = empty_through;
			low = (empty_through > 0 -> empty_through : 0)
		:: else
		fi;
		oldest = 0; after = 0; blind = false
	}
	if
	:: late -> atomic { cursor = 0; whole = true; late = false }; goto read
	:: !late && found == ALL && !whole ->
		atomic { cursor = 0; whole = true }; goto read
	:: !late && found == ALL && whole -> goto rest
	:: else
	fi;

	/* Presented, and accepted or not. */
	atomic {
		assert(found != SECOND || presented[FIRST]);
		presented[found] = true;
		cursor = id[found];
		whole = false;
		if
		:: owed = found; goto read
		:: goto rest
		fi
	}

rest:	atomic {
		if
		:: lease_token == mine ->
			lease_held = false;
#ifdef PUT_BACK_LOST
			empty_through = low
#else
			empty_through = (empty_through == was -> low : empty_through)
#endif
		:: else
		fi
	}
lost:	atomic {
		/* Nothing of the old lease is used any more. */
		cursor = 0; floor = 0; mark = 0; mark_after = 0; seen = 0;
		owed = 0; low = 0; was = 0; found = 0;
		busy = false; late = false; whole = false
	}
}

/* All have written, nobody holds the lease, and nobody would claim it. */
active proctype nothing_is_left()
{
	(state[BACK] == committed && state[FIRST] == committed &&
	    state[SECOND] == committed && state[OTHER] == committed &&
	    !lease_held && !waits(empty_through));
#ifdef REACH
	assert(false);
#endif
	assert(!is_there(BACK) && !is_there(FIRST) && !is_there(SECOND) &&
	    !is_there(OTHER))
}

init {
	byte i;

	atomic {
		run talk();
		run talk_elsewhere();
		run operator();
		i = 1;
		do
		:: i <= LEASES -> run worker(i); i++
		:: else -> break
		od
	}
}
