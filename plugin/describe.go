package plugin

import (
	"runtime"
)

// Description is what a plugin executable is.
type Description struct {
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

// Describe describes this program, which serves with those options. Options that Serve
// would refuse count for nothing.
func Describe(options ...Option) Description {
	cfg, _ := configure(nil, options)
	return Description{
		Version: Version(), ProtocolVersions: []int{ProtocolVersion}, Capabilities: cfg.Capabilities(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
	}
}
