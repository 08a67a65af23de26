// Package twophase has the two-phase commit.
//
// It follows ZooKeeper Recipes, "Two-phased Commit", in three variants
// (recipes.Variant): the text's first form, and its answers to the two drawbacks that
// it names. The transaction's znode holds the payload, and s_i the vote of site i. With
// own-nodes, each site creates its ephemeral s_i itself, together with joined_i, which
// remains. So any session can distinguish a site that has died from one that has not
// joined yet. This package differs from the text in the following:
//
//   - The decision is a znode of its own, created in one transaction with checks of
//     the votes. So there is exactly one, and it is durable before any site acts on it.
//   - Every write includes a check of id-<guid>, which belongs to one Begin. So a
//     late site cannot vote in the next transaction of the path.
//   - coordinator is ephemeral. Waiting sites watch it and the decision. When it is
//     gone, the site that creates it next counts the votes. A site that gives up
//     counting deletes it.
//   - The last site that is done (done_i) deletes everything.
//
// The table shows the costs of a transaction, from Begin until every site has the
// decision, as counted by the server. The schedule is the most expensive one. All sites
// wait before the first vote, and they vote one at a time. If all of them decide, they do
// so at the same time.
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
// For n sites, all-watch costs 2n+2 writes, 2n^2+4n-1 reads and n^2+n events. With a
// coordinator it is n+3 writes, 7n+2 reads and 2n+1 events. Own-nodes adds n writes, for
// joining, and one read. Done costs a site 1 write and 3 reads, and the last site another
// write.
package twophase
