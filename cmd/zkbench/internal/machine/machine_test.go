package machine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

func TestThisMachineIsKnown(t *testing.T) {
	if m := This(); Memory("MemTotal") != "" && (m.Files <= 0 || m.Ports <= 0 || m.Memory <= 0) {
		t.Errorf("%+v", m)
	}
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
