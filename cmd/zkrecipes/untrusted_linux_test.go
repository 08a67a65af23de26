package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/testing/logtest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// untrustedCalls are calls of each verb. The fields of a call are the arguments, and {NAME} stands
// for the entry of that name in untrustedWorld.
var untrustedCalls = map[string][]string{
	"audit":            {"/ {LOGS}", "-holds /l {LOGS}", "-html {PAGE} / {LOGS}", "-writes {WRITES} / {LOGS}", "/ {NONE}"},
	"barrier remove":   {"/b"},
	"barrier set":      {"/b"},
	"barrier wait":     {"-try /b", "/b"},
	"completion":       {"bash", "{NONE}"},
	"config delete":    {"/c k"},
	"config get":       {"/c k", "/c"},
	"config set":       {"/c k v"},
	"config watch":     {"/c k", "/c"},
	"contenders":       {"/l", "-election /l", "-watch /l"},
	"counter add":      {"/n"},
	"counter get":      {"/n"},
	"doctor":           {"/l"},
	"double-barrier":   {"/d 2 -- true"},
	"elect":            {"/e -- true", "-again /e -- true"},
	"group join":       {"/g", "/g -- true"},
	"group members":    {"/g"},
	"group watch":      {"/g"},
	"init":             {"-config {FILE}"},
	"latch count":      {"/n 2"},
	"latch down":       {"/n 2"},
	"latch wait":       {"/n"},
	"lock":             {"/l -- true", "-try /l -- true", "-n 2 -try /l -- true", "-shared /l -- true", "-priority 1 /l -- true", "-once-per 1h /l -- true", "/l -and /m -- true", "-retry 1m /l -- true", "/l -- {NONE}"},
	"names list":       {"/n"},
	"names lookup":     {"/n x"},
	"names register":   {"/n x", "/n x -- true", "-persistent /n x"},
	"names unregister": {"/n x"},
	"queue dead":       {"/q"},
	"queue len":        {"/q"},
	"queue peek":       {"/q"},
	"queue put":        {"/q x y", "-priority 1 /q x"},
	"queue take":       {"/q", "-try -newline /q", "-dialect kazoo /q"},
	"queue work":       {"/q -- true", "/q -- false"},
	"revoke":           {"/l", "-wait /l", "-force /l"},
	"semaphore":        {"/l"},
	"shares":           {"-n 2 /s -- true"},
	"top":              {"-once /", "-once -admin {WORDS} /", "/"},
	"tx abort":         {"/t"},
	"tx begin":         {"-sites a,b /t"},
	"tx done":          {"/t a"},
	"tx status":        {"/t"},
	"tx vote":          {"/t a commit"},
	"upgrade-plugin":   {"4711", "-all"},
}

// stored maps the calls that write stored bytes unchanged, except to a terminal, to these bytes.
var stored = map[string]string{
	"config get /c k": untrustedBytes, "names lookup /n x": untrustedBytes, "queue peek /q": untrustedBytes,
	"queue take /q": untrustedBytes, "queue take -try -newline /q": untrustedBytes + "\n", "queue take -dialect kazoo /q": untrustedBytes,
}

// untrustedErrors are errors of requests. For each, the tool prints another text, or takes
// another path.
func untrustedErrors(text string) map[string]error {
	u := &untrusted{text: text}
	failures := map[string]error{
		"an error": u.error(), "a third-party contender": u.foreign(), "a name that is taken": &recipes.TakenError{Znode: "/" + text, SessionID: 3},
		"a period that is not over": fmt.Errorf("%w: %w", &recipes.NotDueError{}, u.error()),
	}
	for _, err := range []error{
		recipes.ErrUnknownOutcome, recipes.ErrSessionLost, recipes.ErrContended, recipes.ErrNotRevocable, recipes.ErrMismatch, recipes.ErrNoNode, recipes.ErrRemoved,
		recipes.ErrUndecided, recipes.ErrEmpty, recipes.ErrQuota, recipes.ErrUnsupported, context.DeadlineExceeded,
	} {
		failures[err.Error()] = fmt.Errorf("%w: %w", err, u.error())
	}
	return failures
}

// TestNoVerbPrintsWhatATerminalActsUpon: whatever servers, other clients, the plugin, files and
// arguments contain, a verb prints only printable characters and the line breaks of its own layout.
// It ranges over the table of verbs.
func TestNoVerbPrintsWhatATerminalActsUpon(t *testing.T) {
	for name := range untrustedCalls {
		if everyVerb()[name] == nil {
			t.Errorf("there is no verb %s", name)
		}
	}
	world := newUntrustedWorld(t)
	for _, v := range verbs {
		t.Run(v.Name, func(t *testing.T) {
			calls := untrustedCalls[v.Name]
			if len(calls) == 0 {
				t.Fatal("untrustedCalls has no call of this verb")
			}
			heard := v.Name == "completion" // completion receives nothing untrusted
			for _, line := range calls {
				if v.Name == "doctor" {
					for mode := range doctored { // starts a plugin process, which takes a second
						heard = world.run(t, v, mode, "-chroot /"+mode+" "+line, &untrusted{}, outputs[:map[bool]int{false: 1, true: 2}[mode == "answers"]]...) || heard
					}
					continue
				}
				if local[v.Name] {
					heard = world.run(t, v, "files", line, &untrusted{}, outputs...) || heard
					continue
				}
				joins := v.Name == "group join" || v.Name == "names register"
				if joins && !strings.Contains(line, " -- ") { // the member stays until a loss
					heard = world.run(t, v, "answers, until a loss", line, &untrusted{text: untrustedText, lost: true}, outputs...) || heard
				} else {
					heard = world.run(t, v, "answers", line, &untrusted{text: untrustedText}, outputs...) || heard
				}
				world.run(t, v, "no session", line, &untrusted{text: untrustedText, opens: fmt.Errorf("%w: %s", recipes.ErrUnavailable, untrustedBytes)}, outputs...)
				if strings.Contains(line, " -- ") {
					world.run(t, v, "a loss", line, &untrusted{text: untrustedText, lost: true, runs: true}, outputs...)
				}
				for what, err := range untrustedErrors(untrustedBytes) {
					heard = world.run(t, v, what, line, &untrusted{text: untrustedBytes, err: err}, outputs[:2]...) || heard
				}
			}
			for _, line := range []string{"-{NONE}", "-timeout {NONE} /", "-format {NONE} /", "-config {NONE} /l", "{NONE}", "-servers {NONE} /l", "-chroot {NONE} /l"}[:map[bool]int{false: 7, true: 5}[v.Name == "doctor"]] {
				world.run(t, v, "wrong usage", line, &untrusted{text: untrustedText}, outputs[:1]...)
			}
			if !heard {
				t.Error("no call has printed anything of what it got")
			}
		})
	}
}

// TestAWaitShowsNoControls: at a terminal the line that is redrawn names the holder.
func TestAWaitShowsNoControls(t *testing.T) {
	if !newUntrustedWorld(t).run(t, everyVerb()["lock"].Verb, "a wait", "-v /l -- true", &untrusted{text: untrustedText, waits: true}, outputs...) {
		t.Error("no wait was shown")
	}
}

// untrustedWorld is what the arguments of untrustedCalls name.
type untrustedWorld map[string]string

func newUntrustedWorld(t *testing.T) untrustedWorld {
	t.Helper()
	dir := must.Get(os.MkdirTemp("/tmp", "untrusted-"))(t) // the path of a socket must be short
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	name := strings.ReplaceAll(untrustedText, "/", "")
	name = name[:strings.Index(name, "\rFORGED")] // names of files are at most 255 bytes
	w := untrustedWorld{
		"LOGS": filepath.Join(dir, "logs"+name), "PAGE": filepath.Join(dir, "page.html"), "WRITES": filepath.Join(dir, "writes"), "NONE": name, "FILE": filepath.Join(dir, name),
	}
	must.Do(t, os.Mkdir(w["LOGS"], 0o700))
	must.Do(t, os.WriteFile(filepath.Join(w["LOGS"], "log.1"), untrustedLog(), 0o600))
	must.Do(t, os.WriteFile(w["WRITES"], []byte("{\"time\":"+untrustedBytes), 0o600))
	w["WORDS"] = untrustedServer(t)
	for _, variable := range toolSets {
		t.Setenv(variable, "")
	}
	t.Setenv("ZKRECIPES_LOG_LEVEL", "trace")
	t.Setenv("ZKRECIPES_PLUGIN_COMMAND", must.Get(exec.LookPath("untrusted-plugin"))(t))
	t.Setenv("HOME", filepath.Join(dir, "home"))
	t.Setenv("XDG_RUNTIME_DIR", "/none")
	t.Setenv("TMPDIR", dir)
	sockets := filepath.Join(dir, fmt.Sprint("zkrecipes-", os.Geteuid()))
	must.Do(t, os.Mkdir(sockets, 0o700))
	socket := must.Get(net.Listen("unix", filepath.Join(sockets, "4711-1.sock")))(t)
	served := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"error":`+fmt.Sprintf("%q", "x\u009b2J\n\u202eESCAPED")+`}`)
	})}
	go func() { _ = served.Serve(socket) }()
	t.Cleanup(func() { _ = served.Close() })
	return w
}

// toolSets are the variables that the tool sets in its process.
var toolSets = []string{"ZKRECIPES_SERVERS", "ZKRECIPES_CONFIG", "ZKRECIPES_CHROOT", "ZKRECIPES_SESSION_TIMEOUT", "ZKRECIPES_SLOT", "ZKRECIPES_TOKENS"}

// untrustedServer answers each four-letter word with hostile text.
func untrustedServer(t *testing.T) string {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(c, make([]byte, 4))
			_, _ = io.WriteString(c, "tickTime="+untrustedBytes+"\n/"+untrustedBytes+":1[1](queued=0,recved=1,sent=1,sid=0x3,lop=PING,est=1,to=10000,)\n")
			c.Close()
		}
	}()
	return listener.Addr().String()
}

// untrustedLog is a transaction log with grants, losses, a two-phase commit and a queue at paths
// with hostile names.
func untrustedLog() []byte {
	log := logtest.NewLog(0)
	create := func(session int64, path, data string) {
		log.Time += 1000
		log.Txn(session, 1, txnlog.Change{Type: txnlog.Create, Path: []byte(path), Data: []byte(data), Ephemeral: session != 0})
	}
	below := "/l" + strings.ReplaceAll(untrustedBytes, "/", "")
	for _, path := range []string{"/l", below} {
		for session := range int64(3) {
			create(session+1, path+"/_c_"+strings.ReplaceAll(untrustedText, "/", "")+fmt.Sprintf("-lock-%010d", session), untrustedBytes)
		}
		create(0, path+fmt.Sprintf("/x-lock-%010d", 3), untrustedBytes)
		log.Txn(9, 1, txnlog.Change{Type: txnlog.Delete, Path: []byte(path + "/_c_" + strings.ReplaceAll(untrustedText, "/", "") + "-lock-0000000000")}) // broken
	}
	create(0, below+"/decision", "abort "+untrustedBytes+"\n1")
	create(0, below+"/queue-0000000001", untrustedBytes)
	create(4, below+"/claims/queue-0000000001-1", untrustedBytes)
	log.Txn(2, 0, txnlog.Change{Type: txnlog.CloseSession})
	return log.Bytes
}

// local are the verbs that open no session.
var local = map[string]bool{"audit": true, "completion": true, "init": true, "upgrade-plugin": true}

// outputs are the forms in which a verb prints.
var outputs = []string{"text", "json", "terminal"}

// run calls a verb with each of the outputs, and checks what it prints. It reports whether the verb
// has printed hostile text.
func (w untrustedWorld) run(t *testing.T, v verb.Verb, what, line string, u *untrusted, outputs ...string) (heard bool) {
	t.Helper()
	var args []string
	for word := range strings.FieldsSeq(line) {
		args = append(args, regexp.MustCompile(`\{[A-Z]+\}`).ReplaceAllStringFunc(word, func(name string) string { return w[strings.Trim(name, "{}")] }))
	}
	for _, output := range outputs {
		switch {
		case v.Name == "init":
			_ = os.RemoveAll(w["FILE"])
		case v.Name == "top" && output == "terminal" && !strings.Contains(line, "-once"):
			continue // it needs the terminal of its process: TestTopShowsNoControls
		}
		call := fmt.Sprintf("%s %s, with %s, as %s", v.Name, line, what, output)
		given := args
		if output == "json" && !strings.Contains(line, "-format") {
			given = append([]string{"-format=json"}, args...)
		}
		stdout, stderr := w.call(t, v, u.fresh(), given, output == "terminal")
		if want, ok := stored[v.Name+" "+line]; ok && what == "answers" {
			switch output {
			case "text":
				if stdout != want {
					t.Errorf("%s: the stored bytes are written as\n%q", call, stdout)
				}
				stdout = ""
			case "terminal":
				stdout = strings.ReplaceAll(stdout, "\nFORGED", "\n") // a value may have several lines
			}
		}
		if output == "terminal" {
			harmless(t, call, stdout) // contains stderr too
		} else {
			harmless(t, call+": stdout", stdout)
			harmless(t, call+": stderr", stderr)
		}
		heard = heard || strings.Contains(stdout+stderr, "ESCAPED")
	}
	if strings.Contains(line, "-html") {
		page := string(must.Get(os.ReadFile(w["PAGE"]))(t))
		harmless(t, v.Name+" "+line+": the page", strings.ReplaceAll(page, "\nFORGED", "\n")) // a browser shows no lines
	}
	return heard
}

// call returns what a verb prints. At a terminal all of it is in stdout.
func (w untrustedWorld) call(t *testing.T, v verb.Verb, u *untrusted, args []string, terminal bool) (stdout, stderr string) {
	t.Helper()
	for _, variable := range toolSets {
		must.Do(t, os.Setenv(variable, ""))
	}
	must.Do(t, os.Setenv("ZKRECIPES_SERVERS", w["WORDS"]))
	var out, err terminalOutput
	tool := verb.NewTool(&out, &err)
	tool.Launch = u.launch
	read := make(chan struct{})
	close(read)
	end := func() {}
	if terminal {
		ours, theirs, failed := pty.Open()
		must.Do(t, failed)
		must.Do(t, pty.Setsize(ours, &pty.Winsize{Rows: 50, Cols: 250}))
		must.Get(term.MakeRaw(int(theirs.Fd())))(t)
		tool.Stdout, tool.Stderr = theirs, theirs
		read = make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(&out, ours)
		}()
		end = func() { theirs.Close(); <-read; ours.Close() }
	}
	c := &verb.Command{Tool: tool, Verb: v, Action: v.New()}
	c.Run(append([]string{"--"}, args...))
	end()
	text := out.String()
	if terminal {
		text = ownControls.ReplaceAllString(text, "\n")
	}
	return text, err.String()
}

// ownControls are the sequences with which the tool redraws a line, a table and its progress.
var ownControls = regexp.MustCompile(`\r\x1b\[K|\x1b\[\d+A\x1b\[J|\r *(\d+%[^\r\n]*)?`)

// harmless fails if a terminal would act upon a text, or if a part of it looks like a line or a
// cell of the tool's.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	for at, r := range text {
		if _, size := utf8.DecodeRuneInString(text[at:]); r == utf8.RuneError && size == 1 || !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			t.Errorf("%s: %q in ...%q...", what, text[at:at+size], text[max(0, at-60):min(len(text), at+60)])
			return
		}
	}
	if forged := regexp.MustCompile(`(?m)^FORGED.*`).FindString(text); forged != "" {
		t.Errorf("%s: the line %q", what, forged)
	}
	if strings.HasSuffix(what, "stdout") && strings.Contains(text, "\t") {
		t.Errorf("%s: a tab in %q", what, text)
	}
}

// TestTopShowsNoControls: the screen of a terminal shows no control characters.
func TestTopShowsNoControls(t *testing.T) {
	w := newUntrustedWorld(t)
	for mode := range doctored {
		top := exec.Command("zkrecipes", "top", "-servers", w["WORDS"], "-chroot", "/"+mode, "/l")
		top.Env = append(os.Environ(), "TERM=xterm", "ZKRECIPES_LOG_LEVEL=info")
		terminal := must.Get(pty.StartWithSize(top, &pty.Winsize{Rows: 50, Cols: 1000}))(t)
		var seen terminalOutput
		read := make(chan struct{})
		go func() { // until the program has ended
			defer close(read)
			_, _ = io.Copy(&seen, terminal)
		}()
		for begun, ended := time.Now(), false; !ended && !strings.Contains(seen.String(), "ESCAPED"); {
			select {
			case <-read: // after an error
				ended = true
			case <-time.After(5 * time.Millisecond):
			}
			if time.Since(begun) > watchdog.Patience {
				t.Fatalf("%s: the terminal shows\n%q", mode, seen.String())
			}
		}
		_, _ = terminal.WriteString("q")
		_ = top.Wait()
		<-read
		terminal.Close()
		text := screenControls.ReplaceAllString(seen.String(), "")
		if harmless(t, "top with "+mode, text); !strings.Contains(text, "ESCAPED") {
			t.Errorf("%s: the terminal shows\n%q", mode, text)
		}
	}
}

// screenControls are the sequences with which tcell draws on an xterm. The hostile text has others.
var screenControls = regexp.MustCompile(`\x1b\]8;;\x1b\\|\x1b\[[0-9;?<>]*[A-Za-z]|\x1b[()][AB0]|\x1b[=>78]|\r\n|\r`)

// TestTheToolItselfPrintsNoControls: mistakes before a verb runs, and the installation of the completion.
func TestTheToolItselfPrintsNoControls(t *testing.T) {
	w := newUntrustedWorld(t)
	must.Do(t, os.Mkdir(w["FILE"], 0o700))
	must.Do(t, os.WriteFile(filepath.Join(w["FILE"], ".bashrc"), nil, 0o600))
	wrong := w["NONE"]
	for i, args := range [][]string{
		{wrong}, {"queue", wrong}, {"-" + wrong, "lock"}, {"lock", "-" + wrong}, {"-autocomplete-install"}, // and these do not show the argument:
		{"-" + wrong}, {"help", wrong}, {"-complete", wrong, "x"}, {"-autocomplete-install", wrong},
	} {
		c := exec.Command("zkrecipes", args...)
		c.Env = append(os.Environ(), "HOME="+w["FILE"], "XDG_CONFIG_HOME=")
		out, _ := c.CombinedOutput()
		harmless(t, fmt.Sprintf("zkrecipes %q", args), string(out))
		if len(out) == 0 || i < 5 && !strings.Contains(string(out), "ESCAPED") {
			t.Errorf("%q prints %q", args, out)
		}
	}
}
