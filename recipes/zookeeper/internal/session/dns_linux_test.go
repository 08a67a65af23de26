package session_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// silentEnv marks the test's child process, which has its own namespaces.
const silentEnv = "ZKRECIPES_TEST_SILENT_NAME_SERVER"

// The first of two name servers is dead. The system's resolver asks the second after five seconds
// (here three, more than ConnectTimeout), and curl and Java connect. It runs with a resolv.conf and a network of its own.
func TestASilentNameServerDelaysOpenOnly(t *testing.T) {
	if os.Getenv(silentEnv) == "" {
		if os.Getuid() != 0 {
			t.Skip("NO SILENT NAME SERVER WAS TRIED: it needs root, for namespaces of its own")
		}
		cmd := exec.CommandContext(zktest.Bounded(t), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), silentEnv+"=1", "GODEBUG=netdns=go")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.EPERM) {
			t.Skip("NO SILENT NAME SERVER WAS TRIED: this machine has no namespaces")
		}
		if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	loopbackUp(t)
	file := filepath.Join(t.TempDir(), "resolv.conf")
	must.Do(t, os.WriteFile(file, []byte("nameserver 127.0.0.3\nnameserver 127.0.0.2\noptions timeout:3\n"), 0o644))
	must.Do(t, unix.Mount(file, "/etc/resolv.conf", "", unix.MS_BIND, ""))
	silent := must.Get(net.ListenPacket("udp", "127.0.0.3:53"))(t)
	defer silent.Close()
	answers := must.Get(net.ListenPacket("udp", "127.0.0.2:53"))(t)
	defer answers.Close()
	go serveDNS(answers)

	srv := embedded(t)
	_, port, _ := net.SplitHostPort(srv.Addr())
	begun := time.Now()
	s := must.Get(session.Open(zktest.Bounded(t), recipes.SessionConfig{Servers: []string{"zk1.test:" + port}}, nil))(t)
	defer closeNow(s)
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("it took %v: the first name server was not asked", took)
	}
	must.Do(t, answers.Close()) // now both are silent
	begun = time.Now()
	cutAndWait(t, srv, s)
	t.Logf("connected again after %v", time.Since(begun))
	answers = must.Get(net.ListenPacket("udp", "127.0.0.2:53"))(t) // so that the look-up under way ends
	defer answers.Close()
	go serveDNS(answers)
}

func loopbackUp(t *testing.T) {
	t.Helper()
	fd := must.Get(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0))(t)
	defer unix.Close(fd)
	lo := must.Get(unix.NewIfreq("lo"))(t)
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	must.Do(t, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo))
}

// serveDNS answers that each name has the address 127.0.0.1.
func serveDNS(c net.PacketConn) {
	for buf := make([]byte, 512); ; {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		m.Header.Response, m.Additionals = true, nil
		if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 60},
				Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
			}}
		}
		if out, err := m.Pack(); err == nil {
			_, _ = c.WriteTo(out, from)
		}
	}
}
