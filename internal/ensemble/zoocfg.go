package ensemble

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// initLimit is the time in which a follower must connect to its leader and catch up. The
// default, ten ticks, is too short on a busy machine, with the short ticks that short
// session timeouts need.
const initLimit = 20 * time.Second

// zooCfg is the server's zoo.cfg.
func (s *Server) zooCfg(cfg Config, all []*Server) map[string]string {
	lines := map[string]string{
		"tickTime":               millis(cfg.TickTime),
		"initLimit":              strconv.Itoa(max(10, int(initLimit/cfg.TickTime))),
		"syncLimit":              "5",
		"dataDir":                filepath.Join(s.dir, "data"),
		"clientPort":             strconv.Itoa(s.ports.client),
		"clientPortAddress":      s.host.IP,
		"maxClientCnxns":         "0", // no limit: one bench process has thousands of sessions
		"4lw.commands.whitelist": "*",
		"admin.enableServer":     "false",
		"extendedTypesEnabled":   "true", // TTL nodes
	}
	if cfg.MaxSessionTimeout != 0 {
		lines["maxSessionTimeout"] = millis(cfg.MaxSessionTimeout)
	}
	if len(all) > 1 {
		for _, peer := range all {
			role := ""
			if cfg.observes(peer.id) {
				role = ":observer"
			}
			lines[fmt.Sprintf("server.%d", peer.id)] = fmt.Sprintf("%s:%d:%d%s", peer.host.IP, peer.ports.quorum, peer.ports.election, role)
		}
		if cfg.observes(s.id) {
			lines["peerType"] = "observer"
		}
	}
	if cfg.TLS != nil {
		maps.Copy(lines, cfg.TLS.zooCfg(s.dir, s.ports.secure))
	}
	maps.Copy(lines, cfg.Properties)
	if cfg.ServerProperties != nil {
		maps.Copy(lines, cfg.ServerProperties(s.id))
	}
	return lines
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// formatProperties returns a Java properties file. A backslash, which separates paths on
// Windows, begins an escape there.
func formatProperties(lines map[string]string) string {
	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&b, "%s=%s\n", key, escape.Replace(lines[key]))
	}
	return b.String()
}

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

// loggingFiles make every SLF4J binding that an installation can have log to the console:
// slf4j-simple (Debian), logback (Apache since 3.8) and log4j 1.2 (Apache before 3.8). The
// server's directory is first on the classpath. So the installation's own settings, which
// may name another log file, are not used.
//
// Four-letter words are logged from level warning up. Otherwise the polls of waitServing
// would fill the server's log.
var loggingFiles = map[string]string{
	"simplelogger.properties": `
org.slf4j.simpleLogger.defaultLogLevel=info
org.slf4j.simpleLogger.showDateTime=true
org.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSZ
org.slf4j.simpleLogger.showShortLogName=true
org.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=warn
org.slf4j.simpleLogger.log.org.apache.zookeeper.server.NettyServerCnxn=warn
`,
	"logback.xml": `
<configuration>
  <appender name="CONSOLE" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{ISO8601} [%t] %p %c{1} - %m%n</pattern></encoder>
  </appender>
  <logger name="org.apache.zookeeper.server.NIOServerCnxn" level="WARN"/>
  <logger name="org.apache.zookeeper.server.NettyServerCnxn" level="WARN"/>
  <root level="INFO"><appender-ref ref="CONSOLE"/></root>
</configuration>
`,
	"log4j.properties": `
log4j.rootLogger=INFO, CONSOLE
log4j.logger.org.apache.zookeeper.server.NIOServerCnxn=WARN
log4j.logger.org.apache.zookeeper.server.NettyServerCnxn=WARN
log4j.appender.CONSOLE=org.apache.log4j.ConsoleAppender
log4j.appender.CONSOLE.layout=org.apache.log4j.PatternLayout
log4j.appender.CONSOLE.layout.ConversionPattern=%d{ISO8601} [%t] %p %c{1} - %m%n
`,
}

const (
	logTail   = 64 << 10 // the most bytes that Log returns
	errorTail = 20       // the lines of the log in an error
)

// readTail returns the end of a server's log, or "" if it has none.
func readTail(dir string) string {
	f, err := os.Open(filepath.Join(dir, logFile))
	if err != nil {
		return ""
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		f.Seek(max(0, size-logTail), io.SeekStart)
	}
	tail, _ := io.ReadAll(f) // a part is better than nothing
	return string(tail)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
