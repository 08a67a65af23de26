package wire

// Windows of HTTP/2's flow control, in bytes, for both ends of a connection.
//
// They are fixed. gRPC would otherwise size them by what the connection can carry,
// and measure that with a ping for nearly every message. That is a message each way
// and a wake-up of each process, without a use on a connection that never leaves the
// machine. One packet of ZooKeeper fits into a stream's window.
const (
	StreamWindow     = 1 << 20
	ConnectionWindow = 4 << 20
)
