package wire

// Windows of HTTP/2's flow control, in bytes, for both ends of a connection.
//
// They are fixed. Otherwise gRPC would size them by the connection's capacity, and measure
// that with a ping for nearly every message. Such a ping costs a message each way and a
// wake-up of each process, without a benefit on a connection that never leaves the machine.
// One ZooKeeper packet fits into a stream's window.
const (
	StreamWindow     = 1 << 20
	ConnectionWindow = 4 << 20
)
