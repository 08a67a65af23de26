package zkserver

import (
	"encoding/binary"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// A reply frame is: length, xid, zxid, err, body.
const frameHeader = 4 + 4 + 8 + 4

// newFrame starts a reply. The caller appends the body, and seal completes it.
func newFrame() *jute.Encoder {
	return &jute.Encoder{Bytes: make([]byte, frameHeader, frameHeader+96)}
}

// seal writes the header and returns the frame. With an error code it drops the body.
func seal(f *jute.Encoder, xid int32, zxid int64, c code) []byte {
	frame := f.Bytes
	if c != codeOK {
		frame = frame[:frameHeader]
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	binary.BigEndian.PutUint32(frame[4:], uint32(xid))
	binary.BigEndian.PutUint64(frame[8:], uint64(zxid))
	binary.BigEndian.PutUint32(frame[16:], uint32(c))
	return frame
}
