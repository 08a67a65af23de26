package ensemble

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

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
