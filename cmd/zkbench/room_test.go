package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/machine"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/transport"
)

func TestMachineThatIsTooSmallIsRefused(t *testing.T) {
	resolve := func(host string) ([]string, error) {
		switch host {
		case "four":
			return []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}, nil
		case "same", "twin":
			return []string{"10.0.0.1"}, nil
		}
		return nil, errors.New("no such name")
	}
	enough := machine.Machine{Files: 1 << 20, Ports: 28_232, Memory: 64 << 30}
	for _, c := range []struct {
		name  string
		flags string
		m     machine.Machine
		want  []string // in the error; empty if it fits
	}{
		{"it fits", "-servers a:1 -contenders 10000", enough, nil},
		{"nothing is known", "-servers a:1 -contenders 100000", machine.Machine{}, nil},
		{"files", "-servers a:1 -contenders 10000", machine.Machine{Files: 1024, Ports: 28_232, Memory: 64 << 30},
			[]string{"10000 sessions need 10100 open files, and this process may have 1024", "by 9076"}},
		{"ports", "-servers a:1,b:1 -contenders 100000", enough,
			[]string{"100000 sessions need as many ports, and this machine has 28232 for each of 2 addresses of servers", "by 21768"}},
		{"ports of more servers", "-servers a:1,b:1,c:1,d:1 -contenders 100000", enough, nil},
		{"ports of a name with four addresses", "-servers four:1 -contenders 100000", enough, nil},
		{"ports of three entries with two addresses", "-servers same:1,twin:1,same:2 -contenders 100000", enough,
			[]string{"28232 for each of 2 addresses"}},
		{"memory of a control group", "-servers a:1 -contenders 10000", machine.Machine{Memory: 512 << 20, Limited: " under a limit"},
			[]string{"and 512 MiB are available under a limit: 114 MiB"}},
		{"memory", "-servers a:1 -contenders 10000", machine.Machine{Memory: 512 << 20},
			[]string{"10000 sessions need about 625 MiB of memory, and 512 MiB are available: 114 MiB are missing"}},
		{"memory of a plugin", "-servers a:1 -contenders 10000 -via plugin", machine.Machine{Memory: 1 << 30}, []string{"about 1562 MiB"}},
		{"lines", "-servers a:1 -workload many -lines 100 -contenders 100", machine.Machine{Files: 1024}, []string{"10100 open files"}},
		{"relays", "-servers a:1 -contenders 1000 -delay 1ms", machine.Machine{Files: 1024}, []string{"3100 open files"}},
		{"all of it", "-servers a:1 -contenders 100000", machine.Machine{Files: 1024, Ports: 28_232, Memory: 1 << 30}, []string{"open files", "ports", "memory", "-join"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := command{transports: transport.All}.parseSettings(strings.Fields(c.flags))
			if err != nil {
				t.Fatal(err)
			}
			c.m.Resolve = resolve
			err = s.fitsInto(c.m)
			if len(c.want) == 0 && err != nil {
				t.Errorf("refused: %v", err)
			}
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q", err, want)
				}
			}
		})
	}
}

// Ten thousand sessions take a while to open, and to enrol.
func TestEnrolmentShowsProgressOnATerminal(t *testing.T) {
	var out bytes.Buffer
	trial := bench.Trial{Workload: "drain", Strategy: "handoff", Contenders: 1000}
	c := command{stderr: &out, terminal: func(io.Writer) (int, bool) { return 200, true }}
	p := c.newProgress([]bench.Trial{trial})
	p.beginTrial(trial)
	for _, what := range []string{"open", "in line"} {
		for i := range 1000 {
			p.enrol(what, i+1, 1000)
		}
	}
	for _, want := range []string{"handoff drain of 1000, 500 open", "handoff drain of 1000, 950 in line"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %q", want, out.String())
		}
	}
	p.endAll()
}
