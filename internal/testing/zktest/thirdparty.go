package zktest

import (
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// LeaseNames are the znodes of one contender of another library's semaphore.
type LeaseNames struct {
	Dialect  recipes.Dialect
	Lease    string // the lease, without the path
	Lock     string // the znode of the lock under which leases are created, without the path
	Sequence int32  // zk.FlagSequence if a sequence number is added to the names
}

// ForeignLeases are the names of Curator's semaphore and of kazoo's.
var ForeignLeases = []LeaseNames{
	{recipes.Curator, "/leases/_c_" + uuid.NewString() + "-lease-", "/locks/_c_" + uuid.NewString() + "-lock-", zk.FlagSequence},
	{recipes.Kazoo, "/" + strings.ReplaceAll(uuid.NewString(), "-", ""), "-__lock__/" + strings.ReplaceAll(uuid.NewString(), "-", "") + "__lock__", 0},
}

// Dirs returns the parents of leases and of locks for a path.
func (n LeaseNames) Dirs(path string) (leases, locks string) {
	leases, locks = path+n.Lease, path+n.Lock
	return leases[:strings.LastIndexByte(leases, '/')], locks[:strings.LastIndexByte(locks, '/')]
}
