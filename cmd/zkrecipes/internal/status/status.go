// Package status serves the state of a verb by HTTP, for probes, load balancers and Prometheus:
// /healthz, /leader and /metrics.
package status

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/zkrecipes/zkrecipes/internal/printable"
	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Server serves the state of one verb. A nil Server serves nothing, and its methods do nothing.
type Server struct {
	// Meters gets the metrics that /metrics shows.
	Meters metric.MeterProvider

	listener net.Listener
	http     *http.Server
	done     chan struct{} // closed when http has ended

	mu      sync.Mutex
	session recipes.Session // the latest, or nil
	grants  map[*held]struct{}
}

// held is a grant at a path.
type held struct {
	path string
	recipes.Grant
}

// Check returns an error if an address is not of the form host:port.
func Check(address string) error {
	if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
		return errors.New("give host:port, for example 127.0.0.1:8080")
	}
	return nil
}

// Listen serves at an address, host:port, until Close.
func Listen(address string) (*Server, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, err
	}
	// The calls between this process and its plugin would fill the page.
	onlyRecipes := sdkmetric.WithView(func(i sdkmetric.Instrument) (sdkmetric.Stream, bool) {
		return sdkmetric.Stream{Aggregation: sdkmetric.AggregationDrop{}}, i.Scope.Name != telemetry.Scope
	})
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Meters:   sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), onlyRecipes),
		listener: &listener{Listener: tcp, scarce: scarce}, done: make(chan struct{}), grants: make(map[*held]struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /leader", s.leader)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	s.http = &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	s.http.SetKeepAlivesEnabled(false) // an idle connection keeps a descriptor
	go func() {                        // until Close
		defer close(s.done)
		_ = s.http.Serve(s.listener)
	}()
	return s, nil
}

// URL returns where the server is.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Close ends the server and its connections.
func (s *Server) Close() {
	if s == nil {
		return
	}
	_ = s.http.Close()
	<-s.done
}

// Opened shows the state of a session from now on.
func (s *Server) Opened(session recipes.Session) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = session
}

// Granted shows a grant at path, until end is called or the grant has ended.
func (s *Server) Granted(path string, g recipes.Grant) (end func()) {
	if s == nil {
		return func() {}
	}
	h := &held{path, g}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants[h] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.grants, h)
	}
}

// healthz always answers 200 while this process works, because a restart would not help: zkrecipes
// itself waits for servers and replaces sessions. The text shows the state of the session.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := "none"
	if s.session != nil {
		state = s.session.State().String()
	}
	answer(w, http.StatusOK, "session: %s", state)
}

// leader answers 200 while a grant is held.
func (s *Server) leader(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lost error
	for h := range s.grants {
		if err := h.Err(); err != nil {
			lost = cmp.Or(lost, err)
			continue
		}
		answer(w, http.StatusOK, "holds %s, token %d", h.path, h.Token())
		return
	}
	answer(w, http.StatusServiceUnavailable, "%v", cmp.Or(lost, errWaits))
}

var errWaits = errors.New("holds nothing")

// answer writes one line. curl may show it on a terminal.
func answer(w http.ResponseWriter, code int, format string, args ...any) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, printable.Line(fmt.Sprintf(format, args...))+"\n")
}

const (
	// mostConnections is more than a load balancer, a probe and Prometheus need at a time.
	mostConnections = 16
	// spare is how many descriptors connections leave to the rest of the process: to start
	// the command, or another plugin.
	spare = 32
)

// listener keeps few connections open, so that they do not use up the descriptors of this process.
// When another connection arrives it closes the oldest one, which has been answered or is idle.
type listener struct {
	net.Listener
	scarce func() bool // whether fewer descriptors than spare are free

	mu   sync.Mutex
	open []*connection // the oldest first
}

type connection struct {
	net.Conn
	from *listener
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		added := &connection{c, l}
		if l.add(added) {
			return added, nil
		}
		_ = c.Close()
	}
}

// add adds a connection, and may close the oldest one for it. It returns false if there is no
// room.
func (l *listener) add(c *connection) bool {
	scarce := l.scarce()
	l.mu.Lock()
	var oldest *connection
	if len(l.open) > 0 && (scarce || len(l.open) == mostConnections) {
		oldest = l.open[0]
		l.open = l.open[1:]
	}
	added := oldest != nil || !scarce
	if added {
		l.open = append(l.open, c)
	}
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return added
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.from.mu.Lock()
	c.from.open = slices.DeleteFunc(c.from.open, func(other *connection) bool { return other == c })
	c.from.mu.Unlock()
	return c.Conn.Close()
}
