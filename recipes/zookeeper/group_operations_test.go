package zookeeper_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func groupWays() []way {
	return []way{wayOf("membership", way{uses: []use{{held, options{}}}}, nil)}
}

func namesWays() []way {
	return []way{wayOf("name", way{uses: []use{{held, options{}}}}, func(o *options) { o.Name = "name" })}
}

func groupOperations() (all []operation) {
	members := func(all []recipes.Member) string {
		out := fmt.Sprint(len(all))
		for _, m := range all {
			out += " " + string(m.Data)
		}
		return out
	}
	join := func(s *stage, in recipes.Client, name, data string) recipes.Membership {
		return must.Get(s.group(in, name).Join(s.ctx, []byte(data)))(s.T)
	}
	for _, name := range []string{"", "me"} {
		named := ", " + fmt.Sprintf("%q", name)
		all = append(all, operation{"Group.Join" + named, func(s *stage) doing {
			var mine recipes.Membership
			return doing{
				act:   func(ctx context.Context) (err error) { mine, err = s.group(s.victim, name).Join(ctx, nil); return err },
				end:   func() error { return errors.Join(mine.Write(s.ctx), mine.Leave(s.ctx)) },
				after: func() error { return join(s, s.other, name, "").Leave(s.ctx) }, // the name is free
			}
		}}, operation{"Membership.Update" + named, func(s *stage) doing {
			mine := join(s, s.victim, name, "1")
			return doing{
				act:      func(ctx context.Context) error { return mine.Update(ctx, []byte("2")) },
				happened: func() bool { return s.holds(mine.Znode(), "2") },
				lost:     []error{recipes.ErrNotHeld},
				denied:   []denial{{znode: mine.Znode(), perms: noWrite}},
				end: func() error {
					found, err := s.group(s.other, "").Members(s.ctx)
					if members(found) != "1 2" {
						s.Errorf("the members are %+v", found)
					}
					return errors.Join(err, mine.Leave(s.ctx))
				},
			}
		}}, operation{"Membership.Leave" + named, func(s *stage) doing {
			mine := join(s, s.victim, name, "")
			return doing{
				act: func(ctx context.Context) error {
					err := mine.Leave(ctx)
					if !errors.Is(mine.Err(), recipes.ErrReleased) && s.victim.Err() == nil && !s.expires {
						s.Errorf("the member has left, but Err is %v", mine.Err())
					}
					return err
				},
				denied: []denial{{znode: stagePath, perms: noDelete}},
				after:  func() error { return join(s, s.other, name, "").Leave(s.ctx) },
			}
		}})
	}
	return append(all,
		operation{"Group.Join, a name that is taken", func(s *stage) doing {
			theirs := join(s, s.other, "me", "")
			return doing{
				act: func(ctx context.Context) error {
					_, err := s.group(s.victim, "me").Join(ctx, nil)
					switch {
					case err == nil:
						s.Error("two members have the same name")
					case errors.Is(err, recipes.ErrNodeExists):
						return nil
					}
					return err
				},
				after: func() error { return theirs.Write(s.ctx) },
			}
		}},
		operation{"Group.Members", func(s *stage) doing {
			for _, data := range []string{"1", "2", "3"} {
				join(s, s.other, "", data)
			}
			return asking(s.group(s.victim, "").Members, members)
		}},
		operation{"Group.Watch, the first member", func(s *stage) doing {
			return doing{act: until(s, s.group(s.victim, "").Watch, members, "0", "1 1"), happen: func() error { join(s, s.other, "", "1"); return nil }}
		}},
		operation{"Group.Watch, another member", func(s *stage) doing {
			join(s, s.other, "", "1")
			return doing{act: until(s, s.group(s.victim, "").Watch, members, "1 1", "2 1 2"), happen: func() error { join(s, s.other, "", "2"); return nil }}
		}},
		operation{"Group.Watch, a member's data", func(s *stage) doing {
			m := join(s, s.other, "", "1")
			return doing{act: until(s, s.group(s.victim, "").Watch, members, "1 1", "1 2"), happen: func() error { return m.Update(s.ctx, []byte("2")) }}
		}},
		operation{"Grant.Write, the end of a membership", func(s *stage) doing {
			m := join(s, s.victim, "", "")
			return doing{act: ended(m), happen: func() error { return s.remove(m.Znode()) }}
		}},
		operation{"Grant.Write, a member", func(s *stage) doing {
			mine := join(s, s.victim, "me", "")
			return doing{
				act:      func(ctx context.Context) error { return mine.Write(ctx, recipes.Create("/app/data", nil)) },
				happened: func() bool { return s.present("/app/data") },
				once:     true,
				lost:     []error{recipes.ErrNotHeld},
				single:   true,
				end:      func() error { return mine.Leave(s.ctx) },
				between: []meddling{{name: "its name is another client's", at: zktest.Op(zkserver.OpMulti), do: func() error {
					return errors.Join(s.remove(mine.Znode()), join(s, s.other, "me", "").Update(s.ctx, []byte("another")))
				}, want: recipes.ErrNotHeld, then: func() {
					if s.present("/app/data") {
						s.Error("the data was written")
					}
				}}},
			}
		}},
	)
}

func namesOperations() []operation {
	record := func(r recipes.Record) string { return r.Name + string(r.Data) }
	some := func(s *stage) {
		must.Get(s.names(s.other).Register(s.ctx, "here", []byte("1")))(s.T)
		s.ok(s.names(s.other).RegisterPersistent(s.ctx, "stays", []byte("2")))
	}
	register := func(s *stage, in recipes.Client) recipes.Registration {
		return must.Get(s.names(in).Register(s.ctx, "n", []byte("1")))(s.T)
	}
	free := func(s *stage) func() error { return func() error { return register(s, s.other).Unregister(s.ctx) } }
	return []operation{
		{"Names.Lookup", func(s *stage) doing {
			some(s)
			return asking(func(ctx context.Context) (recipes.Record, error) { return s.names(s.victim).Lookup(ctx, "stays") }, record)
		}},
		{"Names.List", func(s *stage) doing {
			some(s)
			return asking(s.names(s.victim).List, func(all []recipes.Record) (out string) {
				for _, r := range all {
					out += record(r)
				}
				return out
			})
		}},
		{"Names.Watch", func(s *stage) doing {
			must.Get(s.names(s.other).Register(s.ctx, "another", nil))(s.T)
			return doing{
				act:    until(s, func(ctx context.Context) (<-chan recipes.Record, error) { return s.names(s.victim).Watch(ctx, "n") }, record, "", "n1"),
				happen: func() error { register(s, s.other); return nil },
			}
		}},
		{"Names.Register", func(s *stage) doing {
			var mine recipes.Registration
			return doing{
				act: func(ctx context.Context) (err error) {
					mine, err = s.names(s.victim).Register(ctx, "n", nil)
					return err
				},
				end: func() error { return mine.Unregister(s.ctx) },
				between: []meddling{
					{name: "it is gone before it is looked at", at: zktest.Op(zkserver.OpExists, stagePath+"/n"), do: func() error { return s.remove(stagePath + "/n") }, want: recipes.ErrRemoved},
					{name: "it is another's when it is looked at", at: zktest.Op(zkserver.OpExists, stagePath+"/n"), do: func() error {
						err := s.remove(stagePath + "/n")
						register(s, s.other)
						return err
					}, want: recipes.ErrRemoved},
				},
				after: free(s),
			}
		}},
		{"Names.RegisterPersistent", func(s *stage) doing {
			return doing{
				act:      func(ctx context.Context) error { return s.names(s.victim).RegisterPersistent(ctx, "n", nil) },
				happened: func() bool { return s.present(stagePath + "/n") },
				refused:  recipes.ErrNodeExists,
				denied:   []denial{{znode: stagePath, perms: noCreate}},
			}
		}},
		{"Names.Unregister", func(s *stage) doing {
			s.ok(s.names(s.victim).RegisterPersistent(s.ctx, "n", nil))
			return doing{
				act:      func(ctx context.Context) error { return s.names(s.victim).Unregister(ctx, "n", 0) },
				happened: func() bool { return !s.present(stagePath + "/n") },
				refused:  recipes.ErrNoNode,
				denied:   []denial{{znode: stagePath, perms: noDelete}},
				between: []meddling{
					{name: "it is gone", at: zktest.Op(zkserver.OpMulti), do: func() error { return s.remove(stagePath + "/n") }, want: recipes.ErrNoNode},
					{name: "it was written", at: zktest.Op(zkserver.OpMulti), do: func() error { return s.write(stagePath+"/n", "x") }, then: func() {
						if s.present(stagePath + "/n") {
							s.Error("the name is still registered")
						}
					}},
				},
			}
		}},
		{"Registration.Update", func(s *stage) doing {
			mine := register(s, s.victim)
			return doing{
				act:      func(ctx context.Context) error { return mine.Update(ctx, []byte("2")) },
				happened: func() bool { return s.holds(stagePath+"/n", "2") },
				end:      func() error { return mine.Unregister(s.ctx) },
				after:    free(s),
				lost:     []error{recipes.ErrNotHeld},
				// An update compares the version, and the other registration has the same one.
				between: []meddling{{name: "it is another's", at: zktest.Op(zkserver.OpSetData), do: func() error {
					err := s.remove(stagePath + "/n")
					register(s, s.other)
					return err
				}, want: recipes.ErrRemoved, then: func() {
					if !errors.Is(mine.Err(), recipes.ErrRemoved) {
						s.Errorf("it ended with %v", mine.Err())
					}
				}}},
			}
		}},
		{"Registration.Unregister", func(s *stage) doing { return doing{act: register(s, s.victim).Unregister, after: free(s)} }},
	}
}
