package session_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A session knows one server, and follows the ensemble. That server leaves the ensemble and stops.
func TestASessionFollowsAReconfiguration(t *testing.T) {
	cfg := ensembletest.Quick(3)
	cfg.Properties = map[string]string{"reconfigEnabled": "true", "skipACL": "yes"}
	cfg.SystemProperties = map[string]string{"zookeeper.skipACL": "yes"}
	e := ensembletest.Start(t, cfg)
	s := open(t, recipes.SessionConfig{Servers: []string{e.Server(0).Addr()}, SessionTimeout: 20 * time.Second, FollowServers: true})
	lost := must.Get(s.Connected(zktest.Bounded(t)))(t)

	outside, _, err := zk.Connect([]string{e.Server(1).Addr()}, 10*time.Second, zk.WithLogInfo(false))
	must.Do(t, err)
	defer outside.Close()
	// Static configurations have no client ports.
	for n := range 3 {
		config, _, err := outside.Get("/zookeeper/config")
		must.Do(t, err)
		for line := range strings.Lines(string(config)) {
			id, value, found := strings.Cut(strings.TrimSpace(line), "=")
			if found && id == fmt.Sprintf("server.%d", n+1) && !strings.Contains(value, ";") {
				_, port, _ := net.SplitHostPort(e.Server(n).Addr())
				must.Get(outside.IncrementalReconfig([]string{id + "=" + value + ";127.0.0.1:" + port}, nil, -1))(t)
			}
		}
	}
	must.Get(outside.IncrementalReconfig(nil, []string{"1"}, -1))(t)
	must.Do(t, e.Server(0).Kill())
	<-lost
	must.Get(s.Connected(zktest.Bounded(t)))(t)
	must.Get(s.CreateProtected(zktest.Bounded(t), "/followed", "lock-", nil))(t)
}
