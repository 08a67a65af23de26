package zkserver

import "strings"

// validPath reports whether ZooKeeper accepts path for a znode. ZooKeeper checks
// UTF-16 units, so it refuses everything outside the basic plane. Broken UTF-8
// becomes U+FFFD, which it refuses too.
func validPath(path string) bool {
	if path == "/" {
		return true
	}
	if !strings.HasPrefix(path, "/") {
		return false
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	for _, r := range path {
		if !validRune(r) {
			return false
		}
	}
	return true
}

func validRune(r rune) bool {
	switch {
	case r <= 0x1f, r >= 0x7f && r <= 0x9f, r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0:
		return false
	}
	return true
}

// splitPath cuts at the last slash and validates nothing else, like ZooKeeper's first
// check. The parent of "/x//y" is "/x/", which does not exist, so the answer is NoNode
// and not BadArguments.
func splitPath(path string) (parent, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

// undeletable reports whether path is a znode that ZooKeeper creates for itself.
func undeletable(path string, like Release) bool {
	switch path {
	case "/", "/zookeeper", "/zookeeper/quota":
		return true
	}
	return path == "/zookeeper/config" && like > Release34
}
