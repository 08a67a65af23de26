package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// runHost is a host program for zkbench verify -host, over package host. Its arguments are the defects
// that it has.
func runHost() {
	p := &hostProgram{holds: map[string]recipes.Hold{}, defects: map[string]bool{}}
	for _, d := range os.Args[1:] {
		p.defects[d] = true
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		result, err := p.step(strings.Fields(lines.Text()))
		if err != nil {
			fmt.Printf("error %s %v\n", strings.Join(wire.ToFailure(err).GetReasons(), ","), err)
			continue
		}
		fmt.Printf("ok %s\n", result)
	}
	if p.plugins == nil {
		return
	}
	if p.defects["leaves-its-plugin"] {
		select {} // as if it waited for a plugin without a limit
	}
	if err := p.plugins.Close(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

type hostProgram struct {
	plugins *host.Supervisor
	session recipes.Client
	holds   map[string]recipes.Hold
	defects map[string]bool
}

func (p *hostProgram) step(words []string) (result string, err error) {
	ctx := context.Background()
	words = append(words, "", "", "")
	id := words[1]
	switch words[0] {
	case "open":
		return "", p.open(ctx, words[1])
	case "acquire", "try":
		return p.acquire(ctx, words[0], id, words[2], words[3])
	case "held":
		if h := p.holds[id]; !p.defects["swallows-a-loss"] {
			err = h.Err()
		}
		return "", err
	case "write":
		err = p.holds[id].Write(ctx, recipes.Create(words[2], nil))
		if p.defects["repeats-a-write"] && errors.Is(err, recipes.ErrUnknownOutcome) {
			err = p.holds[id].Write(ctx, recipes.Create(words[2], nil))
		}
		return "", err
	case "release":
		for other, h := range p.holds {
			if (other == id) != (p.defects["releases-another"] && len(p.holds) > 1) {
				return "", h.Release(ctx)
			}
		}
		return "", recipes.ErrInvalid
	case "close":
		if p.defects["does-not-close"] {
			return "", nil
		}
		return "", p.session.Close(ctx)
	}
	return "", recipes.ErrUnsupported
}

func (p *hostProgram) open(ctx context.Context, milliseconds string) (err error) {
	p.plugins, err = host.Supervise(ctx, host.SupervisorConfig{
		Plugin:       host.Config{Path: os.Getenv("ZKRECIPES_VERIFY_PLUGIN")},
		MinBackoff:   10 * time.Millisecond,
		LoseSessions: p.defects["loses-sessions"], // not a defect
	})
	if err != nil {
		return err
	}
	timeout, _ := strconv.Atoi(milliseconds)
	p.session, err = p.plugins.Open(ctx, recipes.SessionConfig{
		Servers: []string{os.Getenv("ZKRECIPES_VERIFY_SERVERS")}, SessionTimeout: time.Duration(timeout) * time.Millisecond,
	})
	return err
}

func (p *hostProgram) acquire(ctx context.Context, verb, id, path, milliseconds string) (token string, err error) {
	if limit, err := strconv.Atoi(milliseconds); err == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(limit)*time.Millisecond)
		defer cancel()
	}
	l, err := p.session.Lock(path, recipes.LockConfig{})
	if err != nil {
		return "", err
	}
	var h recipes.Hold
	if verb == "try" && !p.defects["waits-in-try"] {
		h, err = l.TryAcquire(ctx)
	} else {
		h, err = l.Acquire(ctx)
	}
	if err != nil {
		return "", err
	}
	h.Done() // watches the znode
	p.holds[id] = h
	if p.defects["same-token"] {
		return "1", nil
	}
	return fmt.Sprint(h.Token()), nil
}
