package config_test

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// replacements replace the key "dir/k" of the configuration at path by one of the same version.
// The first deletes it, and the second creates it and sets it once.
var replacements = map[string]func(s *zktest.Scene, path string) error{
	"by Delete and Set": func(s *zktest.Scene, path string) error {
		c := zktest.ConfigAt(s.T, s.Session(), path)
		return errors.Join(c.Delete(s.Ctx, "dir/k", recipes.AnyRevision), setTwice(s.Ctx, c, "dir/k"))
	},
	"by a Delete that expects a revision": func(s *zktest.Scene, path string) error {
		c := zktest.ConfigAt(s.T, s.Session(), path)
		return errors.Join(c.Delete(s.Ctx, "dir/k", must.Get(c.Get(s.Ctx, "dir/k"))(s.T).Revision), setTwice(s.Ctx, c, "dir/k"))
	},
	"with its parent": func(s *zktest.Scene, path string) error {
		c := zktest.ConfigAt(s.T, s.Session(), path)
		return errors.Join(c.Delete(s.Ctx, "dir/k", recipes.AnyRevision), c.Delete(s.Ctx, "dir", recipes.AnyRevision), setTwice(s.Ctx, c, "dir/k"))
	},
	"with its parent, and another key was deleted": func(s *zktest.Scene, path string) error {
		c := zktest.ConfigAt(s.T, s.Session(), path)
		return errors.Join(c.Delete(s.Ctx, "dir/k", recipes.AnyRevision), c.Delete(s.Ctx, "dir", recipes.AnyRevision),
			setTwice(s.Ctx, c, "dir/other"), c.Delete(s.Ctx, "dir/other", recipes.AnyRevision), setTwice(s.Ctx, c, "dir/k"))
	},
	"through the configuration above": func(s *zktest.Scene, path string) error {
		c := zktest.ConfigAt(s.T, s.Session(), gopath.Dir(path))
		return errors.Join(c.Delete(s.Ctx, "app/dir/k", recipes.AnyRevision), setTwice(s.Ctx, c, "app/dir/k"))
	},
	"through the configuration below": func(s *zktest.Scene, path string) error {
		c := zktest.ConfigAt(s.T, s.Session(), path+"/dir")
		return errors.Join(c.Delete(s.Ctx, "k", recipes.AnyRevision), setTwice(s.Ctx, c, "k"))
	},
	"by guarded writes": func(s *zktest.Scene, path string) error {
		session := s.Session()
		c := zktest.ConfigAt(s.T, session, path)
		h := must.Get(must.Get(session.Lock(path+"-lock", recipes.LockConfig{}))(s.T).Acquire(s.Ctx))(s.T)
		return errors.Join(h.Write(s.Ctx, must.Get(c.Key(recipes.Delete("dir/k", recipes.AnyVersion)))(s.T)), setTwice(s.Ctx, c, "dir/k"))
	},
	"by another program, with the whole tree": func(s *zktest.Scene, path string) error {
		return errors.Join(deleteTree(s.Raw, path), setTwice(s.Ctx, zktest.ConfigAt(s.T, s.Session(), path), "dir/k"))
	},
}

func setTwice(ctx context.Context, c recipes.Configuration, key string) error {
	first, err := c.Set(ctx, key, []byte("theirs, at first"), recipes.NoRevision)
	if err == nil {
		_, err = c.Set(ctx, key, []byte("theirs"), first) // creates the count of the directory
	}
	return err
}

func deleteTree(raw *zk.Conn, path string) error {
	children, _, err := raw.Children(path)
	if err != nil {
		return err
	}
	for _, name := range children {
		if err := deleteTree(raw, path+"/"+name); err != nil {
			return err
		}
	}
	return raw.Delete(path, -1)
}

// ZooKeeper compares only versions. Between the read and the write, the key is deleted, and is
// created again with as many changes.
func TestAKeyThatWasReplacedIsNotOverwritten(t *testing.T) {
	changes := map[string]func(ctx context.Context, c recipes.Configuration, read recipes.Revision) error{
		"Set": func(ctx context.Context, c recipes.Configuration, read recipes.Revision) error {
			_, err := c.Set(ctx, "dir/k", []byte("mine"), read)
			return err
		},
		"Delete": func(ctx context.Context, c recipes.Configuration, read recipes.Revision) error {
			return c.Delete(ctx, "dir/k", read)
		},
	}
	for how, replace := range replacements {
		for what, change := range changes {
			for _, first := range []bool{true, false} {
				name := what + ", " + how
				if first {
					name += ", the first change of a session"
				}
				t.Run(name, func(t *testing.T) {
					zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
						session, path := s.Session(), s.Path+"/app"
						c := zktest.ConfigAt(t, session, path)
						theirs := zktest.ConfigAt(t, s.Session(), path)
						must.Do(t, setTwice(s.Ctx, theirs, "dir/k"))
						read := must.Get(c.Get(s.Ctx, "dir/k"))(t)
						if !first {
							read.Revision = must.Get(c.Set(s.Ctx, "dir/k", []byte("read"), read.Revision))(t)
							must.Do(t, theirs.Delete(s.Ctx, "dir/k", read.Revision))
							must.Do(t, setTwice(s.Ctx, theirs, "dir/k"))
							read = must.Get(c.Get(s.Ctx, "dir/k"))(t)
						}
						met := zktest.Between(srv, session, changing(path), func() { must.Do(t, replace(s, path)) })
						if err := change(s.Ctx, c, read.Revision); !met() || !errors.Is(err, recipes.ErrBadVersion) {
							t.Errorf("met %t: %v; want ErrBadVersion", met(), err)
						}
						if now := must.Get(c.Get(s.Ctx, "dir/k"))(t); string(now.Value) != "theirs" || now.Version != read.Version {
							t.Errorf("the key is %+v", now)
						}
					})
				})
			}
		}
	}
}

// changing matches the transactions that change keys of the configuration at path: each sets a receipt
// below it.
func changing(path string) func(zkserver.Request) bool {
	return func(r zkserver.Request) bool {
		return r.Op == zkserver.OpMulti && strings.HasPrefix(r.Path, path+"/_c_")
	}
}

// The znode of the configuration itself is replaced, with all that is below it: before the session
// creates its receipt, or before the change.
func TestAConfigurationThatWasReplacedIsNotOverwritten(t *testing.T) {
	receipt := func(r zkserver.Request) bool {
		return zktest.Creates(r.Op) && strings.Contains(r.Path, "-receipt-")
	}
	for name, test := range map[string]struct {
		first bool // change of the session
		at    func(path string) func(zkserver.Request) bool
	}{
		"the first change, before the receipt": {true, func(string) func(zkserver.Request) bool { return receipt }},
		"the first change":                     {true, changing},
		"a later change":                       {false, changing},
	} {
		t.Run(name, func(t *testing.T) {
			zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
				session := s.Session()
				c := zktest.ConfigAt(t, session, s.Path)
				must.Do(t, setTwice(s.Ctx, zktest.ConfigAt(t, s.Session(), s.Path), ""))
				read := must.Get(c.Get(s.Ctx, ""))(t).Revision
				if !test.first {
					read = must.Get(c.Set(s.Ctx, "", nil, read))(t)
				}
				version := must.Get(c.Get(s.Ctx, ""))(t).Version
				met := zktest.Between(srv, session, test.at(s.Path), func() {
					must.Do(t, deleteTree(s.Raw, s.Path))
					s.Make(s.Path, []byte("theirs"), 0)
					must.Do(t, srv.SetVersion(s.Path, version))
				})
				if _, err := c.Set(s.Ctx, "", []byte("mine"), read); !met() || !errors.Is(err, recipes.ErrBadVersion) {
					t.Errorf("met %t: %v", met(), err)
				}
				if data := s.Data(s.Path); string(data) != "theirs" {
					t.Errorf("the data is %q", data)
				}
			})
		})
	}
}

// The first Set creates the configuration's own znode. Its reply may be lost, and other clients
// change the znode before the session sends another request.
func TestTheFirstSetKnowsItsRevision(t *testing.T) {
	for name, then := range map[string]func(s *zktest.Scene) error{
		"no client changes it": func(*zktest.Scene) error { return nil },
		"another client sets it": func(s *zktest.Scene) error {
			_, err := zktest.ConfigAt(s.T, s.Session(), s.Path).Set(s.Ctx, "", []byte("theirs"), recipes.AnyRevision)
			return err
		},
		"another program replaces it": func(s *zktest.Scene) error {
			err := deleteTree(s.Raw, s.Path)
			s.Make(s.Path, []byte("theirs"), 0)
			return err
		},
		"another program deletes it": func(s *zktest.Scene) error { return deleteTree(s.Raw, s.Path) },
	} {
		for _, lost := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, lost: %t", name, lost), func(t *testing.T) {
				zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
					session := s.Session()
					c := zktest.ConfigAt(t, session, s.Path)
					var created atomic.Bool
					change := sync.OnceFunc(func() { must.Do(t, then(s)) })
					srv.SetFault(func(r zkserver.Request) zkserver.Fault {
						switch {
						case r.SessionID != session.ID():
						case created.Load():
							change()
						case r.Op == zkserver.OpMulti, zktest.Creates(r.Op) && r.Path == s.Path:
							created.Store(true)
							return zkserver.Fault{DropReply: lost}
						}
						return zkserver.Fault{}
					})
					revision, err := c.Set(s.Ctx, "", []byte("mine"), recipes.NoRevision)
					if err != nil || !created.Load() {
						t.Fatalf("created %t: %v", created.Load(), err)
					}
					change()
					srv.SetFault(nil)
					now, err := c.Get(s.Ctx, "")
					mine := err == nil && string(now.Value) == "mine"
					if same := err == nil && now.Revision == revision; same != mine {
						t.Errorf("Set returned revision %d; now the entry is %+v, %v", revision, now, err)
					}
				})
			})
		}
	}
}

// Clients with different ACLs share a configuration. A client that may not read or write the znode that counts
// the deletions is refused, and the error says what it needs. Nothing is changed without the count.
func TestAClientThatMayNotCountIsRefused(t *testing.T) {
	const noRead, noWrite = zk.PermAll &^ zk.PermRead, zk.PermAll &^ zk.PermWrite
	for name, test := range map[string]struct {
		perms  int32
		refuse string // the permission that the error names
		change func(s *zktest.Scene, session recipes.Client, now recipes.Entry) error
	}{
		"Set, without reading": {noRead, "read", func(s *zktest.Scene, session recipes.Client, now recipes.Entry) error {
			_, err := zktest.ConfigAt(s.T, session, s.Path).Set(s.Ctx, "k", []byte("mine"), now.Revision)
			return err
		}},
		"Delete, without writing": {noWrite, "write", func(s *zktest.Scene, session recipes.Client, now recipes.Entry) error {
			return zktest.ConfigAt(s.T, session, s.Path).Delete(s.Ctx, "k", now.Revision)
		}},
		"Delete of any revision, without writing": {noWrite, "write", func(s *zktest.Scene, session recipes.Client, now recipes.Entry) error {
			return zktest.ConfigAt(s.T, session, s.Path).Delete(s.Ctx, "k", recipes.AnyRevision)
		}},
		"Unregister, without writing": {noWrite, "write", func(s *zktest.Scene, session recipes.Client, now recipes.Entry) error {
			return must.Get(session.Names(s.Path))(s.T).Unregister(s.Ctx, "k", 0)
		}},
		"a guarded deletion, without writing": {noWrite, "write", func(s *zktest.Scene, session recipes.Client, now recipes.Entry) error {
			h := must.Get(must.Get(session.Lock("/lock", recipes.LockConfig{}))(s.T).Acquire(s.Ctx))(s.T)
			defer s.Release(h)
			return h.Write(s.Ctx, must.Get(zktest.ConfigAt(s.T, session, s.Path).Key(recipes.Delete("k", recipes.AnyVersion)))(s.T))
		}},
		"Set, without creating the count": {0, "create", func(s *zktest.Scene, session recipes.Client, now recipes.Entry) error {
			_, err := zktest.ConfigAt(s.T, session, s.Path).Set(s.Ctx, "k", []byte("mine"), now.Revision)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
				theirs, session := zktest.ConfigAt(t, s.Session(), s.Path), s.Session()
				if test.perms == 0 {
					must.Get(theirs.Set(s.Ctx, "k", []byte("theirs"), recipes.NoRevision))(t)
					must.Get(zktest.ConfigAt(t, session, s.Path).Set(s.Ctx, "mine", nil, recipes.NoRevision))(t) // and its receipt
					must.Get(s.Raw.SetACL(s.Path, zk.WorldACL(zk.PermAll&^zk.PermCreate), -1))(t)
				} else {
					must.Do(t, setTwice(s.Ctx, theirs, "k"))
					for _, name := range s.Children(s.Path) {
						if strings.HasSuffix(name, "-deletions") {
							must.Get(s.Raw.SetACL(s.Path+"/"+name, zk.WorldACL(test.perms), -1))(t)
						}
					}
				}
				now := must.Get(theirs.Get(s.Ctx, "k"))(t)
				for range 2 { // the second time, the session knows the count
					err := test.change(s, session, now)
					if !errors.Is(err, recipes.ErrAccessDenied) || errors.Is(err, recipes.ErrUnknownOutcome) {
						t.Fatalf("the error is %v; want ErrAccessDenied", err)
					}
					for _, want := range []string{"deletions", "needs the permission to " + test.refuse, "SessionConfig.ACL"} {
						if !strings.Contains(err.Error(), want) {
							t.Errorf("%v does not say %q", err, want)
						}
					}
				}
				if after := must.Get(theirs.Get(s.Ctx, "k"))(t); after.Revision != now.Revision {
					t.Errorf("the key is %+v; it was %+v", after, now)
				}
			})
		})
	}
}
