// # Two-phase commit
//
// Follows ZooKeeper Recipes, "Two-phased Commit", in three variants
// (recipes.Variant): the text's first form, and its answers to the two drawbacks
// that it names. The transaction node holds the payload, and s_i what site i
// votes; with own-nodes each site creates its s_i itself, ephemeral, together
// with joined_i, which stays: so whoever looks, whenever he came, can tell a
// site that has died from one that has yet to join. What differs from the text:
//
//   - The decision is a node of its own, created in one transaction with checks
//     of the votes, so that there is exactly one and it is durable before
//     anybody acts on it.
//   - Every write is made together with a check of id-<guid>, which belongs to
//     one beginning, so that a site that comes late cannot vote in the next
//     transaction of the path.
//   - coordinator is ephemeral. Sites that wait watch it and the decision; when
//     it goes, the site that creates it next counts the votes. Whoever gives up
//     counting deletes it.
//   - The last site that is done deletes everything (done_i).
//
// What a transaction costs, from Begin until every site knows the decision,
// counted by the server on the dearest schedule: everybody waits before the
// first vote, one votes at a time, and where all decide they do so at once.
//
//	variant           sites   writes    reads   events
//	all-watch             2        6       15        6
//	all-watch             4       10       47       20
//	all-watch             8       18      159       72
//	all-watch            16       34      575      272
//	coordinator-only      2        5       16        5
//	coordinator-only      4        7       30        9
//	coordinator-only      8       11       58       17
//	coordinator-only     16       19      114       33
//	own-nodes             2        7       17        5
//	own-nodes             4       11       31        9
//	own-nodes             8       19       59       17
//	own-nodes            16       35      115       33
//
// For n sites that is 2n+2 writes, 2n^2+4n-1 reads and n^2+n events where all
// watch; with a coordinator n+3 writes, 7n+2 reads and 2n+1 events, and with own
// nodes n writes, for joining, and one read more. Done costs a site 1 write and
// 3 reads, and the last one a write more.
package twophase
