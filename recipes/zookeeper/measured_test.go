package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// metrics are the metrics of one provider.
type metrics struct {
	*testing.T
	reader *sdkmetric.ManualReader
	opener recipes.Opener
}

// newMetrics returns the metrics of sessions that open opens by that dialer.
func newMetrics(t *testing.T, dial zookeeper.Dialer) metrics {
	r := sdkmetric.NewManualReader()
	return metrics{t, r, must.Get(dial.WithTelemetry(sdkmetric.NewMeterProvider(sdkmetric.WithReader(r))))(t)}
}

// read returns the values by name and attributes: sums, gauges, and the number of values of a
// histogram. Values of one name differ in the last words of the key.
func (m metrics) read() map[string]float64 {
	m.Helper()
	var all metricdata.ResourceMetrics
	must.Do(m.T, m.reader.Collect(context.Background(), &all))
	values := map[string]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, of := range scope.Metrics {
			switch data := of.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					values[strings.TrimSpace(of.Name+" "+words(p.Attributes.MarshalLog()))] = float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				values[of.Name] = data.DataPoints[0].Value
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					values[of.Name+" "+words(p.Attributes.MarshalLog())] = float64(p.Count)
				}
			}
		}
	}
	return values
}

// words joins the values of attributes, in the order of their names.
func words(attributes any) string {
	all := attributes.(map[string]string)
	var values []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		values = append(values, all[name])
	}
	return strings.Join(values, " ")
}

// are checks values that are given as "name words" and a number.
func (m metrics) are(when string, want map[string]float64) {
	m.Helper()
	got := m.read()
	for name, n := range want {
		if v, ok := got[name]; v != n || !ok {
			m.Errorf("%s: %s is %v (%v), want %v; all: %v", when, name, v, ok, n, got)
		}
	}
}

// total returns the sum of a metric's values, and the words of those that are not 0.
func (m metrics) total(name string) (sum float64, of []string) {
	for key, v := range m.read() {
		if rest, ok := strings.CutPrefix(key, name+" "); ok && v != 0 {
			sum, of = sum+v, append(of, rest)
		}
	}
	return sum, of
}

func (m metrics) open(timeout time.Duration, server string) recipes.Client {
	m.Helper()
	return must.Get(m.opener(context.Background(), recipes.SessionConfig{Servers: []string{server}, SessionTimeout: timeout}))(m.T)
}

// Each way to get a grant is counted, under the name that a host counts it by.
func TestEveryGrantIsMeasured(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	m := newMetrics(t, nil)
	s := m.open(10*time.Second, srv.Addr())
	grants := 1. // the passage below
	holds := func(w way, g recipes.Grant, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", w.Name, err)
		}
		grants++
		sum, of := m.total(telemetry.Holds)
		if sum != 1 || len(of) != 1 {
			t.Fatalf("%s: %v holds, of %q", w.Name, sum, of)
		}
		want := strings.ReplaceAll(w.Recipe(), " ", "-")
		if w.Method == "PriorityQueue.Receive" {
			want = "queue"
		}
		if of[0] != want {
			t.Errorf("%s is counted as %s; want %s", w.Name, of[0], want)
		}
		must.Do(t, w.GiveBack(ctx, g))
		if sum, of := m.total(telemetry.Holds); sum != 0 {
			t.Errorf("%s: %v holds are left, of %q", w.Name, sum, of)
		}
	}
	for i, w := range ways(operated | held | moved | waited) {
		path := fmt.Sprint("/way-", i)
		g, err := w.enter(ctx, s, path, nil)
		holds(w, g, err)
		if e := must.Get(w.Open(s, path, w.options))(t); e.Try != nil {
			g, err := e.Try(ctx)
			holds(w, g, err)
		}
	}
	passage := must.Get(must.Get(s.DoubleBarrier("/barrier", recipes.DoubleBarrierConfig{Size: 1}))(t).Enter(ctx, nil))(t)
	m.are("entered", map[string]float64{telemetry.Holds + " double-barrier": 1})
	must.Do(t, passage.Leave(ctx))
	m.are("left", map[string]float64{telemetry.Holds + " double-barrier": 0})
	portion := must.Get(must.Get(s.Shares("/shares", 1, recipes.SharesConfig{}))(t).Join(ctx))(t)
	for len(<-portion.Changes()) != 1 {
	}
	m.are("joined", map[string]float64{telemetry.Holds + " names": 1, telemetry.Holds + " group": 1, telemetry.Holds + " election": 1})
	must.Do(t, portion.Leave(ctx))
	grants += 3
	if waits, _ := m.total(telemetry.Wait); waits != grants {
		t.Errorf("%v waits, of %v grants", waits, grants)
	}
	if losses, of := m.total(telemetry.Losses); losses != 0 {
		t.Errorf("%v losses, of %q", losses, of)
	}
	must.Do(t, s.Close(ctx))
	m.are("closed", map[string]float64{telemetry.Sessions: 0})
}

// The counters of requests are those of Session.Stats, on a real server too. They do not fall
// when a session ends, and then include its last requests.
func TestRequestsAreMeasured(t *testing.T) {
	for _, server := range []struct {
		name string
		addr func(*testing.T) string
		srv  *zkserver.Server
	}{
		{name: "embedded", srv: zktest.Embedded(t)},
		{name: "real", addr: func(t *testing.T) string { return ensembletest.Shared(t).Connect() }},
	} {
		t.Run(server.name, func(t *testing.T) {
			ctx, m := zktest.Bounded(t), newMetrics(t, nil)
			addr := ""
			if server.srv != nil {
				addr = server.srv.Addr()
			} else {
				addr = server.addr(t)
			}
			s, other := m.open(10*time.Second, addr), m.open(10*time.Second, addr)
			h := must.Get(must.Get(s.Lock("/measured-lock", recipes.LockConfig{}))(t).Acquire(ctx))(t)
			must.Get(must.Get(other.Election("/measured-election", recipes.ElectionConfig{}))(t).Campaign(ctx, nil))(t)
			m.same(ctx, s, other)
			must.Do(t, h.Release(ctx))
			must.Do(t, s.Close(ctx))
			before := m.read()
			m.are("one closed", map[string]float64{
				telemetry.Sessions: 1, telemetry.Holds + " lock": 0, telemetry.Holds + " election": 1, telemetry.Requests + " closeSession": 1,
			})
			if left := before[telemetry.Remaining]; left <= 0 || left > 10 {
				t.Errorf("%v s are left", left)
			}
			must.Do(t, other.Close(ctx))
			after := m.read()
			for name, n := range before {
				if strings.HasPrefix(name, telemetry.Requests) && after[name] < n {
					t.Errorf("%s has fallen from %v to %v", name, n, after[name])
				}
			}
			if after[telemetry.Requests+" closeSession"] != 2 {
				t.Errorf("both closed: %v", after)
			}
			if _, ok := after[telemetry.Remaining]; ok {
				t.Error("no session is open, and one has a deadline")
			}
		})
	}
}

// same checks that the counters are the sums of Stats, unless a ping was sent in between.
func (m metrics) same(ctx context.Context, sessions ...recipes.Client) {
	m.Helper()
	for {
		stats := func() (all []recipes.Stats) {
			for _, s := range sessions {
				all = append(all, must.Get(s.Stats(ctx))(m.T))
			}
			return all
		}
		before := stats()
		got := m.read()
		if fmt.Sprint(before) != fmt.Sprint(stats()) {
			continue
		}
		want := map[string]float64{telemetry.Asked: 0, telemetry.Reconnects: 0}
		for _, s := range before {
			want[telemetry.Asked] += float64(s.Asked)
			want[telemetry.Reconnects] += float64(s.Reconnects)
			for kind, n := range s.ByKind {
				want[telemetry.Requests+" "+kind] += float64(n)
			}
		}
		for name, n := range want {
			if got[name] != n {
				m.Errorf("%s is %v, want %v", name, got[name], n)
			}
		}
		return
	}
}

// Each loss is counted by its reason, with the hold that it ends.
func TestLossesAreMeasuredByReason(t *testing.T) {
	for reason, lose := range map[string]func(srv *zkserver.Server, link *zktest.Link, s recipes.Client, h recipes.Hold){
		"REMOVED": func(_ *zkserver.Server, _ *zktest.Link, s recipes.Client, h recipes.Hold) {},
		"SESSION_EXPIRED": func(srv *zkserver.Server, _ *zktest.Link, s recipes.Client, _ recipes.Hold) {
			srv.ExpireSession(s.ID())
		},
		"SESSION_DEADLINE": func(_ *zkserver.Server, link *zktest.Link, _ recipes.Client, _ recipes.Hold) { link.Dead.Store(true) },
	} {
		t.Run(reason, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				srv := zkserver.New(zkserver.Config{})
				defer srv.Close()
				link := zktest.LinkTo(srv.ServeConn)
				m := newMetrics(t, link.Dial)
				s := m.open(9*time.Second, "server")
				h := zktest.Acquire(t, s)
				m.are("held", map[string]float64{
					telemetry.Losses + " hold " + reason + " lock": 0, telemetry.Losses + " session SESSION_EXPIRED": 0, telemetry.Holds + " lock": 1,
				})
				lost := h.Done()
				sessions := 0.
				if reason == "REMOVED" {
					other, end := zktest.OpenIn(t, srv)
					defer end()
					admin := must.Get(other.Lock("/admin", recipes.LockConfig{}))(t)
					must.Do(t, must.Get(admin.Acquire(t.Context()))(t).Write(t.Context(), recipes.Delete(h.Znode(), recipes.AnyVersion)))
					sessions = 1
				} else {
					lose(srv, link, s, h)
				}
				<-lost
				synctest.Wait()
				want := map[string]float64{
					telemetry.Losses + " hold " + reason + " lock": 1, telemetry.Holds + " lock": 0, telemetry.Sessions: sessions,
				}
				if sessions == 0 {
					want[telemetry.Losses+" session "+reason] = 1
				}
				m.are("lost", want)
				if n, of := m.total(telemetry.Losses); n != 2-sessions {
					t.Errorf("%v losses, of %q", n, of)
				}
				if err := s.Close(t.Context()); err != nil && !errors.Is(err, recipes.ErrUnknownOutcome) {
					t.Error(err)
				}
				m.are("closed", map[string]float64{telemetry.Sessions: 0, telemetry.Holds + " lock": 0})
			})
		})
	}
}

// The time until the deadline shrinks while the connection is cut, grows again after a
// reconnect, and is the shortest of all sessions.
func TestTheTimeUntilTheDeadlineIsMeasured(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		const timeout = 20 * time.Second
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		link, whole := zktest.LinkTo(srv.ServeConn), zktest.LinkTo(srv.ServeConn)
		m := newMetrics(t, func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "whole") {
				return whole.Dial(ctx, network, address)
			}
			return link.Dial(ctx, network, address)
		})
		s := m.open(timeout, "server")
		h := zktest.Acquire(t, s)
		left := func() time.Duration {
			return time.Duration(m.read()[telemetry.Remaining] * float64(time.Second)).Round(time.Millisecond)
		}
		near := func(when string, want time.Time) {
			t.Helper()
			if got, want := left(), time.Until(want); (got - want).Abs() > time.Millisecond {
				t.Errorf("%s: %v are left, want %v", when, got, want)
			}
		}
		time.Sleep(timeout)
		synctest.Wait() // a confirmation may be under way
		near("held", h.ValidUntil())
		if got := left(); got < timeout/4 {
			t.Errorf("held: only %v are left", got)
		}
		link.Dead.Store(true)
		link.Cut()
		before := left()
		for range 3 {
			time.Sleep(timeout / 10)
			now := left()
			if now != before-timeout/10 {
				t.Errorf("cut off: %v are left, after %v", now, before)
			}
			before = now
		}
		other := m.open(timeout, "whole")
		if now := left(); now != before {
			t.Errorf("beside another session: %v are left, want %v", now, before)
		}
		link.Dead.Store(false)
		link.Lead(srv.ServeConn)
		for s.State() != recipes.Connected {
			time.Sleep(time.Second)
		}
		time.Sleep(timeout)
		if got := left(); got < timeout/4 {
			t.Errorf("connected again: only %v are left", got)
		}
		m.are("connected again", map[string]float64{telemetry.Reconnects: 1})
		must.Do(t, s.Close(t.Context()))
		must.Do(t, other.Close(t.Context()))
	})
}

// Without a provider, and for a session that a plugin serves for its host, nothing is reported.
func TestOnlyItsOwnSessionsAreMeasured(t *testing.T) {
	ctx := zktest.Bounded(t)
	srv := zktest.Embedded(t)
	m := newMetrics(t, nil)
	without := metrics{t, m.reader, must.Get(zookeeper.WithTelemetry(nil))(t)}
	for _, c := range []struct {
		metrics
		ctx context.Context
	}{{without, ctx}, {m, telemetry.Served(ctx)}} {
		s := must.Get(c.opener(c.ctx, recipes.SessionConfig{Servers: []string{srv.Addr()}}))(t)
		must.Do(t, zktest.Acquire(t, s).Release(ctx))
		must.Do(t, s.Close(ctx))
	}
	for _, name := range []string{telemetry.Sessions, telemetry.Holds, telemetry.Wait} {
		for key := range m.read() {
			if strings.HasPrefix(key, name) {
				t.Errorf("%s is reported", key)
			}
		}
	}
}

// BenchmarkGrant measures a grant and its release, with the in-process server. Without
// telemetry it allocates as before; with it, two instruments and the hook of the end are added.
func BenchmarkGrant(b *testing.B) {
	srv := must.Get(zkserver.Listen(zkserver.Config{}))(b)
	defer srv.Close()
	measured := must.Get(zookeeper.WithTelemetry(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))))(b)
	for name, open := range map[string]recipes.Opener{"telemetry=off": zookeeper.Open, "telemetry=on": measured} {
		b.Run(name, func(b *testing.B) {
			ctx := context.Background()
			s := must.Get(open(ctx, recipes.SessionConfig{Servers: []string{srv.Addr()}}))(b)
			l := must.Get(s.Lock("/bench", recipes.LockConfig{}))(b)
			b.ReportAllocs()
			for b.Loop() {
				must.Do(b, must.Get(l.Acquire(ctx))(b).Release(ctx))
			}
			b.StopTimer()
			must.Do(b, s.Close(ctx))
		})
	}
}
