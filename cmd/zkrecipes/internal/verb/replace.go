package verb

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Replace writes a file of the user. After an error, for example on a full disk, the file is as it
// was. An existing file keeps its mode and owner, and a link stays a link. A new file has this mode,
// less the umask. A device or a pipe is written directly.
func Replace(file string, data []byte, mode fs.FileMode) (err error) {
	info, err := os.Stat(file)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return os.WriteFile(file, data, mode)
	case err == nil:
		mode = info.Mode().Perm()
		if file, err = filepath.EvalSymlinks(file); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	// Not os.CreateTemp, which ignores the umask.
	beside, err := os.OpenFile(fmt.Sprintf("%s.new-%08x", file, rand.Uint32()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(beside.Name())
		}
	}()
	_, err = beside.Write(data)
	if err == nil && info != nil {
		if err = keepOwner(beside, info); err == nil {
			err = beside.Chmod(mode) // after the owner, whose change clears bits
		}
	}
	if err == nil {
		err = beside.Sync() // before the name: a crash must not leave an empty file
	}
	if err = errors.Join(err, beside.Close()); err != nil {
		return err
	}
	return os.Rename(beside.Name(), file)
}
