package requests_test

import (
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What the tests need of RFC 9113: frame types, flags and error codes (sections 6 and 7).
const (
	h2Data, h2Headers, h2Reset, h2Settings, h2Ping, h2GoAway = 0x0, 0x1, 0x3, 0x4, 0x6, 0x7

	h2EndStream, h2Ack, h2EndHeaders = 0x1, 0x1, 0x4

	h2NoError, h2InternalError, h2RefusedStream, h2Cancel, h2EnhanceYourCalm = 0x0, 0x2, 0x7, 0x8, 0xb
)

// h2peer is a server's end of a connection of HTTP/2.
type h2peer struct{ *peer }

type frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

// overH2 is a script that greets first, and reads on behind itself.
func overH2(script func(*h2peer)) func(*peer) {
	return func(p *peer) {
		h := &h2peer{p}
		if _, err := p.r.Discard(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")); err != nil {
			return
		}
		h.send(h2Settings, 0, 0)
		script(h)
		for h.next().kind != h2GoAway {
		}
	}
}

func (h *h2peer) send(kind, flags byte, stream uint32, payload ...byte) {
	f := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	f = binary.BigEndian.AppendUint32(f, stream)
	_, _ = h.Write(append(f, payload...))
}

// next reads a frame and answers what has to be. When the client has left, it is a GOAWAY.
func (h *h2peer) next() frame {
	head := make([]byte, 9)
	if _, err := io.ReadFull(h.r, head); err != nil {
		return frame{kind: h2GoAway}
	}
	f := frame{kind: head[3], flags: head[4], stream: binary.BigEndian.Uint32(head[5:])}
	f.payload = make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	if _, err := io.ReadFull(h.r, f.payload); err != nil {
		return frame{kind: h2GoAway}
	}
	if (f.kind == h2Settings || f.kind == h2Ping) && f.flags&h2Ack == 0 {
		answer := f.payload
		if f.kind == h2Settings {
			answer = nil
		}
		h.send(f.kind, h2Ack, 0, answer...)
	}
	return f
}

// request reads a whole request and returns its stream.
func (h *h2peer) request() uint32 {
	for {
		switch f := h.next(); {
		case f.kind == h2GoAway:
			return 0
		case (f.kind == h2Headers || f.kind == h2Data) && f.flags&h2EndStream != 0:
			return f.stream
		}
	}
}

// until reads until a frame comes.
func (h *h2peer) until(kind byte) frame {
	for {
		if f := h.next(); f.kind == kind || f.kind == h2GoAway {
			return f
		}
	}
}

// Heads of answers that RFC 7541 has a short form for; 503 is a literal with an indexed name.
var (
	h2OK      = []byte{0x88}
	h2Busy    = []byte{0x08, 3, '5', '0', '3'}
	h2TooLong = []byte{0x08, 3, '4', '1', '3'}
)

// whole answers a request.
func (h *h2peer) whole(stream uint32, head []byte) {
	h.send(h2Headers, h2EndHeaders, stream, head...)
	h.send(h2Data, h2EndStream, stream, []byte("hello")...)
}

func (h *h2peer) reset(stream uint32, code byte) { h.send(h2Reset, 0, stream, 0, 0, 0, code) }

func (h *h2peer) goAway(last uint32, code byte) {
	h.send(h2GoAway, 0, 0, append(binary.BigEndian.AppendUint32(nil, last), 0, 0, 0, code)...)
}

// What net/http repeats by itself, because nothing was processed, is one attempt. What may have been processed is
// repeated for a GET and not for a POST.
func TestNothingIsLeftOverHTTP2(t *testing.T) {
	ok := overH2(func(h *h2peer) {
		for {
			s := h.request()
			if s == 0 {
				return
			}
			h.whole(s, h2OK)
		}
	})
	then := func(first func(*h2peer)) func(*peer) { // one that goes on on the same connection
		return overH2(func(h *h2peer) {
			first(h)
			h.whole(h.request(), h2OK)
		})
	}
	canceled := func(h *h2peer, stream uint32) {
		if f := h.until(h2Reset); f.stream != stream || len(f.payload) != 4 || f.payload[3] != h2Cancel {
			h.w.t.Errorf("the server was sent %v", f)
		}
	}
	tests := []struct {
		name      string
		serve     []func(*peer)
		get, post string
		gets      int
		dialled   int // by a GET
	}{
		{name: "served", serve: []func(*peer){ok}, get: "200", gets: 1, post: "200", dialled: 1},
		{name: "REFUSED_STREAM", get: "200", gets: 1, post: "200", dialled: 1, serve: []func(*peer){then(func(h *h2peer) {
			h.reset(h.request(), h2RefusedStream)
		})}},
		{name: "REFUSED_STREAM for ever", get: "no answer", gets: 3, post: "no answer", dialled: 1, serve: []func(*peer){overH2(func(h *h2peer) {
			for {
				s := h.request()
				if s == 0 {
					return
				}
				h.reset(s, h2RefusedStream)
			}
		})}},
		{name: "GOAWAY, not processed", get: "200", gets: 1, post: "200", dialled: 2, serve: []func(*peer){overH2(func(h *h2peer) {
			h.request()
			h.goAway(0, h2NoError)
		}), ok}},
		{name: "GOAWAY, and closed", get: "200", gets: 2, post: "no answer", dialled: 2, serve: []func(*peer){overH2(func(h *h2peer) {
			h.goAway(h.request(), h2NoError)
			_ = h.Close()
		}), ok}},
		{name: "GOAWAY for a fault", get: "200", gets: 2, post: "no answer", dialled: 2, serve: []func(*peer){overH2(func(h *h2peer) {
			h.goAway(h.request(), h2EnhanceYourCalm)
			_ = h.Close()
		}), ok}},
		{name: "GOAWAY, and served", get: "200", gets: 1, post: "200", dialled: 1, serve: []func(*peer){overH2(func(h *h2peer) {
			s := h.request()
			h.goAway(s, h2NoError)
			h.whole(s, h2OK)
		})}},
		{name: "GOAWAY in the body", get: "200", gets: 1, post: "200", dialled: 1, serve: []func(*peer){overH2(func(h *h2peer) {
			s := h.request()
			h.send(h2Headers, h2EndHeaders, s, h2OK...)
			h.goAway(s, h2NoError)
			h.send(h2Data, h2EndStream, s, 'x')
		})}},
		{name: "GOAWAY with a refusal", get: "200", gets: 2, post: "503", dialled: 2, serve: []func(*peer){overH2(func(h *h2peer) {
			s := h.request()
			h.goAway(s, h2NoError)
			h.whole(s, h2Busy)
		}), ok}},
		{name: "stream reset", get: "200", gets: 2, post: "no answer", dialled: 1, serve: []func(*peer){then(func(h *h2peer) {
			h.reset(h.request(), h2InternalError)
		})}},
		{name: "stream reset in the body", get: "200, broken off", gets: 1, post: "200, broken off", dialled: 1, serve: []func(*peer){overH2(func(h *h2peer) {
			s := h.request()
			h.send(h2Headers, h2EndHeaders, s, h2OK...)
			h.send(h2Data, 0, s, 'x')
			h.reset(s, h2InternalError)
		})}},
		{name: "stream reset in the body of a refusal", get: "200", gets: 2, post: "503, broken off", dialled: 1, serve: []func(*peer){then(func(h *h2peer) {
			s := h.request()
			h.send(h2Headers, h2EndHeaders, s, h2Busy...)
			h.reset(s, h2InternalError)
		})}},
		{name: "connection closed in a frame", get: "200", gets: 2, post: "no answer", dialled: 2, serve: []func(*peer){overH2(func(h *h2peer) {
			h.request()
			h.say("\x00\x00\x09")
			_ = h.Close()
		}), ok}},
		{name: "no HTTP/2", get: "200", gets: 2, post: "no answer", dialled: 2, serve: []func(*peer){func(p *peer) {
			_, _ = p.r.Discard(24)
			p.say("HTTP/1.1 400 X", "", "")
		}, ok}},
		{name: "silence", get: "no answer", gets: 3, post: "no answer", dialled: 1, serve: []func(*peer){overH2(func(h *h2peer) {
			for s := h.request(); s != 0; s = h.request() {
				canceled(h, s)
			}
		})}},
		{name: "long body of a refusal", get: "200", gets: 2, post: "503", dialled: 1, serve: []func(*peer){then(func(h *h2peer) {
			s := h.request()
			h.send(h2Headers, h2EndHeaders, s, h2Busy...)
			for range 100 {
				h.send(h2Data, 0, s, make([]byte, 16<<10)...)
			}
			canceled(h, s)
		})}},
		{name: "slow body of a refusal", get: "200", gets: 2, post: "503, broken off", dialled: 1, serve: []func(*peer){then(func(h *h2peer) {
			s := h.request()
			h.send(h2Headers, h2EndHeaders, s, h2Busy...)
			h.send(h2Data, 0, s, 'x')
			time.Sleep(3 * time.Second)
			h.reset(s, h2InternalError) // of use to who is still there
		})}},
	}
	for _, tt := range tests {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			for variant, vary := range variants {
				t.Run(tt.name+"/"+method+" "+variant, func(t *testing.T) {
					wired(t, func(t *testing.T, w *wire) {
						w.h2()
						w.serve("localhost:80", tt.serve...)
						tr := w.transport()
						vary(tr)
						if tr.AttemptTimeout = 10 * time.Minute; tt.name == "silence" {
							tr.AttemptTimeout = time.Minute
						}
						req, want, sent := w.request(t.Context(), method, "body"), tt.post, 1
						if method == http.MethodGet {
							req, want, sent = w.request(t.Context(), method, ""), tt.get, tt.gets
						}
						resp, err := tr.RoundTrip(req)
						if got := fate(resp, err); got != want || w.sent != sent {
							t.Errorf("%s (%v) after %d attempts, want %s after %d", got, err, w.sent, want, sent)
						}
						if method == http.MethodGet && w.dialled != tt.dialled {
							t.Errorf("%d connections, want %d", w.dialled, tt.dialled)
						}
					})
				})
			}
		}
	}
}

func (w *wire) h2() {
	w.base.Protocols.SetHTTP1(false)
	w.base.Protocols.SetUnencryptedHTTP2(true)
}

// What was refused unprocessed is sent again only where its body can be had again.
func TestNothingIsLeftOfAStreamOverHTTP2(t *testing.T) {
	for method, want := range map[string]string{http.MethodPut: "200", http.MethodPost: "no answer"} {
		wired(t, func(t *testing.T, w *wire) {
			w.h2()
			w.serve("localhost:80", overH2(func(h *h2peer) {
				h.reset(h.request(), h2RefusedStream)
				if s := h.request(); s != 0 {
					h.whole(s, h2OK)
				}
			}))
			body := &stream{Reader: strings.NewReader("body")}
			req := w.request(t.Context(), method, "")
			req.Body, req.ContentLength = body, -1
			resp, err := w.transport().RoundTrip(req)
			if got := fate(resp, err); got != want || w.sent != 1 || body.closed == 0 {
				t.Errorf("%s: %s (%v) after %d attempts; the body was closed %d times", method, got, err, w.sent, body.closed)
			}
		})
	}
}

// An answer before the body has been sent ends the sending (RFC 9113, section 8.1).
func TestNothingIsLeftOfABodyThatNobodyWants(t *testing.T) {
	wired(t, func(t *testing.T, w *wire) {
		w.h2()
		w.serve("localhost:80", overH2(func(h *h2peer) {
			s := h.until(h2Headers).stream
			h.send(h2Headers, h2EndHeaders|h2EndStream, s, h2TooLong...)
			h.reset(s, h2NoError)
		}))
		r, end := io.Pipe()
		req := w.request(t.Context(), http.MethodPut, "")
		req.Body, req.ContentLength = r, -1
		tr := w.transport()
		tr.BufferLimit = -1
		resp, err := tr.RoundTrip(req)
		if got := fate(resp, err); got != "413" {
			t.Errorf("%s, %v", got, err)
		}
		time.Sleep(time.Second)
		if _, err := io.WriteString(end, "x"); err == nil {
			t.Error("the body is still read")
		}
	})
}

// Who cancels resets the stream and leaves the connection to others.
func TestNothingIsLeftByCancellingOverHTTP2(t *testing.T) {
	for _, head := range [][]byte{nil, h2OK, h2Busy} {
		for variant, vary := range variants {
			t.Run(string(head)+variant, func(t *testing.T) {
				wired(t, func(t *testing.T, w *wire) {
					w.h2()
					var reset time.Time
					w.serve("localhost:80", overH2(func(h *h2peer) {
						s := h.request()
						if head != nil {
							h.send(h2Headers, h2EndHeaders, s, head...)
							h.send(h2Data, 0, s, 'x')
						}
						h.until(h2Reset)
						reset = time.Now()
						h.whole(h.request(), h2OK)
					}))
					tr := w.transport()
					vary(tr)
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(500*time.Millisecond, cancel)
					began := time.Now()
					resp, err := tr.RoundTrip(w.request(ctx, http.MethodGet, ""))
					want := "cancelled"
					if len(head) == 1 {
						want = "200, broken off"
					}
					if got := fate(resp, err); got != want || time.Since(began) != 500*time.Millisecond {
						t.Errorf("%s (%v) after %v", got, err, time.Since(began))
					}
					synctest.Wait() // net/http resets the stream when it has returned
					resp, err = tr.RoundTrip(w.request(t.Context(), http.MethodGet, ""))
					if got := fate(resp, err); got != "200" || w.dialled != 1 || !reset.Equal(began.Add(500*time.Millisecond)) {
						t.Errorf("the next: %s (%v), %d connections, reset after %v", got, err, w.dialled, reset.Sub(began))
					}
				})
			})
		}
	}
}
