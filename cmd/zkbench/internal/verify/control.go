package verify

import (
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// The plugin of a host that is checked is a process of this program: see ServePlugin. It reports
// each call and each message to the checker, by net/rpc over a socket, and does what the checker
// answers.

const controlSocket = "control"

// Launch describes a plugin process that has started.
type Launch struct {
	PID int
	Env map[string]string // the variables of the handshake

	at time.Time
}

// Orders say how a plugin process behaves from its start.
type Orders struct {
	Version          int  // in the line of the handshake
	OtherCertificate bool // that line has a certificate which the plugin does not use
	Newer            bool // the plugin sends what this version of the protocol does not have
}

// Event is a call or message that the plugin has received, or a message that it is about to send
// on a stream.
type Event struct {
	PID     int
	Name    string // the method; "Beat" for a heartbeat, "Leave" before the process exits
	Sent    bool
	Message []byte // a google.protobuf.Any
}

// Verdict is what the plugin does about an event.
type Verdict int

const (
	// Proceed is what a plugin without defects does.
	Proceed Verdict = iota
	// Hang never answers, and does not send.
	Hang
	// Refuse fails a call without a reason, as if the connection had failed, and does not carry
	// it out.
	Refuse
	// Lose carries the call out, and does not answer before the host has stopped waiting.
	Lose
	// Die carries the call out, and kills the process before the answer.
	Die
	// Doubt carries the call out, and answers UNKNOWN_OUTCOME.
	Doubt
	// Rename fails the call with CONTENDED, and a more specific reason that hosts do not know.
	Rename
	// Cut ends the session's stream. The process runs on.
	Cut
	// Quit closes the sessions and exits.
	Quit
)

type sighting struct {
	Event
	process int // 0 for the first plugin process
	message proto.Message
	at      time.Time
}

// control are the methods for plugin processes.
type control struct{ h *hostBench }

// Launched is called before the handshake.
func (c control) Launched(l Launch, o *Orders) error {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	l.at = time.Now()
	c.h.processes = append(c.h.processes, l)
	*o = c.h.orders
	return nil
}

// Saw is called for each event.
func (c control) Saw(e Event, v *Verdict) error {
	any := &anypb.Any{}
	if err := proto.Unmarshal(e.Message, any); err != nil {
		return err
	}
	m, err := any.UnmarshalNew()
	if err != nil {
		return err
	}
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	s := sighting{e, slices.IndexFunc(c.h.processes, func(l Launch) bool { return l.PID == e.PID }), m, time.Now()}
	c.h.seen = append(c.h.seen, s)
	if r, ok := m.(*pb.OpenRequest); ok && r.GetStart().GetResume() != nil {
		for _, l := range c.h.processes[:s.process] {
			c.h.early = c.h.early || running(l.PID)
		}
	}
	next := c.h.next[e.Name]
	switch {
	case s.process >= c.h.silentFrom:
		*v = Hang
	case !e.Sent && len(next) > 0:
		*v, c.h.next[e.Name] = next[0], next[1:]
	}
	return nil
}

// Wait returns when the plugin process must end, because the part has.
func (c control) Wait(int, *bool) error {
	<-c.h.over
	return nil
}

func (h *hostBench) serveControl() error {
	l, err := net.Listen("unix", filepath.Join(h.dir, controlSocket))
	if err != nil {
		return err
	}
	server := rpc.NewServer()
	if err := server.RegisterName("Control", control{h}); err != nil {
		return err
	}
	h.serving.Go(func() {
		<-h.over
		_ = l.Close()
	})
	h.serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // the part has ended
			}
			h.serving.Go(func() { server.ServeConn(conn) }) // ends with the process
		}
	})
	return nil
}

// running reports whether the process exists. It does until its parent has waited for it.
func running(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}
