package output

import (
	"runtime"
	"runtime/pprof"
)

// Profiles starts the CPU profile. stop ends it and writes the heap profile. If a file name
// is "", that profile is not written. An error comes from exit.Usage.
func Profiles(cpu, heap string) (stop func() error, err error) {
	var files Set
	c, h := files.Create("-cpuprofile", cpu), files.Create("-memprofile", heap)
	if err = files.Err; err == nil && c != nil {
		err = pprof.StartCPUProfile(c)
	}
	if err != nil {
		files.Discard()
		return nil, err
	}
	return func() error {
		defer files.Discard()
		if c != nil {
			pprof.StopCPUProfile()
		}
		if h != nil {
			runtime.GC() // so that the profile has no garbage
			files.Err = pprof.WriteHeapProfile(h.File)
		}
		return files.Commit()
	}, nil
}
