package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/stream"
)

// follow prints messages until the stream ends, or enough have come.
func (a *app) follow(ctx context.Context, cfg stream.Config, texts []string, count int) error {
	var b *board
	c := a.sat()
	cfg.Trace = a.tailTrace(c != nil && !a.verbose)
	if c != nil {
		b = newBoard(a.out, c)
		b.watch(cfg.Trace)
	}
	live := make(chan struct{}, 1)
	announce(cfg.Trace, live)
	s := stream.Reconnect(cfg)
	defer s.Close()

	// What runs beside the stream ends before the command does.
	beside, end := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer end()
	sent := make(chan struct{})
	group.Go(func() {
		defer close(sent)
		a.send(beside, s, texts, live)
	})
	if c != nil {
		a.out.pin(c.shared)
		defer a.out.unpin() // what the board still has on its way is not drawn after that
		stop := a.listenTo(c, s, b)
		defer stop()
		group.Go(func() { b.run(beside) })
	}

	n := 0
	for msg, err := range s.Messages(ctx) {
		if err != nil {
			return err
		}
		if err := a.message(msg); err != nil {
			return err
		}
		if n++; n == count {
			letOut(ctx, sent)
			return nil
		}
	}
	return ctx.Err()
}

// listenTo has keys mean something, where there is a keyboard, until the function that it returns is called: that
// restores the terminal and ends the read that is under way, if the system can.
func (a *app) listenTo(c *console, s *stream.Stream, b *board) func() {
	if c.keys == nil {
		return func() {}
	}
	keys, restore, err := c.keys()
	if err != nil {
		return func() {} // it goes without: the line does not speak of keys
	}
	b.change(func(s *tailStatus, _ time.Time) { s.keys = true })
	go press(keys, restore, s.TryNow, a.interrupt)
	return func() {
		restore()
		_ = keys.Close() // nothing was written
	}
}

// announce nudges live after each connection that is made.
func announce(t *stream.Trace, live chan<- struct{}) {
	connected := t.Connected
	t.Connected = func(i stream.ConnectedInfo) {
		connected(i)
		select {
		case live <- struct{}{}:
		default: // it is known already
		}
	}
}

// kindLetOut is the timer of how long the end waits for what is to be sent.
const kindLetOut delay.Kind = "let-out"

// letOut waits until all is sent, and not for ever: the server may take nothing in.
func letOut(ctx context.Context, sent <-chan struct{}) {
	ctx, cancel := delay.TimersOn(nil).WithTimeout(ctx, kindLetOut, 5*time.Second)
	defer cancel()
	select {
	case <-sent:
	case <-ctx.Done():
	}
}

// send sends each text once. It has a goroutine to itself: a server that does not read yet must not keep the command from
// reading. What finds no connection is left for the next one; what broke off on its way is not sent again, because it may
// have arrived.
func (a *app) send(ctx context.Context, s *stream.Stream, texts []string, live <-chan struct{}) {
	for len(texts) > 0 {
		select {
		case <-live:
		case <-ctx.Done():
			a.happened("not_sent", fmt.Sprintf("texts that were not sent: %d", len(texts)), map[string]any{"texts": len(texts)})
			return
		}
		for len(texts) > 0 {
			err := s.Send(ctx, stream.Message{Data: []byte(texts[0])})
			if errors.Is(err, stream.ErrNotConnected) {
				break
			}
			texts = texts[1:]
			if err != nil {
				a.happened("not_sent", fmt.Sprintf("a text may not have been sent: %v", err), map[string]any{"texts": 1, "error": err.Error()})
			}
		}
	}
}

// happened tells on standard error that something did, in words or as JSON.
func (a *app) happened(event, text string, more map[string]any) {
	if !a.json {
		a.out.line("%s", text)
		return
	}
	more["event"] = event
	_ = a.out.remark(more)
}

// tailTrace tells on standard error what happens to the connection, unless that is quiet because a line at the bottom
// does.
func (a *app) tailTrace(quiet bool) *stream.Trace {
	say := a.happened
	if quiet {
		say = func(string, string, map[string]any) {}
	}
	return &stream.Trace{
		Connected: func(i stream.ConnectedInfo) {
			say("connected", "connected", map[string]any{"attempt": i.Attempt})
		},
		Failed: func(i stream.FailedInfo) {
			if i.Err.Class == stream.Permanent {
				return // it is the command's last word
			}
			say("failed", fmt.Sprintf("attempt %d failed: %v", i.Attempt, i.Err), map[string]any{"attempt": i.Attempt, "status": i.Err.Status, "error": i.Err.Error()})
		},
		Stale: func(i stream.StaleInfo) {
			say("stale", fmt.Sprintf("nothing came for %s", i.Silence.Round(time.Second)), map[string]any{"attempt": i.Attempt, "silence": i.Silence.Seconds()})
		},
		Disconnected: func(i stream.DisconnectedInfo) {
			if i.By != stream.ByConsumer {
				say("disconnected", fmt.Sprintf("disconnected: %v", i.Err), map[string]any{"attempt": i.Attempt, "error": fmt.Sprint(i.Err)})
			}
		},
		Waiting: func(w delay.Wait) {
			switch {
			case a.json:
				_ = a.out.remark(waitEvent(w))
			case !quiet:
				a.out.line("%s", w)
			}
		},
	}
}
