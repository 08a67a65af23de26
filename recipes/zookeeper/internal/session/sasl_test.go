package session_test

import (
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// If a server requires SASL, its first answer says so.
func TestServerThatRequiresSASL(t *testing.T) {
	cfg := ensembletest.Quick(1)
	cfg.SystemProperties = map[string]string{"zookeeper.sessionRequireClientSASLAuth": "true"}
	cfg.Properties = map[string]string{"authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}
	e := ensembletest.Start(t, cfg)
	s, err := session.Open(bounded(t), recipes.SessionConfig{Servers: e.Addrs()}, nil)
	if err == nil {
		_, err = s.Get(bounded(t), "/")
		closeNow(s)
	}
	if !errors.Is(err, recipes.ErrSASLRequired) {
		t.Errorf("got %v", err)
	}
}
