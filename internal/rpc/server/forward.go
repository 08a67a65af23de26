package server

import "google.golang.org/grpc"

// forward sends what a watch gives until it ends: with the stream, or with the
// session. err is the watch's first look's.
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
