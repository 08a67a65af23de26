//go:build unix

package carry_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// BenchmarkTransport compares a gRPC call, a call on a connection of calls and the bare TLS
// connection, the lower bound of a call's cost. All three have mutual TLS on a Unix socket
// and a request of 120 bytes. Both ends run in this process, so cpu-ns/op includes both.
func BenchmarkTransport(b *testing.B) {
	b.Run("via=unary", func(b *testing.B) { benchmarkCalls(b, secured(b, false)) })
	b.Run("via=connection", func(b *testing.B) { benchmarkCalls(b, secured(b, true)) })
	b.Run("via=tls", func(b *testing.B) { benchmarkCalls(b, bareTLS(b)) })
}

// BenchmarkConnections compares one connection for all callers with one for each, as if each
// session had its own.
func BenchmarkConnections(b *testing.B) {
	for _, connections := range []int{1, 20} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			calls := make([]func() error, connections)
			for i := range calls {
				calls[i] = secured(b, true)
				must.Do(b, calls[i]())
			}
			var all sync.WaitGroup
			used := processor()
			b.ResetTimer()
			for i := range 20 {
				all.Go(func() {
					for range (b.N + 19) / 20 {
						must.Report(b, calls[i%connections]())
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(processor()-used)/float64(b.N), "cpu-ns/op")
		})
	}
}

func benchmarkCalls(b *testing.B, call func() error) {
	b.Run("callers=1", func(b *testing.B) {
		var took []time.Duration
		before := processor()
		b.ReportAllocs()
		for b.Loop() {
			start := time.Now()
			must.Do(b, call())
			took = append(took, time.Since(start))
		}
		b.ReportMetric(float64(processor()-before)/float64(b.N), "cpu-ns/op")
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
	})
	b.Run("callers=20", func(b *testing.B) {
		b.SetParallelism(max(1, 20/runtime.GOMAXPROCS(0)))
		before := processor()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				must.Report(b, call())
			}
		})
		b.ReportMetric(float64(processor()-before)/float64(b.N), "cpu-ns/op")
	})
}

func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// mutual returns the two sides' configurations of mutual TLS.
func mutual(b *testing.B) (server, client *tls.Config) {
	pool := x509.NewCertPool()
	var certs []tls.Certificate
	for range 2 {
		cert, pem, err := handshake.NewCertificate()
		if err != nil {
			b.Fatal(err)
		}
		pool.AppendCertsFromPEM(pem)
		certs = append(certs, cert)
	}
	server = &tls.Config{Certificates: certs[:1], ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	client = &tls.Config{Certificates: certs[1:], RootCAs: pool, ServerName: handshake.CertificateName}
	return server, client
}

func unixSocket(b *testing.B) net.Listener {
	l := must.Get(net.Listen("unix", filepath.Join(b.TempDir(), "s")))(b)
	return l
}

// secured returns a function that makes a call of a service: carried on a connection, or over
// gRPC.
func secured(b *testing.B, carried bool) func() error {
	server, client := mutual(b)
	d := carry.NewDispatcher(carry.Config{})
	g := grpc.NewServer(grpc.Creds(credentials.NewTLS(server)), grpc.WaitForHandlers(true))
	pb.RegisterGrantServiceServer(g, locks{acquire: echo})
	pb.RegisterGrantServiceServer(d, locks{acquire: echo})
	l := unixSocket(b)
	var running sync.WaitGroup
	running.Go(func() { _ = g.Serve(l) })
	conn := must.Get(grpc.NewClient("unix:"+l.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(client)), carry.DialOption(nil)))(b)
	ctx, cancel := context.WithCancel(context.Background())
	over := carry.New(conn, nil)
	if carried {
		over = carry.New(conn, dialer(ctx, &running, d, unixSocket(b), server, client))
		calls, _ := over.Start()
		running.Go(func() { calls.Run(ctx) })
		<-calls.Settled()
	}
	b.Cleanup(func() {
		cancel()
		_ = conn.Close()
		g.Stop()
		running.Wait()
	})
	locks, request := pb.NewGrantServiceClient(over), &pb.AcquireRequest{Data: make([]byte, 110)}
	return func() error {
		_, err := locks.Acquire(context.Background(), request)
		return err
	}
}

// dialer serves one connection of calls, and returns how to open it.
func dialer(ctx context.Context, running *sync.WaitGroup, d *carry.Dispatcher, l net.Listener, server, client *tls.Config) carry.Dialer {
	running.Go(func() {
		raw, err := l.Accept()
		if err == nil {
			d.ServeConn(ctx, carry.Abrupt(tls.Server(raw, server), raw))
		}
	})
	return func(ctx context.Context) (net.Conn, error) {
		raw, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			return nil, err
		}
		conn := tls.Client(raw, client)
		return carry.Abrupt(conn, raw), conn.HandshakeContext(ctx)
	}
}

// bareTLS returns a function that sends 120 bytes and receives 120 without parsing them.
func bareTLS(b *testing.B) func() error {
	server, client := mutual(b)
	l := unixSocket(b)
	var running sync.WaitGroup
	running.Go(func() {
		raw, err := l.Accept()
		if err != nil {
			return
		}
		conn := tls.Server(raw, server)
		defer conn.Close()
		message := make([]byte, 120)
		for {
			if _, err := io.ReadFull(conn, message); err != nil {
				return
			}
			if _, err := conn.Write(message); err != nil {
				return
			}
		}
	})
	conn := must.Get(tls.Dial("unix", l.Addr().String(), client))(b)
	b.Cleanup(func() {
		_ = conn.Close()
		_ = l.Close()
		running.Wait()
	})
	var mu sync.Mutex
	message := make([]byte, 120)
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		if _, err := conn.Write(message); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, message)
		return err
	}
}
