package main

import "testing"

func TestStatHasTheTimeOfOurJava(t *testing.T) {
	const stat = "4242 (java) S 17 4242 17 0 -1 4194304 1 2 3 4 250 150 7 8 20 0 1 0 99 1 1"
	if seconds, mine := parseStat(stat, 17); !mine || seconds != 4 {
		t.Errorf("%v, %v; want 4 seconds", seconds, mine)
	}
	for _, other := range []string{
		"4242 (java) S 18 4242 17 0 -1 4194304 1 2 3 4 250 150 7",
		"4242 (a (java) b) S 17 4242 17 0 -1 4194304 1 2 3 4 250 150 7", "", "4242 (java) S 17",
	} {
		if _, mine := parseStat(other, 17); mine {
			t.Errorf("%q was taken for ours", other)
		}
	}
}

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
