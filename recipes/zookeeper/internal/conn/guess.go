package conn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// A server that refuses a connection closes it without a reason. The functions below add the
// probable reasons to the error.

// hungUp reports whether err means that the server has closed the connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// refused adds to err, which ended ZooKeeper's handshake, the probable reasons. c.head is the
// start of the first frame: it is zero if the server has sent nothing.
func (c *Conn) refused(err error) error {
	_, secured := c.Conn.(*tls.Conn)
	silent := hungUp(err) && c.head == [len(c.head)]byte{}
	switch {
	case silent && secured:
		err = fmt.Errorf("the server closed the connection (has it no quorum, or is it read-only? does it refuse the client's certificate?): %w", err)
	case silent:
		err = fmt.Errorf("the server closed the connection (has it no quorum, or is it read-only? does it speak TLS there? has this client maxClientCnxns connections?): %w", err)
	}
	return fmt.Errorf("handshake with %s: %w", c.RemoteAddr(), err)
}

// refusedTLS adds to err, which ended a TLS handshake, the probable reason.
func refusedTLS(server string, err error) error {
	var noTLS tls.RecordHeaderError
	if hungUp(err) || errors.As(err, &noTLS) {
		err = fmt.Errorf("probably the server speaks no TLS there: %w", err)
	}
	return fmt.Errorf("TLS handshake with %s: %w", server, err)
}
