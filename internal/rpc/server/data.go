package server

import (
	"context"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func names(t target) (recipes.Names, error) { return t.Names(t.path) }

func registerName(ctx context.Context, t target, r *pb.AcquireRequest, m *pb.Names) (*grant, error) {
	if err := t.plain(); err != nil {
		return nil, err
	}
	n, err := names(t)
	if err != nil {
		return nil, err
	}
	register := func(ctx context.Context) (recipes.Registration, error) {
		return n.Register(ctx, m.GetName(), r.GetData())
	}
	return grantOf(ctx, r, n, register, nil, recipes.Registration.Unregister)
}

func (s service) RegisterName(ctx context.Context, r *pb.RegisterNameRequest) (*pb.RegisterNameResponse, error) {
	return &pb.RegisterNameResponse{}, do(s.Server, r, names, func(n recipes.Names) error {
		return n.RegisterPersistent(ctx, r.GetName(), r.GetData())
	})
}

func (s service) UpdateName(ctx context.Context, r *pb.UpdateNameRequest) (*pb.UpdateNameResponse, error) {
	return &pb.UpdateNameResponse{}, update(ctx, s.Server, r)
}

func (s service) UnregisterName(ctx context.Context, r *pb.UnregisterNameRequest) (*pb.UnregisterNameResponse, error) {
	return &pb.UnregisterNameResponse{}, do(s.Server, r, names, func(n recipes.Names) error {
		return n.Unregister(ctx, r.GetName(), recipes.Token(r.GetToken()))
	})
}

func (s service) LookupName(ctx context.Context, r *pb.LookupNameRequest) (*pb.LookupNameResponse, error) {
	record, err := with(s.Server, r, names, func(n recipes.Names) (recipes.Record, error) { return n.Lookup(ctx, r.GetName()) })
	return &pb.LookupNameResponse{Record: wire.ToRecord(record)}, err
}

func (s service) ListNames(ctx context.Context, r *pb.ListNamesRequest) (*pb.ListNamesResponse, error) {
	records, err := with(s.Server, r, names, func(n recipes.Names) ([]recipes.Record, error) { return n.List(ctx) })
	return &pb.ListNamesResponse{Records: wire.Each(records, wire.ToRecord)}, err
}

func (s service) WatchName(r *pb.WatchNameRequest, st grpc.ServerStreamingServer[pb.WatchNameResponse]) error {
	values := func(n recipes.Names) (<-chan recipes.Record, error) { return n.Watch(st.Context(), r.GetName()) }
	return watch(s.Server, r, st, names, values, func(r recipes.Record) *pb.WatchNameResponse {
		return &pb.WatchNameResponse{Record: wire.ToRecord(r)}
	})
}

func joinGroup(ctx context.Context, t target, r *pb.AcquireRequest, m *pb.Group) (*grant, error) {
	g, err := t.Group(t.path, recipes.GroupConfig{Name: m.GetName(), Dialect: t.dialect})
	if err != nil {
		return nil, err
	}
	join := func(ctx context.Context) (recipes.Membership, error) { return g.Join(ctx, r.GetData()) }
	return grantOf(ctx, r, g, join, nil, recipes.Membership.Leave)
}

func (s service) Update(ctx context.Context, r *pb.UpdateRequest) (*pb.UpdateResponse, error) {
	return &pb.UpdateResponse{}, update(ctx, s.Server, r)
}

type updater interface {
	Update(context.Context, []byte) error
}

func update(ctx context.Context, s *Server, r interface {
	request
	GetData() []byte
}) error {
	return withGrant(s, r, "nothing that can be updated", func(_ *session, _ *acquisition, u updater) error {
		return u.Update(ctx, r.GetData())
	})
}

// group opens a group for calls that do not depend on the caller's own name in it.
func group(t target) (recipes.Group, error) {
	return t.Group(t.path, recipes.GroupConfig{Dialect: t.dialect})
}

func (s service) Members(ctx context.Context, r *pb.MembersRequest) (*pb.MembersResponse, error) {
	members, err := with(s.Server, r, group, func(g recipes.Group) ([]recipes.Member, error) { return g.Members(ctx) })
	return &pb.MembersResponse{Members: wire.Each(members, wire.ToMember)}, err
}

func (s service) WatchMembers(r *pb.WatchMembersRequest, st grpc.ServerStreamingServer[pb.WatchMembersResponse]) error {
	values := func(g recipes.Group) (<-chan []recipes.Member, error) { return g.Watch(st.Context()) }
	return watch(s.Server, r, st, group, values, func(ms []recipes.Member) *pb.WatchMembersResponse {
		return &pb.WatchMembersResponse{Members: wire.Each(ms, wire.ToMember)}
	})
}

func configuration(t target) (recipes.Configuration, error) { return t.Configuration(t.path) }

func (s service) GetKey(ctx context.Context, r *pb.GetKeyRequest) (*pb.GetKeyResponse, error) {
	e, err := with(s.Server, r, configuration, func(c recipes.Configuration) (recipes.Entry, error) { return c.Get(ctx, r.GetKey()) })
	return &pb.GetKeyResponse{Entry: wire.ToEntry(e)}, err
}

func (s service) SetKey(ctx context.Context, r *pb.SetKeyRequest) (*pb.SetKeyResponse, error) {
	revision, err := with(s.Server, r, configuration, func(c recipes.Configuration) (recipes.Revision, error) {
		return c.Set(ctx, r.GetKey(), r.GetValue(), recipes.Revision(r.GetExpected()))
	})
	return &pb.SetKeyResponse{Revision: int64(revision)}, err
}

func (s service) DeleteKey(ctx context.Context, r *pb.DeleteKeyRequest) (*pb.DeleteKeyResponse, error) {
	return &pb.DeleteKeyResponse{}, do(s.Server, r, configuration, func(c recipes.Configuration) error {
		return c.Delete(ctx, r.GetKey(), recipes.Revision(r.GetExpected()))
	})
}

func (s service) SnapshotKeys(ctx context.Context, r *pb.SnapshotKeysRequest) (*pb.SnapshotKeysResponse, error) {
	entries, err := with(s.Server, r, configuration, func(c recipes.Configuration) ([]recipes.Entry, error) { return c.Snapshot(ctx) })
	return &pb.SnapshotKeysResponse{Entries: wire.Each(entries, wire.ToEntry)}, err
}

func (s service) WatchKey(r *pb.WatchKeyRequest, st grpc.ServerStreamingServer[pb.WatchKeyResponse]) error {
	values := func(c recipes.Configuration) (<-chan recipes.Entry, error) { return c.Watch(st.Context(), r.GetKey()) }
	return watch(s.Server, r, st, configuration, values, func(e recipes.Entry) *pb.WatchKeyResponse {
		return &pb.WatchKeyResponse{Entry: wire.ToEntry(e)}
	})
}

func (s service) WatchKeys(r *pb.WatchKeysRequest, st grpc.ServerStreamingServer[pb.WatchKeysResponse]) error {
	values := func(c recipes.Configuration) (<-chan []recipes.Entry, error) { return c.WatchTree(st.Context()) }
	return watch(s.Server, r, st, configuration, values, func(es []recipes.Entry) *pb.WatchKeysResponse {
		return &pb.WatchKeysResponse{Entries: wire.Each(es, wire.ToEntry)}
	})
}

func counter(t target) (recipes.Counter, error) {
	return t.Counter(t.path, recipes.CounterConfig{Dialect: t.dialect})
}

func (s service) GetCount(ctx context.Context, r *pb.GetCountRequest) (*pb.GetCountResponse, error) {
	n, err := with(s.Server, r, counter, func(c recipes.Counter) (int64, error) { return c.Get(ctx) })
	return &pb.GetCountResponse{Count: n}, err
}

func (s service) AddCount(ctx context.Context, r *pb.AddCountRequest) (*pb.AddCountResponse, error) {
	n, err := with(s.Server, r, counter, func(c recipes.Counter) (int64, error) { return c.Add(ctx, r.GetDelta()) })
	return &pb.AddCountResponse{Count: n}, err
}

func latch(r interface{ GetCount() int64 }) func(target) (recipes.Latch, error) {
	return func(t target) (recipes.Latch, error) {
		return t.Latch(t.path, recipes.LatchConfig{Count: r.GetCount()})
	}
}

func (s service) GetLatch(ctx context.Context, r *pb.GetLatchRequest) (*pb.GetLatchResponse, error) {
	n, err := with(s.Server, r, latch(r), func(l recipes.Latch) (int64, error) { return l.Count(ctx) })
	return &pb.GetLatchResponse{Remaining: n}, err
}

func (s service) CountDownLatch(ctx context.Context, r *pb.CountDownLatchRequest) (*pb.CountDownLatchResponse, error) {
	n, err := with(s.Server, r, latch(r), func(l recipes.Latch) (int64, error) { return l.CountDown(ctx) })
	return &pb.CountDownLatchResponse{Remaining: n}, err
}

func (s service) WaitLatch(ctx context.Context, r *pb.WaitLatchRequest) (*pb.WaitLatchResponse, error) {
	return &pb.WaitLatchResponse{}, do(s.Server, r, latch(r), func(l recipes.Latch) error { return l.Wait(ctx) })
}
