package zkserver_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"
)

// play runs a script against the server at addr and returns the transcript.
// The language is described in testdata/conformance/README.md.
func play(addr, name, script string) (transcript string, err error) {
	p := &player{
		addr: addr, root: "/conformance-" + name, start: time.Now(),
		clients: map[string]*rawClient{}, names: map[int64]string{}, marks: map[string]int64{},
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("line %d: %v\ntranscript so far:\n%s", p.line, r, p.out.String())
		}
		p.hangUp()
	}()
	p.setUp()
	lines := strings.Split(script, "\n")
	for p.line < len(lines) {
		text := lines[p.line]
		p.line++
		if strings.TrimSpace(text) == "" || strings.HasPrefix(text, "#") {
			continue
		}
		var block []string
		for p.line < len(lines) && strings.HasPrefix(lines[p.line], "  ") {
			block = append(block, lines[p.line])
			p.line++
		}
		fmt.Fprintln(&p.out, text)
		for _, b := range block {
			fmt.Fprintln(&p.out, b)
		}
		if name, ok := strings.CutPrefix(text, "need "); ok {
			if p.client(name).refused {
				break
			}
			continue
		}
		p.command(text, block)
	}
	p.cleanUp()
	return p.out.String(), nil
}

type player struct {
	addr, root string
	start      time.Time
	line       int
	out        strings.Builder
	control    *rawClient
	clients    map[string]*rawClient
	names      map[int64]string // sessions
	left       []*rawClient     // sessions without a connection
	base       int64            // zxid when the script began
	last       int64            // latest zxid seen
	marks      map[string]int64
}

func orPanic[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func (p *player) setUp() {
	p.control = orPanic(dial("control", p.addr, connectOptions{timeout: 30000}))
	p.ask(p.control, 1, args{path: p.root}.body(1))
	p.base = p.last
}

// ask sends a request of the runner itself. The transcript does not show it.
func (p *player) ask(c *rawClient, op int32, body []byte) ([]byte, int32) {
	check(c.send(op, body))
	for {
		frame := orPanic(c.frame())
		r := reader{frame}
		xid, zxid, code := r.i32(), r.i64(), r.i32()
		if xid == -1 {
			continue
		}
		p.last = max(p.last, zxid)
		c.pending = nil
		return r.b, code
	}
}

// cleanUp closes every session of the script and deletes its znodes. A session that
// expired later would use a transaction id during another script.
func (p *player) cleanUp() {
	for _, c := range p.clients {
		p.closeSession(c)
		p.left = append(p.left, c) // the server may have hung up before
	}
	for _, c := range p.left {
		if c.session == 0 {
			continue
		}
		back, err := dial("", p.addr, connectOptions{timeout: 30000, session: c.session, password: c.password})
		switch {
		case err != nil:
		case back.session == c.session:
			p.closeSession(back)
		default: // the session has ended
			back.nc.Close()
		}
	}
	p.deleteAll(p.root)
	p.closeSession(p.control)
}

func (p *player) closeSession(c *rawClient) {
	defer c.nc.Close()
	if c.send(-11, nil) == nil {
		for {
			if _, err := c.frame(); err != nil {
				return
			}
		}
	}
}

func (p *player) deleteAll(path string) {
	body, code := p.ask(p.control, 8, args{path: path}.body(8))
	if code == 0 {
		r := reader{body}
		for _, child := range r.strs() {
			p.deleteAll(path + "/" + child)
		}
	}
	p.ask(p.control, 2, args{path: path, vals: map[string]string{"version": "-1"}}.body(2))
}

func (p *player) hangUp() {
	if p.control != nil {
		p.control.nc.Close()
	}
	for _, c := range p.clients {
		c.nc.Close()
	}
}

func (p *player) say(format string, a ...any) {
	fmt.Fprintf(&p.out, "    "+format+"\n", a...)
}

func (p *player) parse(words []string) args {
	a := args{vals: map[string]string{}}
	for i, w := range words {
		w = strings.NewReplacer("$", p.root, `\0`, "\x00", `\u0001`, "\x01", `\uf000`, "\uf000", `\ue000`, "\ue000", `\ud7ff`, "\ud7ff", `\uffef`, "\uffef", `\ufffd`, "\ufffd").Replace(w)
		key, value, ok := strings.Cut(w, "=")
		switch {
		case ok && !strings.HasPrefix(w, "/"):
			if z, marked := p.marks[value]; marked {
				value = fmt.Sprint(z)
			}
			a.vals[key] = value
		case i == 0 && w != "watch":
			a.path = w
			if w == `""` {
				a.path = ""
			}
		default:
			a.words = append(a.words, w)
		}
	}
	return a
}

func (p *player) command(text string, block []string) {
	words := strings.Fields(text)
	switch words[0] {
	case "open", "resume":
		p.open(words[1], words[0] == "resume", p.parse(words[1:]))
	case "hangup":
		c := p.client(words[1])
		c.nc.Close()
		p.left = append(p.left, c)
		delete(p.clients, words[1])
	case "drain":
		c := p.client(words[1])
		check(c.send(11, nil))
		p.replies(c)
	case "await":
		for range int(p.parse(words[1:]).num("n", 1)) {
			p.next(p.client(words[1]))
		}
	case "eof":
		c := p.client(words[1])
		for p.next(c) {
		}
	case "mark":
		p.marks[words[1]] = p.last
	case "word":
		p.word(words[1])
	case "length":
		// Only the length of a packet is sent.
		var w buf
		w.i32(int32(p.parse(words[1:]).num("n", 0)))
		_, err := p.client(words[1]).nc.Write(w.b)
		check(err)
	default:
		p.request(p.client(words[0]), words[1], words[2:], block)
	}
}

func (p *player) client(name string) *rawClient {
	c := p.clients[name]
	if c == nil {
		panic("no client " + name)
	}
	return c
}

func (p *player) open(name string, resume bool, a args) {
	o := connectOptions{timeout: int32(a.num("timeout", 4000)), lastZxid: a.num("zxid", 0), old: a.has("old")}
	if from := a.vals["from"]; resume {
		for _, c := range append(slices.Collect(maps.Values(p.clients)), p.left...) {
			if c.name == from {
				o.session, o.password = c.session, c.password
			}
		}
		o.session = a.num("id", o.session)
		if a.vals["password"] == "bad" {
			o.password = make([]byte, 16)
		}
	}
	c, err := dial(name, p.addr, o)
	if errors.Is(err, errClosed) {
		p.say("closed")
		return
	}
	check(err)
	if c.session == 0 {
		p.say("expired timeout=%d password=%x", c.timeout, c.password)
		if _, err := c.frame(); err != nil {
			p.say("%v", err)
		}
		return
	}
	if _, known := p.names[c.session]; !known {
		p.names[c.session] = name
	}
	p.clients[name] = c
	p.say("session=%s timeout=%d", p.names[c.session], c.timeout)
}

func (p *player) word(w string) {
	nc := orPanic(net.DialTimeout("tcp", p.addr, patience))
	defer nc.Close()
	orPanic(nc.Write([]byte(w)))
	check(nc.SetReadDeadline(time.Now().Add(patience)))
	answer := orPanic(io.ReadAll(nc))
	// The order of mntr's lines is unspecified.
	for _, line := range slices.Sorted(strings.Lines(string(answer))) {
		p.word1(strings.TrimSpace(line))
	}
}

// word1 shows the parts of one line of the answer that are the same in each run.
func (p *player) word1(line string) {
	key, value, _ := strings.Cut(strings.ReplaceAll(line, "\t", ": "), ": ")
	switch key {
	case "imok":
		p.say("%s", key)
	case "zk_server_state", "zk_outstanding_requests", "Mode", "Outstanding":
		p.say("%s: %s", key, value)
	case "Zookeeper version", "Latency min/avg/max", "Received", "Sent", "Connections", "Zxid", "Node count",
		"zk_version", "zk_num_alive_connections", "zk_packets_received", "zk_packets_sent",
		"zk_uptime", "zk_znode_count", "zk_ephemerals_count", "zk_watch_count",
		"zk_global_sessions", "zk_approximate_data_size", "zk_avg_latency", "zk_max_latency",
		"zk_min_latency", "zk_bytes_received_count", "zk_local_sessions":
		p.say("%s: *", key)
	}
}

// request sends one request, or the block of a pipeline, and shows every frame up to the
// last reply.
func (p *player) request(c *rawClient, op string, words, block []string) {
	if c.refused {
		c = p.back(c)
	}
	switch op {
	case "pipeline":
		for _, line := range block {
			words := strings.Fields(line)
			p.send(c, words[0], words[1:], nil)
		}
	default:
		p.send(c, op, words, block)
	}
	p.replies(c)
}

// back resumes the session of a client whose request was not implemented. The server closes
// that connection.
func (p *player) back(c *rawClient) *rawClient {
	for c.pending = nil; p.next(c); {
	}
	c.nc.Close()
	again := orPanic(dial(c.name, p.addr, connectOptions{timeout: c.timeout, session: c.session, password: c.password}))
	p.clients[c.name] = again
	p.say("%s: resumed session=%s", c.name, p.names[again.session])
	return again
}

func (p *player) send(c *rawClient, op string, words, block []string) {
	a := p.parse(words)
	code, ok := opCodes[op]
	if !ok {
		if _, err := fmt.Sscanf(op, "op%d", &code); err != nil {
			panic("no operation " + op)
		}
	}
	body := a.body(code)
	if code == 14 || code == 22 {
		var w buf
		for _, line := range block {
			words := strings.Fields(line)
			part := opCodes[words[0]]
			w.i32(part)
			w.bool(false)
			w.i32(-1)
			w.b = append(w.b, p.parse(words[1:]).body(part)...)
		}
		w.i32(-1)
		w.bool(true)
		w.i32(-1)
		body = w.b
	}
	check(c.send(code, body))
}

func (p *player) replies(c *rawClient) {
	for len(c.pending) > 0 {
		if !p.next(c) {
			return
		}
	}
}
