// Package queue has the queue and the priority queue.
//
// They follow ZooKeeper Recipes, "Queues" and "Priority Queues": elements are named
// queue-<sequence> and queue-YY-<sequence>, as written there. A listing is used until
// it is exhausted or, with priorities, until another child is created. Where the text is silent
// or loses elements, this package differs:
//
//   - Elements are persistent. The text's ephemeral ones are deleted with their producer's
//     session (QueueConfig.Ephemeral). The queue's own znode is persistent too. A
//     container would be deleted when the queue is empty, and sequence numbers would start
//     again.
//   - Put, Take, Receive and Ack are one transaction each, with a receipt
//     (session.Session.CommitWithReceipt). So after a lost reply nothing is put twice, and
//     the session that has taken an element is known. Below receipts, a session keeps one
//     receipt for each transaction that it has under way at a time.
//   - The plugin takes with a note: the receipt of the deletion contains the elements until they
//     have reached the host. So the plugin that resumes the session can pass them on.
//   - A claim is claims/<element>-<attempt>, an ephemeral znode. The transaction that
//     creates it also sets the element's data, unchanged, so that the element's version
//     counts the deliveries. The name of a claim is used once: a deletion that comes
//     late cannot delete another claim. A reader of the element computes the claim's name
//     from the version, and can read whether the claim has ended.
//   - Dead letters are below dead.
//   - A bounded queue has the child bound, whose version changes with every bounded
//     put. So a put that has counted the elements too early is refused.
//
// Costs, once the session's receipt exists: a put of any number of elements costs 1 write
// (bounded: and 2 reads). A Take or a Receive costs 1 write and 1 read, and of several elements 1
// write and 1 read for each, sent together. Each listing costs 1 more read, or 2 if there are
// claims. With priorities, every Take or Receive reads the queue's record, and the claims if they
// have changed; it lists the queue again after a put, or if few elements are left. Ack, AckMany and
// Return cost 1 write. Waiting costs nothing. As in the text, an element wakes every session that
// waits.
package queue
