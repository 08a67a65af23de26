package zookeeper_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// A contender whose creation was not answered is found again, whatever hinders the
// search, and does not stay behind.
func TestALostContenderIsFound(t *testing.T) {
	for name, hindered := range map[string]struct {
		strategy recipes.Strategy
		cfg      recipes.SessionConfig
		by       func(*scene)
	}{
		"by its own ACL": {
			strategy: recipes.Handoff,
			cfg:      recipes.SessionConfig{ACL: []recipes.ACL{{Permissions: recipes.PermAll &^ recipes.PermRead, Scheme: "world", ID: "anyone"}}},
		},
		"by large data in the line": {
			strategy: recipes.Handoff,
			cfg:      recipes.SessionConfig{MaxPacket: 4 << 10},
			by: func(s *scene) {
				for range 2 {
					if _, err := s.raw.Create(s.path+"/lock-", make([]byte, 64<<10), zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
						s.Fatal(err)
					}
				}
			},
		},
		"by a listing too large": {
			strategy: recipes.Predecessor,
			cfg:      recipes.SessionConfig{MaxPacket: 4 << 10},
			by: func(s *scene) {
				for i := range 100 {
					if _, err := s.raw.Create(fmt.Sprintf("%s/%s-%d", s.path, strings.Repeat("x", 100), i), nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
						s.Fatal(err)
					}
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEmbedded(t, func(s *scene, srv *zkserver.Server) {
				keep := s.session()
				ahead := s.hold(s.joinWith(keep, recipes.Handoff))
				cfg := hindered.cfg
				cfg.Servers = []string{s.addr}
				victim := must[recipes.Session](s.T)(zookeeper.Open(s.ctx, cfg))
				s.Cleanup(func() { victim.Close(context.Background()) })
				lost, hindering := false, sync.OnceFunc(func() {
					if hindered.by != nil {
						hindered.by(s)
					}
				})
				srv.SetFault(func(r zkserver.Request) zkserver.Fault {
					switch {
					case r.SessionID != victim.ID():
					case creates(r.Op) && !lost:
						lost = true
						return zkserver.Fault{DropReply: true}
					case r.Op == zkserver.OpSync: // it begins to look
						hindering()
					}
					return zkserver.Fault{}
				})
				l := must[recipes.Lock](s.T)(victim.Lock(s.path, recipes.LockConfig{Strategy: hindered.strategy}))
				if _, err := l.TryAcquire(s.ctx); err == nil {
					s.Error("granted")
				}
				if !lost {
					s.Fatal("the case was not met")
				}
				s.release(ahead)
				left := func() (name string) {
					for _, n := range srv.Tree() {
						if n.Stat.EphemeralOwner == victim.ID() {
							name = n.Path
						}
					}
					return name
				}
				for left() != "" && s.exists(s.path) { // it may leave in the background
					if s.ctx.Err() != nil {
						s.Fatalf("%s is left", left())
					}
				}
			})
		})
	}
}
