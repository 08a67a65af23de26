package interop_test

import (
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
)

// BenchmarkRecipes compares the other recipes, and the locks without contention, like
// BenchmarkPeers:
//
//	put, take      one session puts 1000 elements into a queue, and takes them, one by one
//	acquire one lock without contention, 1 ms away from the server: without its release
//	semaphore      20 contenders for three permits
//	shared 20 contenders for a read-write lock; every tenth turn is a write
//	barrier 20 members enter and leave a double barrier: a cycle is one member's entering and leaving
//	failover       each leader of 20 candidates closes its session as soon as it is elected
//	many           64 locks of one session, acquired and released at once
func BenchmarkRecipes(b *testing.B) {
	measured := samples{}
	for _, servers := range numbers(b, "ZKRECIPES_PEERS_SERVERS", "1,3") {
		addrs := ensembletest.Start(b, ensemble.Config{Servers: servers, HeapMiB: 1024}).Addrs()
		for _, s := range settings {
			b.Run(fmt.Sprintf("servers=%d/%scontenders=%d", servers, s.name, s.contenders), func(b *testing.B) {
				measured.interleave(b, servers, s.contenders, recipeWays(b, addrs, s), s.workloads...)
			})
		}
	}
	fmt.Print(measured.ratios())
}
