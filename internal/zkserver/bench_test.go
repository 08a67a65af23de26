package zkserver_test

import (
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

func BenchmarkRequest(b *testing.B) {
	for _, op := range []string{"ping", "getData", "setData"} {
		b.Run(op, func(b *testing.B) {
			s, c := bench(b)
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				if code, err := c.do(op, "/", "data=x"); code != 0 || err != nil {
					b.Fatal(code, err)
				}
			}
		})
	}
}

// BenchmarkHerd measures one change that wakes many connections.
func BenchmarkHerd(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, c := bench(b)
			defer s.Close()
			herd := make([]*rawClient, n)
			for i := range herd {
				herd[i] = must.Get(dial("w", s.Addr(), connectOptions{timeout: 30000}))(b)
				defer herd[i].nc.Close()
			}
			for b.Loop() {
				for _, w := range herd {
					must.Get(w.do("getData", "/", "watch"))(b)
				}
				must.Get(c.do("setData", "/"))(b)
				for _, w := range herd {
					must.Get(w.frame())(b)
				}
			}
		})
	}
}

func bench(b *testing.B) (*zkserver.Server, *rawClient) {
	s := must.Get(zkserver.Listen(zkserver.Config{}))(b)
	return s, must.Get(dial("c", s.Addr(), connectOptions{timeout: 30000}))(b)
}
