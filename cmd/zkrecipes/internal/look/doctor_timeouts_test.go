package look

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// Doctor learns the smallest timeout of each server from a session. It warns if these timeouts
// differ and the requested one is below one of them.
func TestDoctorComparesSmallestTimeouts(t *testing.T) {
	server := func(smallest time.Duration) string {
		srv := must.Get(zkserver.Listen(zkserver.Config{MinSessionTimeout: smallest, MaxSessionTimeout: time.Minute}))(t)
		t.Cleanup(func() { srv.Close() })
		return srv.Addr()
	}
	const silent = "127.0.0.1:1"
	two, four, more := server(2*time.Second), server(4*time.Second), server(4*time.Second)
	for _, test := range []struct {
		servers []string
		asked   time.Duration
		want    string // the status; "": no finding
		says    string
	}{
		{[]string{four}, 0, "", ""},
		{[]string{four, silent}, 0, "", ""},
		{[]string{four, more}, time.Second, fine, "4s"},
		{[]string{two, four}, 10 * time.Second, fine, "10s"},
		{[]string{two, four, more}, 4 * time.Second, fine, two + " 2s"},
		{[]string{four, two}, 3 * time.Second, warn, four + " 4s; " + two + " 2s"},
	} {
		open := func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
			if cfg.Servers[0] == silent {
				return nil, recipes.ErrUnavailable // without the wait
			}
			return zookeeper.Open(ctx, cfg)
		}
		all := leastTimeouts(t.Context(), open, recipes.SessionConfig{Servers: test.servers, ConnectTimeout: time.Second})
		v := &doctorVerb{}
		v.timeouts(all, test.asked)
		if test.want == "" {
			if len(v.findings) != 0 {
				t.Errorf("%v: %v", test.servers, v.findings)
			}
			continue
		}
		if len(v.findings) != 1 || v.findings[0].Status != test.want || !strings.Contains(v.findings[0].Detail, test.says) {
			t.Errorf("%v, asked for %v: %+v", test.servers, test.asked, v.findings)
		}
	}
}
