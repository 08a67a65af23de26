package look

import (
	"context"
	"strings"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const keeperAdvice = `read "ClickHouse Keeper" in docs/servers.md: pass the fencing token on, or use guarded writes. To refuse such servers, set zookeeper_only = true`

// keeper warns if a server is ClickHouse Keeper, and reports whether it is. The session has recognized
// it without a request; srvr and /keeper confirm it.
func (v *doctorVerb) keeper(ctx context.Context, p *host.Plugin, cfg recipes.SessionConfig, s recipes.Session) bool {
	server := cfg.Servers[0]
	recognized := false
	if stats, err := s.Stats(ctx); err == nil {
		recognized = stats.Server == recipes.ServerKeeper
	}
	version := keeperVersion(verb.AskWord(ctx, cfg.TLS, server, "srvr"))
	if !recognized && version == "" {
		return false
	}
	var by []string
	if recognized {
		by = append(by, "its session's id and password")
	}
	if version != "" {
		by = append(by, "srvr ("+version+")")
	}
	if hasKeeperDirectory(ctx, p, cfg) {
		by = append(by, "/keeper")
	}
	v.found("keeper", warn, keeperAdvice, "%s: this is ClickHouse Keeper, as these show: %s", server, strings.Join(by, ", "))
	if !recognized {
		v.found("keeper", fail, "report this: requests that this Keeper may not know are sent to it", "%s: a session does not recognize it", server)
	}
	return true
}

// keeperVersion returns the version in Keeper's answer to srvr, or "".
func keeperVersion(answer string) string {
	line, _, _ := strings.Cut(answer, "\n")
	version, found := strings.CutPrefix(line, "ClickHouse Keeper version: ")
	if !found {
		return ""
	}
	return strings.TrimSpace(version)
}

// hasKeeperDirectory reports whether there is a /keeper, as since 22.10. It is outside of any chroot.
func hasKeeperDirectory(ctx context.Context, p *host.Plugin, cfg recipes.SessionConfig) bool {
	cfg.Chroot = ""
	s, err := p.Open(ctx, cfg)
	if err != nil {
		return false
	}
	defer s.Close(ctx)
	_, err = s.Children(ctx, "/keeper")
	return err == nil
}
