package zkserver

import "github.com/zkrecipes/zkrecipes/internal/jute"

// multi executes all parts or none. The code of the reply is 0 in both cases. Each part
// has a result with a code. After a failure, that is 0 for the parts before the failed
// one, and RuntimeInconsistency for those after it.
func (s *Server) multi(t *txn, req task, f *jute.Encoder) {
	results := make([]result, 0, len(req.call.parts))
	failed, failure := -1, codeOK
	for i, part := range req.call.parts {
		r, c := s.apply(t, req.c, part)
		if c != codeOK {
			failed, failure = i, c
			break
		}
		results = append(results, r)
	}
	for i, part := range req.call.parts {
		switch {
		case failed < 0:
			f.MultiHeader(int32(resultType(part.op)), int32(codeOK))
			results[i].encode(f, part.op)
		case i < failed:
			multiError(f, codeOK)
		case i == failed:
			multiError(f, failure)
		default:
			multiError(f, codeRuntimeInconsistency)
		}
	}
	f.MultiEnd()
	if failed >= 0 {
		t.rollback()
		return
	}
	t.commit()
}

// resultType returns the type of a part in the reply. It is create2 for every kind of
// create whose result has a Stat.
func resultType(op Op) Op {
	if op == OpCreateContainer || op == OpCreateTTL {
		return OpCreate2
	}
	return op
}

// multiRead answers several reads of one state. A read that fails does not affect the
// others.
func (s *Server) multiRead(req task, f *jute.Encoder) {
	for _, part := range req.call.parts {
		sub := &jute.Encoder{}
		c := s.read(task{c: req.c, call: part}, sub)
		if c != codeOK {
			multiError(f, c)
			continue
		}
		f.MultiHeader(int32(part.op), int32(codeOK))
		f.Bytes = append(f.Bytes, sub.Bytes...)
	}
	f.MultiEnd()
}

func multiError(f *jute.Encoder, c code) {
	f.MultiHeader(int32(opError), int32(c))
	f.Int32(int32(c))
}
