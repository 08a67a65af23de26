package zookeeper_test

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// counterOperations are the operations of counters and latches.
func counterOperations() []operation {
	number := func(n int64) string { return fmt.Sprint(n) }
	return []operation{
		{"Counter.Get", func(s *stage) doing {
			must.Get(s.counter(s.other).Add(s.ctx, 3))(s.T)
			return asking(s.counter(s.victim).Get, number)
		}},
		{"Counter.Add, the first", func(s *stage) doing {
			return doing{
				act:      func(ctx context.Context) error { _, err := s.counter(s.victim).Add(ctx, 1); return err },
				happened: func() bool { return s.holds(stagePath, "1") },
				once:     true,
			}
		}},
		{"Counter.Add, again", func(s *stage) doing {
			mine, told := s.counter(s.victim), int64(0)
			must.Get(mine.Add(s.ctx, 1))(s.T)
			return doing{
				act:      func(ctx context.Context) (err error) { told, err = mine.Add(ctx, 2); return err },
				happened: func() bool { return s.holds(stagePath, "3") },
				once:     true,
				end: func() error {
					if told != 3 && told != 0 {
						s.Errorf("Add returned %d", told)
					}
					return nil
				},
				after: func() error {
					n, err := s.counter(s.other).Add(s.ctx, 4)
					if err == nil && n != 7 && !(s.lost() && n == 5) {
						err = fmt.Errorf("the count is %d", n)
					}
					return err
				},
				denied: []denial{{znode: stagePath, perms: noWrite}},
				between: []meddling{{
					name: "another counts", at: zktest.Op(zkserver.OpMulti),
					do: func() error { _, err := s.counter(s.other).Add(s.ctx, 1); return err },
					then: func() {
						if told != 4 {
							s.Errorf("Add returned %d", told)
						}
					},
				}},
			}
		}},
		{"Latch.Count", func(s *stage) doing {
			must.Get(s.latch(s.other, 5).CountDown(s.ctx))(s.T)
			return asking(s.latch(s.victim, 5).Count, number)
		}},
		{"Latch.CountDown, one of two", func(s *stage) doing {
			return doing{
				act:      sole(s.latch(s.victim, 2).CountDown),
				happened: func() bool { return s.holds(stagePath+"/remaining", "1") },
				once:     true,
			}
		}},
		{"Latch.CountDown, the only one", func(s *stage) doing {
			return doing{act: sole(s.latch(s.victim, 1).CountDown), happened: func() bool { return s.present(stagePath + "/open") }}
		}},
		{"Latch.CountDown, the last of two", func(s *stage) doing {
			mine, left := s.latch(s.victim, 2), int64(-1)
			must.Get(mine.CountDown(s.ctx))(s.T)
			opened := func() {
				s.ok(mine.Wait(s.ctx))
				if left != 0 {
					s.Errorf("CountDown returned %d", left)
				}
			}
			return doing{
				act:      func(ctx context.Context) (err error) { left, err = mine.CountDown(ctx); return err },
				happened: func() bool { return s.present(stagePath + "/open") },
				denied:   []denial{{znode: stagePath, perms: noCreate}},
				between: []meddling{
					{name: "another opens the latch", at: zktest.Op(zkserver.OpMulti), do: func() error { _, err := s.latch(s.other, 2).CountDown(s.ctx); return err }, then: opened},
					{name: "another makes the mark of an open latch", at: zktest.Op(zkserver.OpMulti), do: func() error {
						return zktest.BarrierAt(s.T, s.other, stagePath+"/open").Set(s.ctx, nil)
					}, then: func() { s.ok(mine.Wait(s.ctx)) }},
				},
			}
		}},
		{"Latch.Wait", func(s *stage) doing {
			return doing{act: s.latch(s.victim, 1).Wait, happen: func() error { _, err := s.latch(s.other, 1).CountDown(s.ctx); return err }}
		}},
	}
}
