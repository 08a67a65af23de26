package zkserver

import "strings"

// validPath reports whether a node could have this path. ZooKeeper checks
// UTF-16 units, so everything outside the basic plane is refused, and broken
// UTF-8 becomes U+FFFD, which is refused too.
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

// splitPath cuts at the last slash and validates nothing, as ZooKeeper does at first.
// The parent of "/x//y" is "/x/", which has no node, so that NoNode comes before
// BadArguments.
func splitPath(path string) (parent, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

// undeletable reports the nodes that ZooKeeper makes for itself.
func undeletable(path string) bool {
	switch path {
	case "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config":
		return true
	}
	return false
}
