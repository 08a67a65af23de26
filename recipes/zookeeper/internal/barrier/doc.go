// Package barrier has the barrier and the double barrier.
//
// # Barrier
//
// It follows ZooKeeper Recipes, "Barriers", step by step, but reads the znode where
// the text has exists(): a read leaves no watch when there is no barrier. The
// barrier's znode is persistent and is the path itself. The text does not say what
// happens when a connection or a reply is lost:
//
//   - A waiter whose connection was lost looks again.
//   - Set and Remove send a request again only if it is known that the first one was
//     not carried out. The czxid of the barrier and the pzxid of its parent tell.
//     Another client may have removed the barrier in between, or set another.
//
// # Double barrier
//
// It follows ZooKeeper Recipes, "Double Barriers", and diverges in one thing: the
// data of ready names the members that may enter. The text's ready has no data, so it
// lets in every member that comes later. The text's barrier is therefore good for one
// use and a fixed number of members. From this follows the rest:
//
//   - The member that sees enough others writes ready in one transaction with a check
//     of each member that it names. So no member enters with fewer.
//   - If no member that ready names is present, the next generation replaces it. Until
//     then surplus members wait for the lowest of those that it names to go.
//   - Leaving is the text's procedure among the members of one ready. Later changes of
//     ready do not matter.
//   - The last member to leave deletes ready together with its own znode.
//
// Members are sequential. Lowest and highest are thus the oldest and the youngest, and
// each generation consists of the members that have waited longest.
package barrier
