package client

import (
	"context"
	"fmt"
	"path"

	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var (
	namesService         = pb.NewNamesServiceClient(link.Router{})
	groupService         = pb.NewGroupServiceClient(link.Router{})
	configurationService = pb.NewConfigurationServiceClient(link.Router{})
	counterService       = pb.NewCounterServiceClient(link.Router{})
	latchService         = pb.NewLatchServiceClient(link.Router{})
)

type names struct{ recipe }

func (s *session) Names(path string) (recipes.Names, error) {
	r, err := s.at("names", path, "")
	if err != nil {
		return nil, err
	}
	return names{r.about("names of " + path)}, nil
}

func (n names) name(name string) recipe {
	r := n.about(fmt.Sprintf("name %q of %s", name, n.path))
	r.invalid = recipes.ValidateName(name)
	return r
}

func (n names) Register(ctx context.Context, name string, data []byte) (recipes.Registration, error) {
	m := &pb.AcquireRequest_Names{Names: &pb.Names{Name: name}}
	g, _, err := n.name(name).acquire(ctx, "names", &pb.AcquireRequest{Data: data, Recipe: m}, nil)
	if err != nil {
		return nil, err
	}
	g.Done() // the removal of a name is always reported
	return registration{g, name}, nil
}

func (n names) RegisterPersistent(ctx context.Context, name string, data []byte) error {
	return change(ctx, n.name(name), link.AtMostOnce(), namesService.RegisterName,
		&pb.RegisterNameRequest{Session: n.s.Handle(), Path: n.path, Name: name, Data: data})
}

func (n names) Unregister(ctx context.Context, name string, token recipes.Token) error {
	return change(ctx, n.name(name), link.AtMostOnce(), namesService.UnregisterName, &pb.UnregisterNameRequest{
		Session: n.s.Handle(), Path: n.path, Name: name, Token: int64(token),
	})
}

func (n names) Lookup(ctx context.Context, name string) (recipes.Record, error) {
	return read(ctx, n.name(name), namesService.LookupName, &pb.LookupNameRequest{Session: n.s.Handle(), Path: n.path, Name: name},
		func(a *pb.LookupNameResponse) recipes.Record { return wire.Record(a.GetRecord()) })
}

func (n names) List(ctx context.Context) ([]recipes.Record, error) {
	return read(ctx, n.recipe, namesService.ListNames, &pb.ListNamesRequest{Session: n.s.Handle(), Path: n.path},
		func(a *pb.ListNamesResponse) []recipes.Record { return wire.Each(a.GetRecords(), wire.Record) })
}

func (n names) Watch(ctx context.Context, name string) (<-chan recipes.Record, error) {
	return follow(ctx, n.name(name), namesService.WatchName, &pb.WatchNameRequest{Session: n.s.Handle(), Path: n.path, Name: name},
		func(m *pb.WatchNameResponse) recipes.Record { return wire.Record(m.GetRecord()) })
}

type registration struct {
	*link.Grant
	name string
}

func (r registration) Name() string { return r.name }

func (r registration) Update(ctx context.Context, data []byte) error {
	return link.WriteAs(ctx, r.Grant, "update", namesService.UpdateName, &pb.UpdateNameRequest{Session: r.Session().Handle(), RequestId: r.ID(), Data: data})
}

func (r registration) Unregister(ctx context.Context) error { return r.ReleaseGrant(ctx) }

type group struct {
	recipe
	cfg recipes.GroupConfig
}

func (s *session) Group(path string, cfg recipes.GroupConfig) (recipes.Group, error) {
	r, err := s.at("group", path, cfg.Dialect)
	if err == nil && cfg.Name != "" {
		err = recipes.ValidateName(cfg.Name)
	}
	if err != nil {
		return nil, err
	}
	return group{r, cfg}, nil
}

func (g group) Join(ctx context.Context, data []byte) (recipes.Membership, error) {
	m := &pb.AcquireRequest_Group{Group: &pb.Group{Name: g.cfg.Name, EndsWithHost: g.cfg.EndsWithProcess}}
	member, _, err := g.acquire(ctx, "group", &pb.AcquireRequest{Data: data, Recipe: m}, nil)
	if err != nil {
		return nil, err
	}
	member.Done() // the removal of a member is always reported
	return membership{member}, nil
}

type membership struct{ *link.Grant }

func (m membership) Update(ctx context.Context, data []byte) error {
	return link.WriteAs(ctx, m.Grant, "update", groupService.Update, &pb.UpdateRequest{Session: m.Session().Handle(), RequestId: m.ID(), Data: data})
}

func (m membership) Leave(ctx context.Context) error { return m.ReleaseGrant(ctx) }

func (g group) Members(ctx context.Context) ([]recipes.Member, error) {
	return read(ctx, g.recipe, groupService.Members, &pb.MembersRequest{Session: g.s.Handle(), Path: g.path, Dialect: g.dialect},
		func(a *pb.MembersResponse) []recipes.Member { return wire.Each(a.GetMembers(), wire.Member) })
}

func (g group) Watch(ctx context.Context) (<-chan []recipes.Member, error) {
	return follow(ctx, g.recipe, groupService.WatchMembers, &pb.WatchMembersRequest{Session: g.s.Handle(), Path: g.path, Dialect: g.dialect},
		func(m *pb.WatchMembersResponse) []recipes.Member { return wire.Each(m.GetMembers(), wire.Member) })
}

type configuration struct{ recipe }

func (s *session) Configuration(path string) (recipes.Configuration, error) {
	r, err := s.at("configuration", path, "", notRoot(path, "the root holds ZooKeeper's own nodes"))
	if err != nil {
		return nil, err
	}
	return configuration{r}, nil
}

func (c configuration) key(key string) recipe {
	r := c.about(fmt.Sprintf("key %q of %s", key, c))
	r.invalid = recipes.ValidateKey(key)
	return r
}

func (c configuration) Get(ctx context.Context, key string) (recipes.Entry, error) {
	return read(ctx, c.key(key), configurationService.GetKey, &pb.GetKeyRequest{Session: c.s.Handle(), Path: c.path, Key: key},
		func(a *pb.GetKeyResponse) recipes.Entry { return wire.Entry(a.GetEntry()) })
}

func (c configuration) Set(ctx context.Context, key string, value []byte, expected recipes.Revision) (recipes.Revision, error) {
	return write(ctx, c.key(key), link.AtMostOnce(), configurationService.SetKey, &pb.SetKeyRequest{
		Session: c.s.Handle(), Path: c.path, Key: key, Value: value, Expected: int64(expected),
	}, func(a *pb.SetKeyResponse) recipes.Revision { return recipes.Revision(a.GetRevision()) })
}

func (c configuration) Delete(ctx context.Context, key string, expected recipes.Revision) error {
	return change(ctx, c.key(key), link.AtMostOnce(), configurationService.DeleteKey,
		&pb.DeleteKeyRequest{Session: c.s.Handle(), Path: c.path, Key: key, Expected: int64(expected)})
}

func (c configuration) Key(op recipes.Op) (recipes.Op, error) {
	if err := recipes.ValidateKey(op.Path); err != nil {
		return recipes.Op{}, err
	}
	op = op.ForKey(path.Join(c.path, op.Path), op.Path)
	return op, op.Validate()
}

func (c configuration) Snapshot(ctx context.Context) ([]recipes.Entry, error) {
	return read(ctx, c.recipe, configurationService.SnapshotKeys, &pb.SnapshotKeysRequest{Session: c.s.Handle(), Path: c.path},
		func(a *pb.SnapshotKeysResponse) []recipes.Entry { return wire.Each(a.GetEntries(), wire.Entry) })
}

func (c configuration) Watch(ctx context.Context, key string) (<-chan recipes.Entry, error) {
	return follow(ctx, c.key(key), configurationService.WatchKey, &pb.WatchKeyRequest{Session: c.s.Handle(), Path: c.path, Key: key},
		func(m *pb.WatchKeyResponse) recipes.Entry { return wire.Entry(m.GetEntry()) })
}

func (c configuration) WatchTree(ctx context.Context) (<-chan []recipes.Entry, error) {
	return follow(ctx, c.recipe, configurationService.WatchKeys, &pb.WatchKeysRequest{Session: c.s.Handle(), Path: c.path},
		func(m *pb.WatchKeysResponse) []recipes.Entry { return wire.Each(m.GetEntries(), wire.Entry) })
}

type counter struct{ recipe }

func (s *session) Counter(path string, cfg recipes.CounterConfig) (recipes.Counter, error) {
	r, err := s.at("counter", path, cfg.Dialect, notRoot(path, "the root cannot be written"))
	if err != nil {
		return nil, err
	}
	return counter{r}, nil
}

func (c counter) Get(ctx context.Context) (int64, error) {
	return read(ctx, c.recipe, counterService.GetCount,
		&pb.GetCountRequest{Session: c.s.Handle(), Path: c.path, Dialect: c.dialect}, (*pb.GetCountResponse).GetCount)
}

func (c counter) Add(ctx context.Context, delta int64) (int64, error) {
	return write(ctx, c.recipe, link.AtMostOnce(), counterService.AddCount,
		&pb.AddCountRequest{Session: c.s.Handle(), Path: c.path, Delta: delta, Dialect: c.dialect}, (*pb.AddCountResponse).GetCount)
}

type latch struct {
	recipe
	count int64
}

func (s *session) Latch(path string, cfg recipes.LatchConfig) (recipes.Latch, error) {
	r, err := s.at("latch", path, "", cfg.Validate())
	if err != nil {
		return nil, err
	}
	return latch{r, cfg.Count}, nil
}

func (l latch) Count(ctx context.Context) (int64, error) {
	return read(ctx, l.recipe, latchService.GetLatch,
		&pb.GetLatchRequest{Session: l.s.Handle(), Path: l.path, Count: l.count}, (*pb.GetLatchResponse).GetRemaining)
}

func (l latch) CountDown(ctx context.Context) (int64, error) {
	return write(ctx, l.recipe, link.AtMostOnce(), latchService.CountDownLatch,
		&pb.CountDownLatchRequest{Session: l.s.Handle(), Path: l.path, Count: l.count}, (*pb.CountDownLatchResponse).GetRemaining)
}

func (l latch) Wait(ctx context.Context) error {
	_, err := read(ctx, l.recipe, latchService.WaitLatch, &pb.WaitLatchRequest{Session: l.s.Handle(), Path: l.path, Count: l.count}, nothing)
	return err
}
