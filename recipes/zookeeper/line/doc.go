// Package line is what locks, shared locks, semaphores and elections have in
// common: contenders that
// stand in line below a path, in the order of the sequence numbers that
// ZooKeeper gave their znodes, each waiting for those ahead that block it.
//
// It owns enrolment, order, the strategies of waiting, the decision that a
// contender is granted, and giving the place up again. Which contenders block
// whom is a small pure function, a [Rule].
//
// # Why it is safe
//
// A contender is granted when a listing of the line, made while its own node
// stood in it, shows nobody ahead that blocks it, and a look at the own node
// after that listing finds it there and owned by this session. Sequence numbers
// of one parent only grow, so whoever was not ahead at the listing never will
// be. The own node is ephemeral: as long as it exists nobody else can be granted,
// and the server keeps it until the session is over; the session declares itself
// lost before that.
//
// A waiter wakes when the znode it watches goes, and whenever the connection is
// lost; then it starts again from the listing. It never concludes anything from
// the event itself, so an event that is late, doubled, or was missed during a
// reconnect does no harm.
//
// With permits, fewer than n blockers stand ahead of whoever is granted, by the
// same argument: a listing that showed fewer can only be followed by fewer.
//
// # Why no wake-up is missed
//
// A waiter watches as many of its blockers as there are permits, one for a lock.
// It may be granted when fewer than that are left, so one of those watched must
// have gone before. One that goes between the listing and the look that arms its
// watch is found missing by that look.
//
// # Divergence from the source text
//
// The text waits with exists(). Here it is getData(): exists() on a node that
// has just gone leaves a watch at the server for a creation that will never
// come.
package line
