//go:build !unix

package host_test

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/host"
)

func unencrypted(b *testing.B) *host.Plugin {
	b.Skip("measured on Unix")
	return nil
}
