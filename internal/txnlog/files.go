package txnlog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Files are the transaction logs and the snapshots of one server.
type Files struct {
	Logs, Snapshots []File   // in the order of their zxids
	Bytes           int64    // of the logs
	Empty           []string // logs without a record
}

// File is a log with its first zxid, or a snapshot with the zxid of its name.
type File struct {
	Name string
	Zxid int64
}

// Find finds the files. Each name is a log, a snapshot, or a directory: a dataDir, a dataLogDir or the
// version-2 in one. In a directory only the files log.* and snapshot.* count. It reads the beginning
// of each file. An error says which file cannot be used.
func Find(names ...string) (*Files, error) {
	found := &Files{}
	for _, name := range names {
		info, err := os.Stat(name)
		if err == nil && info.IsDir() {
			err = found.addDir(name)
		} else if err == nil {
			err = found.add(name)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(found.Logs) == 0 {
		return nil, fmt.Errorf("there is no transaction log with a record in %s: give the files log.* of a server, or their directory: its dataLogDir, or else its dataDir", strings.Join(names, ", "))
	}
	byZxid := func(a, b File) int { return cmp.Compare(a.Zxid, b.Zxid) }
	slices.SortFunc(found.Logs, byZxid)
	slices.SortFunc(found.Snapshots, byZxid)
	return found, nil
}

func (f *Files) addDir(name string) error {
	below := filepath.Join(name, "version-2")
	if info, err := os.Stat(below); err == nil && info.IsDir() {
		name = below
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "log.") || strings.HasPrefix(e.Name(), "snapshot.") {
			if err := f.add(filepath.Join(name, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Files) add(name string) error {
	r, err := os.Open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	log, _, err := Open(r)
	switch {
	case errors.Is(err, io.EOF):
		f.Empty = append(f.Empty, name)
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case log == nil:
		zxid, err := snapshotZxid(name)
		f.Snapshots = append(f.Snapshots, File{name, zxid})
		return err
	}
	switch err := log.Next(); {
	case errors.Is(err, io.EOF), errors.Is(err, ErrTorn):
		f.Empty = append(f.Empty, name)
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	info, err := r.Stat()
	if err != nil {
		return err
	}
	f.Bytes += info.Size()
	f.Logs = append(f.Logs, File{name, log.Header().Zxid})
	return nil
}

// snapshotZxid returns the zxid that a snapshot's name ends with. It is nowhere else in the file.
func snapshotZxid(name string) (int64, error) {
	base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".gz"), ".snappy")
	hex, ok := strings.CutPrefix(base, "snapshot.")
	zxid, err := strconv.ParseInt(hex, 16, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("%s: a snapshot must have its original name, snapshot.<zxid>: the zxid is only there", name)
	}
	return zxid, nil
}

// Follows reports whether next is the zxid after last: the next one of the epoch, or the first of a
// later epoch.
func Follows(last, next int64) bool {
	return next == last+1 || next>>32 > last>>32 && int32(next) == 1
}

// First reports whether a transaction is the first one of a new server or ensemble.
func First(zxid int64) bool { return zxid>>32 <= 1 && int32(zxid) == 1 }

// Base returns the snapshot from which to read a log that continues with zxid next, or nil. It
// prefers the last snapshot before next. With a later one, the transactions up to that snapshot
// cannot be read.
func (f *Files) Base(next int64) *File {
	at, _ := slices.BinarySearchFunc(f.Snapshots, next, func(s File, zxid int64) int { return cmp.Compare(s.Zxid, zxid) })
	switch {
	case at > 0 && Follows(f.Snapshots[at-1].Zxid, next):
		return &f.Snapshots[at-1]
	case at < len(f.Snapshots):
		return &f.Snapshots[at]
	}
	return nil
}

// Between reports whether a snapshot lies between two transactions of the logs. Then the server has
// got that state from its leader, and not the transactions.
func (f *Files) Between(last, next int64) bool {
	return slices.ContainsFunc(f.Snapshots, func(s File) bool { return last < s.Zxid && s.Zxid < next })
}
