// Package load puts contenders in line and times how a lock or a leadership
// passes from one to the next. It knows only the contract (package recipes), so
// whatever implements a [recipes.Client] can be measured.
//
// A [Load] names the recipe, the path and the sessions. Its workload is the shape:
//
//   - [Drain]: all contenders stand in line, then each one leaves as soon as it
//     is granted. N contenders give N-1 handoffs, and the line gets shorter by
//     one with each.
//   - [Cycle]: a closed loop. Whoever leaves joins again at the end of the line,
//     which therefore stays as long as it is.
//   - [Failover]: all stand in line, the holder's session is killed, and the
//     time until the next one has been granted is taken. What the survivors send
//     in the second after that is counted too.
//   - [Open]: acquisitions arrive on schedule, whether or not those before them
//     have been granted. A closed loop slows down with what it measures and so
//     hides long waits; this one does not.
//   - [Many]: several lines that have nothing to do with each other cycle at
//     the same time.
//   - [Queue], [Barrier], [DoubleBarrier] and [Commit]: rounds of the recipes of
//     those names, all sessions together.
//
// Times that are easily mixed up have names of their own:
//
//   - wait: from asking (Acquire, Campaign) to being granted. It contains the
//     turns of all who were ahead. In an open load it counts from when the
//     schedule wanted to ask.
//   - handoff: from the moment the holder asks to leave (Release, Resign) to the
//     moment the next one, already in line by then, has been granted. It is the
//     time for which nobody holds.
//   - service: from being granted to having left: the time for which one
//     contender occupies the resource, what it does with it included.
//
// # What is counted
//
// The measured part begins and ends with a holder that stands still while all
// others have come to rest: they wait in line, or have left for good. Counters
// are read at those two moments, so what was sent in between belongs to whole
// operations, nothing is missed and nothing is counted in passing.
//
// # What is checked
//
// A broken lock is fast, and must not win. Every grant is checked against mutual
// exclusion and growing tokens. In a failover, the holder that was cut off must know of
// its loss before the next one is granted. What breaks that is a [Violation], and there
// is no measurement then.
package load
