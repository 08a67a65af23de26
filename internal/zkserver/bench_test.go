package zkserver_test

import (
	"fmt"
	"testing"

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

// BenchmarkHerd is one change that wakes many connections.
func BenchmarkHerd(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, c := bench(b)
			defer s.Close()
			herd := make([]*rawClient, n)
			for i := range herd {
				w, err := dial("w", s.Addr(), connectOptions{timeout: 30000})
				if err != nil {
					b.Fatal(err)
				}
				defer w.nc.Close()
				herd[i] = w
			}
			for b.Loop() {
				for _, w := range herd {
					if _, err := w.do("getData", "/", "watch"); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := c.do("setData", "/"); err != nil {
					b.Fatal(err)
				}
				for _, w := range herd {
					if _, err := w.frame(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func bench(b *testing.B) (*zkserver.Server, *rawClient) {
	s, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		b.Fatal(err)
	}
	c, err := dial("c", s.Addr(), connectOptions{timeout: 30000})
	if err != nil {
		b.Fatal(err)
	}
	return s, c
}
