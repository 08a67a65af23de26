package record

import "github.com/prometheus/procfs"

func cpu() string {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return ""
	}
	if all, err := fs.CPUInfo(); err == nil && len(all) > 0 {
		return all[0].ModelName
	}
	return ""
}
