package rwlock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// revoker revokes contenders. znodes returns the paths that the znode of a contender can have,
// in the order in which the contender has them. It fails if the path is not a contender's.
type revoker struct {
	session *session.Session
	znodes  func(path string) ([]string, error)
}

// Revoke asks a contender to give way.
func (r revoker) Revoke(ctx context.Context, path string) error {
	paths, err := r.znodes(path)
	if err != nil {
		return err
	}
	for _, p := range paths {
		_, err = revoke(ctx, r.session, p, false)
		if !errors.Is(err, recipes.ErrNoNode) {
			break
		}
	}
	return revoking(path, err)
}

// RevokeForced asks a contender to give way, and deletes its znode after its grace.
func (r revoker) RevokeForced(ctx context.Context, path string) error {
	paths, err := r.znodes(path)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if err := revoking(path, revokeForced(ctx, r.session, p)); err != nil {
			return err
		}
	}
	return nil
}

// revoking returns the error of a revocation. A contender that is gone needs none.
func revoking(path string, err error) error {
	if err == nil || errors.Is(err, recipes.ErrNoNode) {
		return nil
	}
	return fmt.Errorf("revoke %s: %w", path, err)
}

// revoke writes "unlock" in front of the data of the znode, and returns the new data.
func revoke(ctx context.Context, s *session.Session, path string, forced bool) (d nodeData, err error) {
	err = znode.Retry(ctx, s, "ask "+path, func() error {
		node, err := s.Get(ctx, path)
		if err != nil {
			return err
		}
		d = decode(node.Data)
		switch {
		case !d.revocable:
			return recipes.ErrNotRevocable
		case forced && d.grace == 0:
			return fmt.Errorf("%w by force: it gives no grace", recipes.ErrNotRevocable)
		case d.revoked:
			return nil
		}
		d.revoked = true
		return znode.SetData(ctx, s, path, d.encode(), node.Stat.Version)
	})
	return d, err
}

// revokeForced asks, waits for the end of the grace, and deletes the znode. If another
// client has deleted the znode, the error matches recipes.ErrNoNode.
func revokeForced(ctx context.Context, s *session.Session, path string) error {
	d, err := revoke(ctx, s, path, true)
	if err == nil {
		err = awaitGrace(ctx, s, path, d.grace)
	}
	if err == nil {
		err = deleteRevoked(ctx, s, path)
	}
	return err
}

// awaitGrace waits until the grace is over. If the znode is gone first, the error matches
// recipes.ErrNoNode. No other recipe decides by a timer. The text demands this one: "after
// some length of time".
func awaitGrace(ctx context.Context, s *session.Session, path string, grace time.Duration) error {
	over := make(chan struct{})
	timer := time.AfterFunc(grace, func() { close(over) })
	defer timer.Stop()
	return znode.Await(ctx, s, "waiting for the end of its grace", func() ([]<-chan struct{}, error) {
		if session.Happened(over) {
			return nil, nil
		}
		_, watch, err := s.GetW(ctx, path)
		if err != nil {
			return nil, err
		}
		return append(znode.Events(watch), over), nil
	})
}

// deleteRevoked deletes a znode if its data still asks it to give way: the request may
// have been taken back.
func deleteRevoked(ctx context.Context, s *session.Session, path string) error {
	takenBack := false
	err := znode.Retry(ctx, s, "delete "+path, func() error {
		node, err := s.Get(ctx, path)
		takenBack = err == nil && !isRevoked(node.Data)
		if err != nil || takenBack {
			return err
		}
		var t session.Txn
		t.Delete(path, node.Stat.Version)
		return s.Commit(ctx, t)
	})
	if takenBack {
		return fmt.Errorf("%w: the request was taken back", recipes.ErrBadVersion)
	}
	return err
}

// nodeData is the data of a contender's znode: the application's data, and the marks of
// the recipe. An operator can read it, and write part of it:
//
//	unlock
//	zkrecipes: revocable grace=5000ms downgraded
//	<the application's data, as it is>
//
// The first line, the text's "unlock", asks the contender to give way. The second line
// exists if a mark is set, or if the application's data could be mistaken for a mark.
//
// Data that is only "unlock", as in the text, asks too. An operator who writes it
// overwrites the grace, the downgrade and the application's data. That is safe. Without
// marks nothing is allowed, and a writer without the mark of a downgrade keeps readers
// out.
type nodeData struct {
	revoked    bool // it was asked to give way
	revocable  bool
	grace      time.Duration // 0: its znode must not be deleted by force
	downgraded bool
	data       []byte // the application's
}

const (
	unlock   = "unlock"
	markLine = "zkrecipes:"
)

func (d nodeData) encode() []byte {
	var marks []string
	if d.revocable {
		marks = append(marks, "revocable")
	}
	if d.grace > 0 {
		marks = append(marks, fmt.Sprintf("grace=%dms", d.grace.Milliseconds()))
	}
	if d.downgraded {
		marks = append(marks, "downgraded")
	}
	if len(marks) == 0 && !d.revoked && !looksMarked(d.data) {
		return d.data
	}
	var b bytes.Buffer
	if d.revoked {
		b.WriteString(unlock + "\n")
	}
	b.WriteString(strings.Join(append([]string{markLine}, marks...), " ") + "\n")
	b.Write(d.data)
	return b.Bytes()
}

// looksMarked reports whether the application's data could be mistaken for marks.
func looksMarked(data []byte) bool {
	return bytes.HasPrefix(data, []byte(unlock)) || bytes.HasPrefix(data, []byte(markLine))
}

// decode never fails: data without marks is the application's.
func decode(raw []byte) nodeData {
	rest := raw
	var d nodeData
	if first, after, _ := bytes.Cut(rest, []byte("\n")); string(first) == unlock {
		d.revoked, rest = true, after
	}
	first, after, terminated := bytes.Cut(rest, []byte("\n"))
	words := strings.Fields(string(first))
	if !terminated || !bytes.HasPrefix(first, []byte(markLine)) || words[0] != markLine {
		d.data = rest
		return d
	}
	for _, word := range words[1:] {
		switch {
		case word == "revocable":
			d.revocable = true
		case word == "downgraded":
			d.downgraded = true
		case strings.HasPrefix(word, "grace="):
			d.grace = parseGrace(strings.TrimPrefix(word, "grace="))
		} // later versions may write other words
	}
	d.data = after
	return d
}

// parseGrace returns 0, which allows nothing, for text that it cannot read.
func parseGrace(s string) time.Duration {
	digits, ok := strings.CutSuffix(s, "ms")
	ms, _ := strconv.ParseInt(digits, 10, 64) // on an error it is 0, or the largest or smallest number
	if !ok || ms < 0 || ms > int64((1<<63-1)/time.Millisecond) {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

func isRevoked(data []byte) bool { return decode(data).revoked }
