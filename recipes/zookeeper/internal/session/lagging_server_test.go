package session_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// A session learns from another one that a znode exists, and reads from a server that lags behind.
// The recipe must not report that the znode does not exist.
func TestAServerThatLagsRefusesNothing(t *testing.T) {
	const path = "/app/it"
	for name, use := range map[string]func(ctx context.Context, first, other recipes.Client) error{
		"joining a transaction": func(ctx context.Context, first, other recipes.Client) error {
			tx := must.Get(first.Transaction(path, recipes.TransactionConfig{}))(t)
			if err := tx.Begin(ctx, nil, "1"); err != nil {
				return err
			}
			_, err := must.Get(other.Transaction(path, recipes.TransactionConfig{}))(t).Join(ctx, "1")
			return err
		},
		"deleting a key": func(ctx context.Context, first, other recipes.Client) error {
			must.Get(zktest.ConfigAt(t, first, path).Set(ctx, "a", nil, recipes.AnyRevision))(t)
			return zktest.ConfigAt(t, other, path).Delete(ctx, "a", recipes.AnyRevision)
		},
		"setting a key of a revision": func(ctx context.Context, first, other recipes.Client) error {
			revision := must.Get(zktest.ConfigAt(t, first, path).Set(ctx, "a", nil, recipes.AnyRevision))(t)
			_, err := zktest.ConfigAt(t, other, path).Set(ctx, "a", nil, revision)
			return err
		},
		"unregistering a name": func(ctx context.Context, first, other recipes.Client) error {
			directory := func(s recipes.Client) recipes.Names {
				return must.Get(s.Names(path))(t)
			}
			if err := directory(first).RegisterPersistent(ctx, "a", nil); err != nil {
				return err
			}
			return directory(other).Unregister(ctx, "a", 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
			server := &laggingServer{path: path}
			other := must.Get(zookeeper.Dialer(server.dial).Open(ctx, recipes.SessionConfig{Servers: []string{srv.Addr()}, MaxPacket: 64 << 10}))(t)
			defer other.Close(ctx)
			must.Report(t, use(ctx, zktest.Open(t, srv), other))
			if server.denied == 0 {
				t.Error("the case was not met")
			}
		})
	}
}

// laggingServer is a server that shows nothing below a path until it has caught up. It catches up
// at a sync or a write, because a server answers in order.
type laggingServer struct {
	path   string
	mu     sync.Mutex
	synced bool
	denied int
}

func (l *laggingServer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &laggingConn{Conn: conn, server: l, deny: make(map[uint32]bool)}, nil
}

type laggingConn struct {
	net.Conn
	server    *laggingServer
	deny      map[uint32]bool // xids, with the server's mutex
	connected bool
	read      bytes.Buffer
}

// Write inspects the requests. Each is written in one call.
func (c *laggingConn) Write(frame []byte) (int, error) {
	const exists, getData, sync, header = 3, 4, 9, 12
	if len(frame) >= header+4 {
		xid, op := binary.BigEndian.Uint32(frame[4:]), binary.BigEndian.Uint32(frame[8:])
		c.server.mu.Lock()
		switch path := string(frame[header+4:]); {
		case (op == exists || op == getData) && strings.HasPrefix(path, c.server.path):
			c.deny[xid] = !c.server.synced
		case op != exists && op != getData && c.connected:
			c.server.synced = c.server.synced || op == sync || strings.Contains(path, c.server.path)
		}
		c.server.mu.Unlock()
	}
	return c.Conn.Write(frame)
}

// Read changes the answers.
func (c *laggingConn) Read(p []byte) (int, error) {
	if c.read.Len() == 0 {
		if err := c.nextFrame(); err != nil {
			return 0, err
		}
	}
	return c.read.Read(p)
}

func (c *laggingConn) nextFrame() error {
	length := make([]byte, 4)
	if _, err := io.ReadFull(c.Conn, length); err != nil {
		return err
	}
	frame := make([]byte, binary.BigEndian.Uint32(length))
	if _, err := io.ReadFull(c.Conn, frame); err != nil {
		return err
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	const header, noNode = 16, -101
	if c.connected && c.deny[binary.BigEndian.Uint32(frame)] {
		c.server.denied++
		frame = frame[:header]
		code := int32(noNode)
		binary.BigEndian.PutUint32(frame[12:], uint32(code))
	}
	c.connected = true
	binary.BigEndian.PutUint32(length, uint32(len(frame)))
	c.read.Write(length)
	c.read.Write(frame)
	return nil
}
