// Package barrier has the barrier and the double barrier.
//
// # Barrier
//
// It follows ZooKeeper Recipes, "Barriers", step by step, but reads the znode where
// the text has exists(): a read leaves no watch if there is no barrier. The znode of the
// barrier is persistent, and its path is the path of the recipe. The text does not say
// what happens after a lost connection or a lost reply:
//
//   - A waiter whose connection was lost reads again.
//   - Set and Remove send a request again only if the first one is known not to have been
//     committed. That is read from the czxid of the barrier and the pzxid of its parent:
//     another client may have removed the barrier in between, or set another one.
//
// # Double barrier
//
// It follows ZooKeeper Recipes, "Double Barriers", and diverges in one thing: the
// data of ready names the members that may enter. The text's ready has no data, so every
// member that comes later enters too. The text's barrier is therefore good for one use
// and a fixed number of members. The rest follows from this:
//
//   - The member that counts enough members writes ready, in one transaction with a check
//     of each member that it names. So no member enters with fewer.
//   - If no member that ready names is present, the next generation replaces ready. Until
//     then, surplus members wait until the lowest member that it names is gone.
//   - Leaving is the text's procedure among the members of one ready. Later changes of
//     ready do not matter.
//   - The last member to leave deletes ready together with its own znode.
//
// Members are sequential. Lowest and highest are thus the oldest and the youngest, and
// each generation consists of the members that have waited longest.
package barrier
