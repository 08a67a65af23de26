package recipes

import (
	"context"
	"fmt"
)

// Lock is a mutual exclusion lock: of all contenders for one path, in any
// process, at most one is granted at a time, in the order in which they joined.
// A Lock is a name and a way of waiting; it holds no state, may be used by any
// number of goroutines, and each Acquire is a contender of its own. It is not
// re-entrant: a goroutine that acquires twice waits for itself.
//
// There is no re-entrant form. Go has no identity of a goroutine that a lock
// could count by, and a count kept by the session, as other libraries keep it by
// thread, would let in every goroutine of the process that uses it. An explicit
// owner's token would be honest, and exists: it is the Hold. Code that may run
// with the lock held or without takes a Hold as an argument (or in its context)
// and acquires one only if it is given none; whoever has acquired releases. A
// counter around that would hide who that is, and what is left to do when the
// hold is lost at depth two.
//
// A hold cannot be handed to a contender of choice: whoever is first in line
// when it looks takes itself for granted, so naming another could not hold it
// back. PriorityLock, which is granted by a transaction, has PriorityHold.HandOff.
//
// Source: ZooKeeper Recipes, "Locks", with "Recoverable Errors and the GUID".
// Contenders are ephemeral sequential children of the path named
// _c_<guid>-lock-<sequence>, as Curator's InterProcessMutex and
// go-zookeeper's Lock name theirs, or, by Handoff, lock-<sequence>, so that those
// can stand in the same line (but not across the wrap of the sequence, which they
// do not survive). Children of other names are ignored; one that holds with
// Handoff and writes makes guards-lock-9999999999, a place for what guards its
// writes.
type Lock interface {
	// Path is the path the lock was made with.
	Path() string

	// Acquire joins the line and waits for its turn. Most callers want this.
	//
	// If ctx ends first it returns ctx's error and the contender leaves the
	// line (see the package comment for a connection that is down). If the
	// session is lost it returns an error that matches ErrSessionLost. If
	// somebody deletes the waiting contender's znode the error matches
	// ErrRemoved; a waiter learns of that when it next looks, at the latest
	// when its turn would have come. A lost connection is not an error: the contender keeps its
	// place and looks again when it is back. In every case of an error nothing
	// is held.
	Acquire(ctx context.Context) (Hold, error)

	// TryAcquire is Acquire without waiting for others: if anybody is ahead it
	// leaves the line and returns an error that matches ErrContended. It still
	// has to talk to the server, and waits for that as long as ctx allows.
	TryAcquire(ctx context.Context) (Hold, error)

	// Contenders returns who stands in line, in order; the first one holds the
	// lock, or is about to learn that it does. It is a picture that may be
	// outdated on arrival. An empty line is no error. It costs one read for
	// the line and one for each contender.
	Contenders(ctx context.Context) ([]Contender, error)
}

// LockConfig says how to stand in line. The zero value is good.
type LockConfig struct {
	// Strategy is how to wait; "" is DefaultStrategy.
	Strategy Strategy

	// Data is stored in the contender's znode, for Contenders and for people
	// who look at the znodes: who am I, and why do I want this.
	Data []byte

	// Cohort is how many times a hold may be handed on to another contender of
	// this session at this path before the session has to go to the end of
	// ZooKeeper's line; at most MaxCohort. 0: there is no cohort, and every
	// contender stands in ZooKeeper's line itself.
	//
	// With a cohort the session's contenders for the path, of all its Locks
	// there, queue in this process, in the order in which they came, and stand
	// in ZooKeeper's line once, by one znode, whose data are those of the one
	// who came first. A hold is handed on within the cohort by one write and no
	// read, instead of a deletion, an event and, for each contender, a
	// creation. What it costs is order: contenders of other sessions may wait
	// for Cohort holds that were asked for after theirs, and then one of them
	// is next.
	//
	// All who contend for the path must use cohorts, in every session, or none:
	// a token is then not the czxid of the znode, which several holds share, but
	// the number of the transaction that made the grant. It grows with every
	// grant, but the two kinds of tokens do not compare. The path's data, which
	// the session has to be allowed to write, says that it is used so. If it
	// holds anything else, or if Locks of this session that are in use at the
	// path disagree about Cohort, Acquire fails with ErrMismatch. Contenders of
	// other sessions that use no cohorts do not look, and are not noticed. What
	// Cohort is, each session chooses for itself.
	//
	// What is different for those in a cohort:
	//   - TryAcquire returns ErrContended if anybody else of the cohort holds or
	//     waits; the others wait on.
	//   - Joined gets the place of the cohort's znode; whoever does not stand
	//     there himself has the Position UnknownPosition.
	//   - If somebody deletes the znode while the cohort waits, the first of
	//     those who wait fails with ErrRemoved, and the others join the line
	//     anew. If a hold is lost in that way, all who wait join anew.
	//   - Release returns as soon as the hold is handed on, which asks no
	//     server, so it does not find out that the znode was deleted meanwhile:
	//     the next of the cohort does, and joins anew.
	//   - The Znode is the cohort's, and stays when a hold is handed on. Write
	//     is guarded by the hold itself all the same: the server refuses one
	//     that comes after the next grant.
	//   - If another hand changes the path's data, Write fails, and the hold is
	//     lost.
	//   - Contenders lists one contender for the cohort, with a Token that is
	//     none.
	//
	// Source: Dice, Marathe and Shavit, "Lock Cohorting" (2012), with a bound on
	// the local handovers as there.
	Cohort int

	// Joined, if not nil, is called at most once for each Acquire or TryAcquire,
	// before it returns, when its place in the line is known; where it has to
	// wait, when it has begun to (its watch is set). It is always called before
	// a grant. Acquire waits for it to return: hand long work to another
	// goroutine.
	Joined func(Place)
}

// MaxCohort bounds LockConfig.Cohort.
const MaxCohort = 1_000_000

// Validate reports, as an ErrInvalid, which field cannot be used.
func (c LockConfig) Validate() error {
	if c.Cohort < 0 || c.Cohort > MaxCohort {
		return fmt.Errorf("%w: Cohort is %d; it must be between 0, for none, and %d", ErrInvalid, c.Cohort, MaxCohort)
	}
	return nil
}
