package recipestest

import (
	"encoding/binary"
	"fmt"
	"io"
)

func readFrame(r io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head)
	if length > 1<<20 {
		return nil, fmt.Errorf("frame of %d bytes", length)
	}
	frame := append(head, make([]byte, length)...)
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}

// requestedSession: length, protocol version, last zxid, timeout, session id.
func requestedSession(frame []byte) int64 {
	const at = 4 + 4 + 8 + 4
	if len(frame) < at+8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(frame[at:]))
}

// grantedSession: length, protocol version, timeout, session id, password.
func grantedSession(frame []byte) (id int64, timeout int32, password []byte, err error) {
	if len(frame) < 24 {
		return 0, 0, nil, fmt.Errorf("handshake of %d bytes", len(frame))
	}
	timeout = int32(binary.BigEndian.Uint32(frame[8:]))
	id = int64(binary.BigEndian.Uint64(frame[12:]))
	length := int(int32(binary.BigEndian.Uint32(frame[20:])))
	if length < 0 || len(frame) < 24+length {
		return 0, 0, nil, fmt.Errorf("password of %d bytes", length)
	}
	return id, timeout, frame[24 : 24+length], nil
}

func resumeFrame(session int64, timeout int32, password []byte) []byte {
	var b []byte
	b = binary.BigEndian.AppendUint32(b, 0) // protocol version
	b = binary.BigEndian.AppendUint64(b, 0) // last zxid seen
	b = binary.BigEndian.AppendUint32(b, uint32(timeout))
	b = binary.BigEndian.AppendUint64(b, uint64(session))
	b = binary.BigEndian.AppendUint32(b, uint32(len(password)))
	b = append(b, password...)
	b = append(b, 0) // not read-only
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func closeFrame() []byte {
	const closeSession = -11
	frame := binary.BigEndian.AppendUint32(nil, 8)
	frame = binary.BigEndian.AppendUint32(frame, 1) // xid
	op := int32(closeSession)
	return binary.BigEndian.AppendUint32(frame, uint32(op))
}
