package main

import "testing"

func TestDirectoryLiesOnItsLongestMount(t *testing.T) {
	const mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmp/with\\040blank xfs rw 0 0\n/dev/c / btrfs rw 0 0\nnonsense\n"
	for dir, want := range map[string]string{
		"/": "btrfs on /dev/c", "/var/lib": "btrfs on /dev/c", "/tmp/x": "tmpfs on tmpfs",
		"/tmpfile": "btrfs on /dev/c", "/tmp/with blank/x": "xfs on /dev/b",
	} {
		if got := mountOf(mounts, dir); got != want {
			t.Errorf("%s: %q; want %q", dir, got, want)
		}
	}
	if got := mountOf("", "/"); got != "" {
		t.Errorf("without mounts: %q", got)
	}
}
