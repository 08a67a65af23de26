//go:build !unix

package host

import (
	"os"
	"syscall"
)

// ownGroup does nothing: the system has no process groups.
func ownGroup() *syscall.SysProcAttr { return nil }

// On these systems a file's mode does not say who may write to it, so nothing is refused.
// Config.Checksum protects the plugin there.

func mayExecute(os.FileInfo) bool    { return true }
func worldWritable(os.FileInfo) bool { return false }
func checkLinks(string) error        { return nil }
func checkOwner(string) error        { return nil }
func onlyOurs(string) bool           { return false }

// Plugins listen on TCP, so there are no sockets to protect or to remove.

func lockDirectory(string) *os.File { return nil }
func removeIfAbandoned(string)      {}
