/*
 * The model of chain.go, for the model checker spin: the members of one directory, what
 * their clients conclude from numbers, guards and lists, and all that may go wrong. Its
 * members are exclusive, as of a mutex. Words are those of chain.go: unknown, linked,
 * first, over, left; made, listed, follow, leave, break, forget, aheadGone; guard, tail,
 * front. scripts/model.sh runs it.
 *
 * Clients talk to the server by two queues each, as on a connection: requests are
 * applied in their order, and answers and events are read in the order in which the
 * server sent them. A list is of one moment. A follower answers with what was true a
 * little earlier; that shows more nodes ahead, never fewer, so a wait is only longer.
 *
 * What is checked: a member is held only while no other member is (held); when it is
 * held, no node of a contender with a lower number stands that might be held (order);
 * and no member waits for ever (spin finds ends that are none). A member whose node an
 * operator has deleted is told after the fact, and is left out of the first two.
 *
 * A hold's token is the transaction that made its member's node, so no two have the same,
 * and the order of grants is that of tokens.
 *
 * BUG selects a planted bug; each must make the check fail. `make model` sees to that.
 */
#ifndef BUG
#define BUG 0
#endif
#define GRANT_BEHIND_WAITING 1	/* a follower is first when its front, not first, leaves */
#define ANY_NUMBER           2	/* a link although another client made a node in between */
#define NO_GUARD             3	/* a link although the directory may be another one */
#define GRANT_WITHOUT_LEASE  4	/* a grant after the end of the lease */
#define FORGET_FOLLOWERS     5	/* a follower is not told when its front gives up */
#define WINDOW_LOSES         6	/* room is given to an acquire that has gone */
#define GUARD_SURVIVES_CUT   7	/* a guard counts on another connection */
#define TWO_FOLLOWERS        8	/* two members directly behind one front */
#define SUCCEED_BLINDLY      9	/* the event of one node is a grant, though more were ahead */
#define OWN_NODE_FORGOTTEN   10	/* that event is a grant, though its own node is known to be gone */

#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef ACQUIRES0
#define ACQUIRES0 3		/* goroutines of client 0, of one acquire each */
#endif
#ifndef ACQUIRES1
#define ACQUIRES1 1
#endif
#define ACQUIRES (ACQUIRES0 + ACQUIRES1)
#ifndef ROOM
#define ROOM 2			/* nodes that one client may have, by the window */
#endif
#ifndef EVICTIONS
#define EVICTIONS 1		/* nodes that an operator deletes */
#endif
#ifndef ANEW
#define ANEW 1			/* times that the directory is deleted and made again */
#endif
#ifndef CUTS
#define CUTS 1			/* connections that are lost */
#endif
#ifndef QUITTERS
#define QUITTERS 1		/* acquires whose context ends */
#endif
#ifndef FORGETS
#define FORGETS 1		/* members that list although they need not */
#endif
#ifndef EXPIRIES
#define EXPIRIES 1		/* sessions that end */
#endif

#if ACQUIRES0 + ACQUIRES1 > 3
#define EMPTY (!stands[0] && !stands[1] && !stands[2] && !stands[3])
#else
#define EMPTY (!stands[0] && !stands[1] && !stands[2])
#endif

#define NONE 255
#define clientOf(m) ((m) < ACQUIRES0 -> 0 : 1)

mtype = { create, list, watch, delete, arm };			/* requests */
mtype = { created, listed, changed, lost, deleted, armed, gone };	/* answers and events */
mtype = { unborn, unknown, linked, first, over, left };		/* states of a member */

chan out[CLIENTS] = [6] of { mtype, byte, byte };	/* request, member, node asked about */
chan in[CLIENTS]  = [8] of { mtype, byte, byte, byte };	/* answer, member, node or NONE, nodes ahead */

/* The server. A member has one node, so both have one index. */
byte life;			/* of the directory: how often it was made anew */
byte next;			/* number of the next node */
byte number[ACQUIRES];
byte lifeOf[ACQUIRES];
bool stands[ACQUIRES];
bool evicted[ACQUIRES];		/* an operator has deleted its node */
byte watches[ACQUIRES];		/* the node ahead that the member watches */
bool ownWatch[ACQUIRES];		/* the member watches its own node */
bool guarded[CLIENTS];		/* the server has a data watch of the client */

/* The clients. */
mtype state[ACQUIRES];
bool broken[ACQUIRES];
bool held[ACQUIRES];
byte front[ACQUIRES];
byte guardOf[ACQUIRES];		/* that stood at its create, 0 if none */
byte guard[CLIENTS];		/* 0 if none stands */
byte guards[CLIENTS];		/* made so far */
bool arming[CLIENTS];		/* a guard is asked for */
byte tail[CLIENTS];
bool over_[CLIENTS];		/* the session, as the client knows */
bool expired[CLIENTS];		/* the session, as the server knows */
byte inside[CLIENTS];		/* members in the window */
mtype want[ACQUIRES];		/* the answer that the member's goroutine waits for */
bool told[ACQUIRES];		/* it is there */
byte answer[ACQUIRES];
byte ahead_[ACQUIRES];		/* nodes ahead in the newest list */
bool knows[ACQUIRES];		/* an event has said that its own node is gone */
bool again[ACQUIRES];		/* its request was lost with the connection */

byte evictions, anew, cuts, quitters, expiries, forgets;

/* ---- the chain ---- */

inline unlink(m) { front[m] = NONE }

inline link(m, f) {
	if
	:: broken[f] || state[f] == left -> skip
	:: else ->
		if
		:: state[f] == over -> state[m] = first
		:: else -> state[m] = linked; front[m] = f
		fi
	fi
}

/* follow links m behind f, the nearest in a list, if all that the list has shown ahead
   are members up to one that is first or over. */
inline follow(m, f) {
	head = f; depth = 1;
	do
	:: state[head] == linked -> head = front[head]; depth++
	:: else -> break
	od;
	if
	:: state[m] == unknown && depth == ahead_[m] && (state[head] == first || state[head] == over) -> link(m, f)
	:: else -> skip
	fi;
	head = 0; depth = 0
}

/* made is called with the answer of the create, by the reader. */
inline made(c, m) {
	before = tail[c]; tail[c] = NONE;
	state[m] = unknown;
	if
	:: guard[c] != 0 || BUG == NO_GUARD ->
		guardOf[m] = guard[c]; tail[c] = m;
		if
		:: before != NONE && guardOf[before] == guardOf[m] && (number[before] + 1 == number[m] || BUG == ANY_NUMBER || BUG == TWO_FOLLOWERS) ->
			link(m, before);
			if
			:: BUG == TWO_FOLLOWERS -> tail[c] = before
			:: else -> skip
			fi
		:: else -> skip
		fi
	:: else -> skip
	fi
}

/* leave comes before the delete of m's node is sent. */
inline leave(m) {
	was = state[m]; ahead = front[m];
	unlink(m);
	if
	:: was == first -> state[m] = over
	:: else -> state[m] = left
	fi;
	f = 0;
	do
	:: f < ACQUIRES ->
		if
		:: front[f] == m && BUG != FORGET_FOLLOWERS ->
			front[f] = NONE; state[f] = unknown;
			if
			:: broken[m] -> skip
			:: was == first || BUG == GRANT_BEHIND_WAITING -> state[f] = first
			:: was == linked && !(was == first || BUG == GRANT_BEHIND_WAITING) -> state[f] = linked; front[f] = ahead
			:: else -> skip
			fi
		:: else -> skip
		fi;
		f++
	:: else -> break
	od;
	was = 0; f = 0; ahead = 0
}

/* breakOff: nothing may be concluded from the end of m. */
inline breakOff(m) {
	broken[m] = true;
	f = 0;
	do
	:: f < ACQUIRES ->
		if
		:: front[f] == m -> front[f] = NONE; state[f] = unknown
		:: else -> skip
		fi;
		f++
	:: else -> break
	od;
	f = 0
}

/* ---- the server ---- */

/* vanish takes the node of m away, and sends the events. */
inline vanish(m) {
	stands[m] = false;
	if
	:: ownWatch[m] -> ownWatch[m] = false; in[clientOf(m)]!lost(m, NONE, 0)
	:: else -> skip
	fi;
	w = 0;
	do
	:: w < ACQUIRES ->
		if
		:: watches[w] == m -> watches[w] = NONE; in[clientOf(w)]!changed(w, NONE, 0)
		:: else -> skip
		fi;
		w++
	:: else -> break
	od;
	w = 0
}

/* nearest is the node with the highest number below m's, in x; count is how many are. */
inline nearest(m) {
	x = NONE; w = 0; count = 0;
	do
	:: w < ACQUIRES ->
		if
		:: stands[w] && lifeOf[w] == life && number[w] < number[m] ->
			count++;
			if
			:: x == NONE -> x = w
			:: x != NONE && number[x] < number[w] -> x = w
			:: else -> skip
			fi
		:: else -> skip
		fi;
		w++
	:: else -> break
	od;
	w = 0
}

active proctype server() {
	byte c, m, n, x, w, count;
	mtype r;
end:
	do
	:: atomic { nempty(out[0]) -> c = 0; goto serve }
	:: atomic { nempty(out[1]) -> c = 1;
serve:
		out[c]?r(m, n);
		if
		:: expired[c] -> skip	/* the connection is closed; nobody waits */
		:: else ->
			if
			:: r == create ->
				if
				:: !stands[m] && !evicted[m] -> number[m] = next; next++; lifeOf[m] = life; stands[m] = true
				:: else -> skip	/* it was made before the answer was lost */
				fi;
				in[c]!created(m, NONE, 0)
			:: r == list ->
				if
				:: stands[m] -> nearest(m); in[c]!listed(m, x, count)
				:: else -> in[c]!listed(m, m, 0)	/* itself stands for: gone */
				fi
			:: r == watch ->	/* the first contender ahead; its own node too, unless that was seen a moment ago */
				if
				:: stands[m] -> ownWatch[m] = true
				:: !stands[m] -> in[c]!lost(m, NONE, 0)
				:: skip
				fi;
				if
				:: stands[n] -> watches[m] = n
				:: else -> in[c]!changed(m, NONE, 0)
				fi
			:: r == delete ->
				if
				:: stands[m] -> vanish(m)
				:: else -> skip
				fi;
				in[c]!deleted(m, NONE, 0)
			:: r == arm -> guarded[c] = true; in[c]!armed(0, NONE, 0)
			fi
		fi;
		c = 0; m = 0; n = 0; x = 0; r = 0; count = 0 }
	od
}

/* ---- what goes wrong ---- */

active proctype trouble() {
	byte c, m, w, x;
end:
	do
	/* An operator deletes a node. */
	:: atomic { evictions < EVICTIONS -> evictions++;
		if
		:: stands[0] -> m = 0
		:: stands[1] -> m = 1
		:: stands[2] -> m = 2
#if ACQUIRES0 + ACQUIRES1 > 3
		:: stands[3] -> m = 3
#endif
		:: else -> m = NONE
		fi;
		if
		:: m != NONE -> evicted[m] = true; vanish(m)
		:: else -> skip
		fi;
		m = 0 }
	/* The directory is deleted while it is empty, and made again. */
	:: atomic { anew < ANEW && EMPTY -> anew++; life++; next = 0;
		c = 0;
		do
		:: c < CLIENTS ->
			if
			:: guarded[c] -> guarded[c] = false; in[c]!gone(0, NONE, 0)
			:: else -> skip
			fi;
			c++
		:: else -> break
		od;
		c = 0 }
	/* A connection is lost: with its requests, answers and events, and its watches. */
	:: atomic { cuts < CUTS -> cuts++;
		if
		:: c = 0
		:: c = 1
		fi;
		do
		:: nempty(out[c]) -> out[c]?_(_, _)
		:: empty(out[c]) -> break
		od;
		do
		:: nempty(in[c]) -> in[c]?_(_, _, _)
		:: empty(in[c]) -> break
		od;
		guarded[c] = false; arming[c] = false;
		if
		:: BUG != GUARD_SURVIVES_CUT -> guard[c] = 0; tail[c] = NONE
		:: else -> skip
		fi;
		m = 0;
		do
		:: m < ACQUIRES ->
			if
			:: clientOf(m) == c -> again[m] = true; watches[m] = NONE; ownWatch[m] = false
			:: else -> skip
			fi;
			m++
		:: else -> break
		od;
		m = 0; c = 0 }
	/* The session of client 0 ends: its holds first, then on the server. */
	:: atomic { expiries < EXPIRIES -> expiries++;
		over_[0] = true;
		m = 0;
		do
		:: m < ACQUIRES ->
			if
			:: clientOf(m) == 0 && held[m] && BUG != GRANT_WITHOUT_LEASE -> held[m] = false
			:: else -> skip
			fi;
			m++
		:: else -> break
		od;
		m = 0 }
	:: atomic { over_[0] && !expired[0] -> expired[0] = true;
		m = 0;
		do
		:: m < ACQUIRES ->
			ownWatch[m] = ownWatch[m] && clientOf(m) != 0;
			if
			:: clientOf(m) == 0 -> watches[m] = NONE
			:: else -> skip
			fi;
			m++
		:: else -> break
		od;
		do
		:: nempty(out[0]) -> out[0]?_(_, _)
		:: empty(out[0]) -> break
		od;
		m = 0;
		do
		:: m < ACQUIRES ->
			if
			:: clientOf(m) == 0 && stands[m] -> vanish(m)
			:: else -> skip
			fi;
			m++
		:: else -> break
		od;
		m = 0 }
	od
}

/* ---- the reader of a connection ---- */

proctype reader(byte c) {
	byte m, n, before, count;
	mtype r;
end:
	do
	:: atomic { in[c]?r(m, n, count);
		if
		:: r == created ->
			if
			:: state[m] == unborn -> made(c, m)
			:: else -> skip
			fi;
			if
			:: want[m] == created -> told[m] = true; answer[m] = NONE
			:: else -> skip
			fi
		:: r == listed || r == changed || r == deleted ->
			if
			:: want[m] == r -> told[m] = true; answer[m] = n; ahead_[m] = (r == listed -> count : ahead_[m])
			:: else -> skip
			fi
		:: r == lost -> knows[m] = true
		:: r == armed -> arming[c] = false; guards[c]++; guard[c] = guards[c]
		:: r == gone ->
			if
			:: BUG != NO_GUARD -> guard[c] = 0
			:: else -> skip
			fi
		fi;
		m = 0; n = 0; before = 0; r = 0; count = 0 }
	od
}

/* ask sends a request of the member, and says which answer it waits for. */
inline ask(request, n, reply) { want[m] = reply; told[m] = false; again[m] = false; out[c]!request(m, n) }

/* ---- an acquire, and the release of what it gets ---- */

#define dead (over_[c] && BUG != GRANT_WITHOUT_LEASE || expired[c])

/* believe is the instant of the grant. */
inline believe(m) {
	assert(!knows[m]);
	x = 0;
	do
	:: x < ACQUIRES ->
		assert(x == m || !held[x] || evicted[x] || evicted[m]);
		assert(x == m || !stands[x] || evicted[m] || lifeOf[x] != lifeOf[m] || number[x] > number[m] || (clientOf(x) == c && (state[x] == over || state[x] == left)));
		x++
	:: else -> break
	od;
	x = 0;
	held[m] = true
}

proctype acquire(byte m) {
	byte c, x, f, ahead, head, depth;
	mtype was;
	c = clientOf(m);
	/* the window */
	atomic {
		if
		:: inside[c] < ROOM || dead -> inside[c]++
		:: quitters < QUITTERS -> quitters++;	/* its context ends while it waits for room */
			if
			:: BUG == WINDOW_LOSES -> inside[c]++
			:: else -> skip
			fi;
			goto done
		fi
	}
	/* a guard before the create, if none stands */
send:
	atomic {
		if
		:: guard[c] == 0 && !arming[c] -> arming[c] = true; out[c]!arm(0, NONE)
		:: else -> skip
		fi;
		ask(create, NONE, created)
	}
	if
	:: atomic { told[m] -> told[m] = false }
	:: atomic { again[m] && !told[m] && !dead -> goto send }
	:: dead -> goto gone_
	fi;
	/* The create whose answer came on another connection has no link. */
turn:
	if
	:: dead -> goto gone_
	:: atomic { state[m] == first && !dead && (!knows[m] || BUG == OWN_NODE_FORGOTTEN) -> believe(m) } goto hold
	:: atomic { state[m] == linked && quitters < QUITTERS -> quitters++ } goto give
	:: atomic { forgets < FORGETS && (state[m] == linked || state[m] == first) -> forgets++; state[m] = unknown; front[m] = NONE }
	:: atomic { state[m] == first && knows[m] -> state[m] = unknown }
	:: atomic { state[m] == unknown -> ask(list, NONE, listed) }
look:
		if
		:: atomic { told[m] -> told[m] = false; x = answer[m] }
			if
			:: atomic { x == m -> x = 0 } goto give		/* its node is gone */
			:: atomic { x == NONE -> x = 0;
				if
				:: state[m] == unknown || state[m] == linked -> front[m] = NONE; state[m] = first
				:: else -> skip
				fi }
			:: else ->
				/* follow */
				atomic {
					if
					:: state[m] == unknown && clientOf(x) == c && state[x] != unborn -> follow(m, x)
					:: else -> skip
					fi;
				}
				if
				:: atomic { state[m] != unknown -> x = 0 }
				:: atomic { state[m] == unknown -> ask(watch, x, changed); x = 0 }
					if
					:: atomic { told[m] -> told[m] = false;
						if	/* aheadGone: it was the only one ahead, and its own node is not known to be gone */
						:: (ahead_[m] == 1 || BUG == SUCCEED_BLINDLY) && !again[m] && (!knows[m] || BUG == OWN_NODE_FORGOTTEN) -> state[m] = first
						:: else -> skip
						fi }
					:: atomic { again[m] && !told[m] && !dead -> again[m] = false }
					:: atomic { quitters < QUITTERS -> quitters++ } goto give
					:: dead -> goto gone_
					fi
				fi
			fi
		:: atomic { again[m] && !told[m] && !dead -> ask(list, NONE, listed) } goto look
		:: dead -> goto gone_
		fi
	fi;
	goto turn;
hold:
	if
	:: atomic { dead -> held[m] = false; breakOff(m) } goto gone_
	:: atomic { !dead && held[m] && evicted[m] -> held[m] = false; breakOff(m) }	/* told by its own watch */
	:: atomic { !dead -> held[m] = false; leave(m) }
	fi;
give:
	atomic {
		if
		:: state[m] == over || state[m] == left -> skip
		:: else -> leave(m)
		fi;
		told[m] = false; again[m] = false
	}
away:
	atomic { ask(delete, NONE, deleted) }
	if
	:: atomic { told[m] -> told[m] = false }
	:: atomic { again[m] && !told[m] && !dead -> again[m] = false } goto away
	:: dead -> goto gone_
	fi;
gone_:
	atomic {
		held[m] = false;
		if
		:: state[m] == over || state[m] == left -> skip
		:: else -> leave(m)
		fi;
		inside[c]--
	}
done:
	skip
}

init {
	byte i;
	atomic {
		i = 0;
		do
		:: i < ACQUIRES ->
			state[i] = unborn; front[i] = NONE; watches[i] = NONE;
			i++
		:: else -> break
		od;
		tail[0] = NONE; tail[1] = NONE;
		run reader(0); run reader(1);
		i = 0;
		do
		:: i < ACQUIRES -> run acquire(i); i++
		:: else -> break
		od;
		i = 0
	}
}
