package server

import "google.golang.org/grpc"

// forward sends what a watch gives until the stream or the session ends. err is the
// error of the watch's first read.
func forward[T, M any](st grpc.ServerStreamingServer[M], values <-chan T, err error, message func(T) *M) error {
	if err != nil {
		return err
	}
	for v := range values {
		if err := st.Send(message(v)); err != nil {
			return err
		}
	}
	return nil
}
