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

// description describes a plugin executable.
type description struct {
	// Version is the version of the build.
	Version string `json:"version"`
	// ProtocolVersions are the versions of zkrecipes that it offers in go-plugin's handshake.
	ProtocolVersions []int `json:"protocol_versions"`
	// Capabilities are the recipes and other features that it supports, as in Info.
	Capabilities []string `json:"capabilities"`
	// Platform is the operating system and architecture, by Go's names.
	Platform string `json:"platform"`
	// Go is the version of Go that built it.
	Go string `json:"go"`
}

// describe prints the description in JSON, for programs that choose between plugins without
// starting them.
func describe(stdout io.Writer) error {
	e := json.NewEncoder(stdout)
	e.SetIndent("", "  ")
	return e.Encode(description{
		Version: version.String(), ProtocolVersions: []int{handshake.Version},
		Capabilities: server.Config{Resume: zookeeper.Resume}.Capabilities(),
		Platform:     runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
	})
}
