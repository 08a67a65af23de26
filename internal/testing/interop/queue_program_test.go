package interop_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// queueEnv makes the test binary the program of testdata/interop/drain.py with our queue. It
// contains the dialect and the path of the plugin, or nothing for the library: "kazoo ".
const queueEnv = "ZKRECIPES_INTEROP_QUEUE"

// consumers is how many goroutines take the elements of a queue.
const consumers = 4

// batch is how many elements are put in one transaction, which must be smaller than a megabyte.
const batch = 2000

// queueProgram has the arguments SERVERS TIMEOUT_MS SESSIONS PATH. Besides what drain.py does,
// "fill N" puts N elements by PutMany, and "take N SECONDS BATCH" takes by TakeMany of BATCH.
func queueProgram(args []string) error {
	ctx := context.Background()
	dialect, plugin, _ := strings.Cut(os.Getenv(queueEnv), " ")
	open := zookeeper.Open
	if plugin != "" {
		p, err := host.Launch(ctx, host.Config{Path: plugin})
		if err != nil {
			return err
		}
		defer p.Close(ctx)
		open = p.Open
	}
	timeout, _ := strconv.Atoi(args[1])
	sessions, _ := strconv.Atoi(args[2])
	cfg := recipes.SessionConfig{Servers: strings.Split(args[0], ","), SessionTimeout: time.Duration(timeout) * time.Millisecond}
	var queues []recipes.Queue
	for range sessions {
		s, err := open(ctx, cfg)
		if err != nil {
			return err
		}
		defer s.Close(ctx)
		q, err := s.Queue(args[3], recipes.QueueConfig{Dialect: recipes.Dialect(dialect)})
		if err != nil {
			return err
		}
		queues = append(queues, q)
	}
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		began := time.Now()
		what, count, first, err := useQueue(ctx, queues, lines.Text())
		if err != nil {
			return err
		}
		fmt.Println(what, count, time.Since(began).Nanoseconds(), first.Nanoseconds())
	}
	return lines.Err()
}

// useQueue carries out a line of the standard input.
func useQueue(ctx context.Context, queues []recipes.Queue, line string) (what string, count int, first time.Duration, err error) {
	var seconds, most int
	_, _ = fmt.Sscan(line, &what, &count, &seconds, &most)
	switch what {
	case "put":
		for i := 0; i < count && err == nil; i++ {
			_, err = queues[0].Put(ctx, element(i))
		}
	case "fill":
		for from := 0; from < count && err == nil; from += batch {
			data := make([][]byte, min(batch, count-from))
			for i := range data {
				data[i] = element(from + i)
			}
			_, err = queues[0].PutMany(ctx, data...)
		}
	case "len":
		count, err = queues[0].Len(ctx)
	case "take":
		count, first, err = takeAll(ctx, queues, int64(count), max(1, most), time.Duration(seconds)*time.Second)
	}
	return what, count, first, err
}

func element(i int) []byte { return fmt.Appendf(nil, "element-%08d", i) }

// takeAll takes n elements with four consumers. One call takes no more than most elements, and
// takeAll gives up after limit.
func takeAll(ctx context.Context, queues []recipes.Queue, n int64, most int, limit time.Duration) (count int, first time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	var taken, fastest atomic.Int64
	var all errgroup.Group
	for i := range consumers {
		all.Go(func() error {
			for {
				elements, err := queues[i%len(queues)].TakeMany(ctx, most)
				switch {
				case err != nil:
					return cmp.Or(ctx.Err(), err)
				case taken.Add(int64(len(elements))) == n:
					cancel()
				}
				fastest.CompareAndSwap(0, int64(time.Since(began)))
			}
		})
	}
	if err := all.Wait(); ctx.Err() == nil {
		return 0, 0, err
	}
	return int(taken.Load()), time.Duration(fastest.Load()), nil
}
