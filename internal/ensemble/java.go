package ensemble

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
)

// javaCommand returns the command that starts the server whose files are in dir.
func javaCommand(cfg Config, dir string) *exec.Cmd {
	args := []string{
		fmt.Sprintf("-Xmx%dm", cfg.HeapMiB),
		"-XX:-UsePerfData", // a file in the system's temporary directory that a killed JVM leaves behind
		"-XX:+ExitOnOutOfMemoryError",
		"-Djava.io.tmpdir=" + dir,
		"-Dzookeeper.jmx.log4j.disable=true",
	}
	if cfg.FastStart {
		args = append(args, "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:+UseSerialGC")
	}
	if cfg.NoSync {
		args = append(args, "-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=64") // KiB
	}
	for _, key := range slices.Sorted(maps.Keys(cfg.SystemProperties)) {
		args = append(args, "-D"+key+"="+cfg.SystemProperties[key])
	}
	args = append(args,
		"-cp", dir+string(filepath.ListSeparator)+cfg.Installation.Classpath,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(dir, "zoo.cfg"))
	return exec.Command(cfg.Installation.Java, args...)
}
