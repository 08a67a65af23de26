// Package recipes is the contract of zkrecipes: the classic Apache ZooKeeper
// recipes as interfaces, with what each of them promises and what it cannot
// promise. It contains no implementation and imports nothing of the project. So an
// application that talks to a plugin process does not carry a ZooKeeper client.
//
// Two implementations exist and satisfy the same interfaces:
//
//   - recipes/zookeeper talks to ZooKeeper from this process;
//   - host launches the plugin process and talks to it over gRPC.
//
// An application moves from one to the other by changing the line that opens
// the session. One suite of contract tests, recipes/recipestest, runs against
// both.
//
// # Order of use
//
//  1. Open a session with a [SessionConfig] (zookeeper.Open, or Open of a launched
//     plugin). What you get is a [Client]: the [Session] and its [Recipes].
//  2. Take a recipe by its path: Client.Lock, Client.Queue, and so on.
//  3. Wait: Lock.Acquire, Election.Campaign. What they return ([Hold],
//     [Leadership]) is also how you give it back.
//  4. While you hold it, watch Done. Protect what you write: either pass the
//     [Token] to the store that you write to, or have ZooKeeper check it with Write.
//  5. Close the session.
//
// # What a lock here is worth
//
// A distributed lock is advisory. Between the moment when ZooKeeper gives a lock
// away and the moment when its former holder notices, both may believe that they
// hold it. The holder was paused (garbage collection, a suspended machine, SIGSTOP)
// or cut off, and its session expired. No library can run code in a process that
// does not run. What is promised is this:
//
//   - A session has its own clock. While it holds something, the clock counts from
//     the sending of the last request or ping of which the leader of the ensemble is
//     known to have heard. When the negotiated timeout less a twentieth has passed
//     since then, the session declares itself lost. By then the leader cannot have
//     given its locks to another contender. So a process that runs sees Done close
//     before another contender is granted.
//   - Nothing is granted, in any recipe, unless the leader is proved to keep the
//     session for another quarter of its timeout. So a server that lags cannot grant what
//     the leader has given to another contender.
//   - Assumption for both: clocks run at the same rate and do not stop. (The
//     monotonic clock of a suspended machine stops.)
//   - Assumption for both: a leader that was replaced stops answering within a third
//     of the session timeout.
//   - Tokens grow: of two grants of one path, the later has the larger [Token]. A
//     store that refuses tokens smaller than the largest it has seen cannot be
//     harmed by a late holder.
//   - ZooKeeper itself refuses Write when the hold no longer stands, whatever the
//     clocks say.
//
// # Waiting and cancelling
//
// Every method that can wait takes a context first. When the context ends, the call
// returns the context's error (errors.Is(err, context.Canceled) or
// context.DeadlineExceeded holds) and the contender leaves the line. If the
// connection is down at that moment, the library cannot yet know whether the
// contender's znode exists. It goes on in the background until the znode is known to
// be gone, or the session is over. Closing the session deletes all its ephemeral
// znodes.
//
// # Errors
//
// Each decision that a caller can make has one exported sentinel. Test for it with
// errors.Is. The same answers come in process and through the plugin. The texts of
// errors are for people and are not part of the interface.
package recipes
