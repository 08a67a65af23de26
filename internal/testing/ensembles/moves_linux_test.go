package ensembles_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// A session resolves a server's name each time that it connects. So it finds a server that
// has moved to another address, and keeps its hold.
func TestEnsembleWhoseNamesGetOtherAddresses(t *testing.T) {
	testall.Require(t)
	e := ensembletest.Start(t, apart(config(3)))
	var address atomic.Value
	var servers []string // one name, with the ports of two servers
	for _, s := range e.Servers()[:2] {
		_, port, _ := net.SplitHostPort(s.Addr())
		servers = append(servers, net.JoinHostPort("zk.test", port))
	}
	moveTo := func(s *ensemble.Server) { address.Store(s.Addr()) }
	moveTo(e.Server(0))
	resolveTo(t, func() net.IP {
		host, _, _ := net.SplitHostPort(address.Load().(string))
		return net.ParseIP(host)
	})
	s := must.Get(zookeeper.Open(t.Context(), recipes.SessionConfig{Servers: servers, SessionTimeout: long, MaxPacket: 64 << 10}))(t)
	defer s.Close(zktest.Bounded(t))
	hold := zktest.Acquire(t, s)
	moveTo(e.Server(1))
	must.Do(t, e.Server(0).Kill())
	must.Do(t, hold.Write(t.Context()))
	must.Do(t, hold.Release(t.Context()))
}

// resolveTo makes every name that this process resolves have one IPv4 address, until the test
// ends.
func resolveTo(t *testing.T, ip func() net.IP) {
	t.Helper()
	server := must.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		server.Close()
	})
	go func() {
		for packet := make([]byte, 1<<10); ; {
			n, from, err := server.ReadFrom(packet)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue
			}
			server.WriteTo(answer(packet[:n], ip()), from)
		}
	}()
}

// answer returns the answer to a DNS query (RFC 1035): an address for a question of type A, and
// nothing for others.
func answer(query []byte, ip net.IP) []byte {
	const headerSize, typeA = 12, 1
	end := headerSize + bytes.IndexByte(query[headerSize:], 0) + 1 + 4 // the name, its type and class
	kind := binary.BigEndian.Uint16(query[end-4:])
	reply := append(slices.Clone(query[:2]), 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0)
	reply = append(reply, query[headerSize:end]...)
	if kind == typeA {
		reply[7] = 1 // answers
		reply = append(reply, 0xc0, headerSize, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, ip.To4()...)
	}
	return reply
}

// An operator removes the server of a holder from the ensemble, and then stops it. The holder
// keeps its hold.
func TestEnsembleThatIsReconfigured(t *testing.T) {
	testall.Require(t)
	notBefore35(t)
	cfg := config(3)
	cfg.Properties = map[string]string{"reconfigEnabled": "true"}
	// super:secret may reconfigure.
	cfg.SystemProperties["zookeeper.DigestAuthenticationProvider.superDigest"] = zk.DigestACL(zk.PermAll, "super", "secret")[0].ID
	for _, role := range []string{"follower", "leader"} {
		t.Run("without its "+role, func(t *testing.T) {
			e := ensembletest.Start(t, cfg)
			leader := must.Get(e.Leader(t.Context()))(t)
			removed := e.Servers()[slices.IndexFunc(e.Servers(), func(s *ensemble.Server) bool { return (s == leader) == (role == "leader") })]
			kept := slices.DeleteFunc(e.Servers(), func(s *ensemble.Server) bool { return s == removed })
			p := contend(t, removed, kept[0], long)
			raw := zktest.Raw(t, kept[0].Addr())
			must.Do(t, raw.AddAuth("digest", []byte("super:secret")))
			for { // the reply of a leader that is removed may be lost; the removal can be repeated
				_, err := raw.IncrementalReconfig(nil, []string{strconv.Itoa(1 + slices.Index(e.Servers(), removed))}, -1)
				if err == nil {
					break
				}
				if !errors.Is(err, zk.ErrConnectionClosed) {
					t.Fatal(err)
				}
			}
			must.Do(t, removed.Kill())
			p.moves(t, kept[1])
			must.Do(t, p.hold.Release(t.Context()))
			p.grant(t, zktest.Bounded(t))
		})
	}
}
