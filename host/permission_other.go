//go:build !unix

package host

import "os"

// Where a file's mode says nothing about who may write to it, nothing is
// refused. Pin a checksum there.

func mayExecute(os.FileInfo) bool    { return true }
func worldWritable(os.FileInfo) bool { return false }
func checkLinks(string) error        { return nil }
func checkOwner(string) error        { return nil }
