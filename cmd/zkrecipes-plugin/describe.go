package main

import (
	"encoding/json"
	"io"
	"runtime"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/version"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// description is what a plugin executable is.
type description struct {
	// Version is that of the build, for people.
	Version string `json:"version"`
	// ProtocolVersions are those of zkrecipes that it speaks in go-plugin's
	// handshake.
	ProtocolVersions []int `json:"protocol_versions"`
	// Capabilities are the recipes and other things that it knows, as Info
	// tells them to a host.
	Capabilities []string `json:"capabilities"`
	// Platform is operating system and architecture, as Go names them.
	Platform string `json:"platform"`
	// Go is the version that built it.
	Go string `json:"go"`
}

// describe prints what the plugin is, in JSON, for programs that choose between
// plugins without starting them.
func describe(stdout io.Writer) error {
	e := json.NewEncoder(stdout)
	e.SetIndent("", "  ")
	return e.Encode(description{
		Version: version.String(), ProtocolVersions: []int{handshake.Version},
		Capabilities: server.Config{Resume: zookeeper.Resume}.Capabilities(),
		Platform:     runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
	})
}
