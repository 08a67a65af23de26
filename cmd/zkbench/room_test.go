package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
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
	enough := machine{files: 1 << 20, ports: 28_232, memory: 64 << 30}
	for _, c := range []struct {
		name  string
		flags string
		m     machine
		want  []string // in the error; empty if it fits
	}{
		{"it fits", "-servers a:1 -contenders 10000", enough, nil},
		{"nothing is known", "-servers a:1 -contenders 100000", machine{}, nil},
		{"files", "-servers a:1 -contenders 10000", machine{files: 1024, ports: 28_232, memory: 64 << 30},
			[]string{"10000 sessions need 10100 open files, and this process may have 1024", "by 9076"}},
		{"ports", "-servers a:1,b:1 -contenders 100000", enough,
			[]string{"100000 sessions need as many ports, and this machine has 28232 for each of 2 addresses of servers", "by 21768"}},
		{"ports of more servers", "-servers a:1,b:1,c:1,d:1 -contenders 100000", enough, nil},
		{"ports of a name with four addresses", "-servers four:1 -contenders 100000", enough, nil},
		{"ports of three entries with two addresses", "-servers same:1,twin:1,same:2 -contenders 100000", enough,
			[]string{"28232 for each of 2 addresses"}},
		{"memory of a control group", "-servers a:1 -contenders 10000", machine{memory: 512 << 20, limited: " under a limit"},
			[]string{"and 512 MiB are available under a limit: 114 MiB"}},
		{"memory", "-servers a:1 -contenders 10000", machine{memory: 512 << 20},
			[]string{"10000 sessions need about 625 MiB of memory, and 512 MiB are available: 114 MiB are missing"}},
		{"memory of a plugin", "-servers a:1 -contenders 10000 -via plugin", machine{memory: 1 << 30}, []string{"about 1562 MiB"}},
		{"lines", "-servers a:1 -workload many -lines 100 -contenders 100", machine{files: 1024}, []string{"10100 open files"}},
		{"relays", "-servers a:1 -contenders 1000 -delay 1ms", machine{files: 1024}, []string{"3100 open files"}},
		{"all of it", "-servers a:1 -contenders 100000", machine{files: 1024, ports: 28_232, memory: 1 << 30}, []string{"open files", "ports", "memory", "-join"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := command{transports: transports}.parseSettings(strings.Fields(c.flags))
			if err != nil {
				t.Fatal(err)
			}
			c.m.resolve = resolve
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

func TestThisMachineIsKnown(t *testing.T) {
	if m := thisMachine(); memory("MemTotal") != "" && (m.files <= 0 || m.ports <= 0 || m.memory <= 0) {
		t.Errorf("%+v", m)
	}
}

// Ten thousand sessions take a while to open, and to enrol.
func TestEnrolmentShowsProgressOnATerminal(t *testing.T) {
	var out bytes.Buffer
	trial := bench.Trial{Workload: "drain", Strategy: "handoff", Contenders: 1000}
	c := command{stderr: &out, terminal: func(io.Writer) (int, bool) { return 200, true }}
	p := c.newProgress([]bench.Trial{trial})
	p.begin(trial)
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
	p.end()
}

func TestCgroupsLimitTheMemory(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  int64 // 0: no limit
	}{
		{"nothing is known", nil, 0},
		{"version 2", map[string]string{
			"proc/self/cgroup": "0::/user.slice/job\n", "sys/fs/cgroup/user.slice/job/memory.max": "1000\n",
			"sys/fs/cgroup/user.slice/job/memory.current": "400\n", "sys/fs/cgroup/user.slice/job/memory.stat": "anon 250\ninactive_file 100\n",
		}, 700},
		{"version 2 without a limit", map[string]string{
			"proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/memory.max": "max\n", "sys/fs/cgroup/job/memory.current": "400\n",
		}, 0},
		{"a limit above", map[string]string{
			"proc/self/cgroup": "0::/user.slice/job\n", "sys/fs/cgroup/user.slice/job/memory.max": "1000\n",
			"sys/fs/cgroup/user.slice/memory.max": "500\n", "sys/fs/cgroup/user.slice/memory.current": "450\n",
		}, 50},
		{"in a container that has the host's path", map[string]string{
			"proc/self/cgroup": "0::/docker/0123\n", "sys/fs/cgroup/memory.max": "800\n", "sys/fs/cgroup/memory.current": "100\n",
		}, 700},
		{"version 1", map[string]string{
			"proc/self/cgroup": "12:pids:/job\n9:cpu,memory:/job\n0::/other\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes":   "1000\n",
			"sys/fs/cgroup/memory/job/memory.usage_in_bytes":   "600\n",
			"sys/fs/cgroup/memory/job/memory.stat":             "inactive_file 1\ntotal_inactive_file 200\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":       "9223372036854771712\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes":       "5000\n",
			"sys/fs/cgroup/other/memory.max":                   "max\n",
			"sys/fs/cgroup/memory/unrelated/memory.limit_file": "1\n",
		}, 600},
		{"more is used than allowed", map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "100\n", "sys/fs/cgroup/memory.current": "150\n",
		}, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range test.files {
				file := filepath.Join(root, name)
				must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
				must.Do(t, os.WriteFile(file, []byte(text), 0o600))
			}
			left, ok := cgroupMemory(root)
			if ok != (test.want != 0) || left != max(0, test.want) {
				t.Errorf("%d, %v; want %d", left, ok, test.want)
			}
		})
	}
}
