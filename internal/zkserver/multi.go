package zkserver

// multi executes all parts or none. The reply itself reports success in either
// case; each part has a result, and when one failed the parts before it say 0
// and those after it RuntimeInconsistency.
func (s *Server) multi(t *txn, req task, f *encoder) {
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
			multiHeader(f, resultType(part.op), codeOK)
			results[i].encodePart(f, part.op)
		case i < failed:
			multiError(f, codeOK)
		case i == failed:
			multiError(f, failure)
		default:
			multiError(f, codeRuntimeInconsistency)
		}
	}
	multiEnd(f)
	if failed >= 0 {
		t.rollback()
		return
	}
	t.commit()
}

// resultType is what a client is told that a part was: the kinds of create
// whose result has a Stat go by the name of create2.
func resultType(op Op) Op {
	if op == OpCreateContainer || op == OpCreateTTL {
		return OpCreate2
	}
	return op
}

// A check has no result inside a multi.
func (r result) encodePart(f *encoder, op Op) {
	if op != OpCheck {
		r.encode(f, op)
	}
}

// multiRead answers several reads at one point in time; one that fails does
// not concern the others.
func (s *Server) multiRead(req task, f *encoder) {
	for _, part := range req.call.parts {
		sub := &encoder{}
		c := s.read(task{c: req.c, call: part}, sub)
		if c != codeOK {
			multiError(f, c)
			continue
		}
		multiHeader(f, part.op, codeOK)
		f.b = append(f.b, sub.b...)
	}
	multiEnd(f)
}

func multiHeader(f *encoder, op Op, c code) {
	f.i32(int32(op))
	f.bool(false)
	f.i32(int32(c))
}

func multiError(f *encoder, c code) {
	multiHeader(f, opError, c)
	f.i32(int32(c))
}

func multiEnd(f *encoder) {
	f.i32(int32(opError))
	f.bool(true)
	f.i32(-1)
}
