package ensemble

import (
	"fmt"
	"maps"
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
