package config_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// An operator has created the znode with a shell, so its data is white space or empty.
func TestACounterWithoutDigitsHasItsInitialValue(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
		for i, data := range []string{"", " ", "\n", " \t\r\n"} {
			path := fmt.Sprintf("%s%d", s.Path, i)
			must.Get(s.Raw.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll)))(t)
			c := zktest.CounterAt(t, s.Session(), path)
			if n, err := c.Get(s.Ctx); n != 0 || err != nil {
				t.Errorf("%q is %d, %v", data, n, err)
			}
			if n, err := c.Add(s.Ctx, 3); n != 3 || err != nil {
				t.Errorf("3 more than %q is %d, %v", data, n, err)
			}
		}
	})
}

// Curator's DistributedAtomicLong creates its znode with its first number, here after ours has
// found no znode. Neither number is lost.
func TestACounterThatAnotherCreatesIsNotOverwritten(t *testing.T) {
	for dialect, number := range map[recipes.Dialect][]byte{
		recipes.Curator: binary.BigEndian.AppendUint64(nil, 5), recipes.Kazoo: []byte("5"), recipes.ZooKeeper: []byte("5"),
	} {
		t.Run(string(dialect), func(t *testing.T) {
			zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
				session := s.Session()
				c := must.Get(session.Counter(s.Path, recipes.CounterConfig{Dialect: dialect}))(t)
				met := zktest.Between(srv, session, zktest.Op(zkserver.OpMulti), func() { s.Make(s.Path, number, 0) })
				if n, err := c.Add(s.Ctx, 1); !met() || n != 6 || err != nil {
					t.Errorf("1 more than 5 is %d, %v", n, err)
				}
			})
		})
	}
}

// A number that is read in the form of another dialect would be a different one.
func TestACounterRefusesTheFormOfAnotherDialect(t *testing.T) {
	for _, tt := range []struct {
		dialect recipes.Dialect
		data    string
		want    error
	}{
		{recipes.ZooKeeper, "\x00\x00\x00\x00\x00\x00\x00\x05", recipes.ErrForeign},
		{recipes.Kazoo, "\xff\xff\xff\xff\xff\xff\xff\xfb", recipes.ErrForeign},
		{recipes.ZooKeeper, "elephant", recipes.ErrInvalid},
		{recipes.Curator, "12345678", recipes.ErrForeign},
		{recipes.Curator, "5", recipes.ErrForeign},
		{recipes.Curator, "\x00\x00\x00\x05", recipes.ErrInvalid},
		{recipes.Kazoo, "1.5", recipes.ErrInvalid},
		{recipes.Kazoo, "-7", nil},
		{recipes.Curator, "\x01elephan", nil},
	} {
		zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
			s.Make(s.Path, []byte(tt.data), 0)
			c := must.Get(s.Session().Counter(s.Path, recipes.CounterConfig{Dialect: tt.dialect}))(s.T)
			for _, count := range []func() (int64, error){
				func() (int64, error) { return c.Get(s.Ctx) },
				func() (int64, error) { return c.Add(s.Ctx, 1) },
			} {
				if _, err := count(); !errors.Is(err, tt.want) {
					t.Errorf("%s reads %q: %v; want %v", tt.dialect, tt.data, err, tt.want)
				}
			}
			if tt.want != nil && string(s.Data(s.Path)) != tt.data {
				t.Errorf("%s has changed %q to %q", tt.dialect, tt.data, s.Data(s.Path))
			}
		})
	}
}

// Another program replaces the znode between the read and the write. The new number has the same
// version.
func TestACounterThatWasReplacedIsNotOverwritten(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("first %t", first), func(t *testing.T) {
			zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
				session := s.Session()
				c := zktest.CounterAt(t, session, s.Path)
				must.Get(zktest.CounterAt(t, s.Session(), s.Path).Add(s.Ctx, 1))(t)
				if !first {
					must.Get(c.Add(s.Ctx, 1))(t)
				}
				met := zktest.Between(srv, session, zktest.Op(zkserver.OpMulti), func() {
					_, stat, err := s.Raw.Get(s.Path)
					must.Do(t, errors.Join(err, deleteTree(s.Raw, s.Path)))
					s.Make(s.Path, []byte("100"), 0)
					must.Do(t, srv.SetVersion(s.Path, stat.Version))
				})
				if n, err := c.Add(s.Ctx, 5); !met() || n != 105 || err != nil {
					t.Errorf("5 more than 100 is %d, %v", n, err)
				}
			})
		})
	}
}
