// Package recipes defines the classic Apache ZooKeeper recipes as interfaces. Their comments
// are the contract: what each recipe guarantees, and what it cannot guarantee. The package
// imports no other package of this module, so a program that uses the plugin contains no
// ZooKeeper client. It implements only recipes that consist of others: [AcquireAll], [OncePer],
// [Shares] and [WithHold].
//
// Two packages implement the interfaces:
//
//   - recipes/zookeeper connects to ZooKeeper from this process.
//   - host launches the plugin process and calls it by gRPC.
//
// To move from one to the other, change the line that opens the session. The test suite
// recipes/recipestest runs against both.
//
// # Order of use
//
//  1. Open a session with a [SessionConfig]: call zookeeper.Open, or Open of a launched
//     plugin. Both return a [Client], which is the [Session] and its [Recipes].
//  2. Get a recipe by its path: Client.Lock, Client.Queue, and so on.
//  3. Wait: Lock.Acquire, Election.Campaign. Release the grant that they return ([Hold],
//     [Leadership]) when you no longer need it.
//  4. While you hold it, watch Done. Protect your writes: either pass the [Token] to the
//     store that you write to, or let ZooKeeper check the grant with Write.
//  5. Close the session.
//
// # What a lock is worth
//
// A distributed lock is advisory. If the holder is paused (garbage collection, a suspended
// machine, SIGSTOP) or cut off, its session expires and ZooKeeper grants the lock to another
// client. Until the former holder notices that, both act as holders. No library can run code
// in a process that does not run. These are the guarantees:
//
//   - A session has a local deadline. While it holds something, the deadline counts from the
//     last request or ping that the leader of the ensemble is known to have received, at the
//     time when it was sent. The session is lost when the negotiated timeout less a twentieth
//     has passed since then. The leader cannot have expired it by then. So a running process
//     sees Done close before another contender is granted.
//   - No recipe grants anything unless the leader is proved to keep the session for another
//     quarter of its timeout. So a lagging server cannot grant what another contender holds.
//   - Both assume that clocks run at the same rate. The time for which a machine was suspended
//     counts, although Go's monotonic clock stops.
//   - Both assume that a replaced leader stops answering within a third of the session
//     timeout.
//   - Tokens grow: each grant of a path has a larger [Token] than the grants before it. If a
//     path has one holder at a time, a store that refuses smaller tokens than the largest it
//     has seen is safe from a late holder. [Semaphore] and [SharedLock] say what to do when
//     several tokens are valid together.
//   - ZooKeeper refuses Write once the grant is lost, whatever the clocks say.
//   - On ClickHouse Keeper ([ServerKeeper]), only the last two are known to hold: use them there.
//
// # Waiting and cancelling
//
// Every method that can wait takes a context as its first argument. When the context ends,
// the call returns an error that matches context.Canceled or context.DeadlineExceeded, and
// the contender leaves the wait queue. If the connection is down then, the library does not
// know whether the contender's znode exists. It retries in the background until the znode is
// deleted or the session has ended. Closing the session deletes all its ephemeral znodes.
//
// Do not modify a slice that a channel delivers, nor its bytes: the library compares it with what
// follows, and may deliver a part of it again.
//
// # Errors
//
// There is one exported error for each decision that a caller can make. Test for it with
// errors.Is. The errors are the same in process and through the plugin. Their texts are for
// people and can change.
package recipes
