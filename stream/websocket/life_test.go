package websocket_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ws "github.com/coder/websocket"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

// Pings count as frames, and so do the parts of a message that takes its time.
func TestSignsOfLife(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		network := fakes.NewNetwork(t)
		server := fakes.NewStreamServer(
			fakes.StreamStep{Ping: 3 * time.Second, Alive: time.Minute, Then: fakes.Drop},
			fakes.StreamStep{Then: fakes.Stop},
			fakes.StreamStep{Messages: []string{"a"}, Then: fakes.Stop},
		)
		defer server.Close()
		network.Serve(t, "ws.test", server)
		var stale []time.Duration
		pings := map[time.Duration]int{} // of the first connection, by the time
		began := time.Now()
		stm := stream.Reconnect(stream.Config{
			Dialer: websocket.Dialer{URL: "wss://ws.test/", Client: network.Client()}, Staleness: 4 * time.Second,
			Rand: func(n int64) int64 { return n },
			Trace: &stream.Trace{
				Stale: func(i stream.StaleInfo) { stale = append(stale, i.Silence) },
				Alive: func() {
					if passed := time.Since(began); passed < time.Minute {
						pings[passed]++
					}
				},
			},
		})
		for _, err := range stm.Messages(t.Context()) {
			want(t, "error", err, nil)
			break
		}
		for at := 3 * time.Second; at < time.Minute; at += 3 * time.Second {
			want(t, fmt.Sprintf("pings told after %v", at), pings[at], 1)
		}
		want(t, "pings in all", len(pings), 19)
		attempts := server.Attempts()
		want(t, "the first lived", attempts[0].Ended.Sub(attempts[0].At), time.Minute)
		want(t, "the second lived", attempts[1].Ended.Sub(attempts[1].At), 4*time.Second)
		want(t, "stale", fmt.Sprint(stale), "[4s]")
		want(t, "connections at once", server.MostAlive(), 1)
	})
}

func TestAMessageInPartsIsNotSilence(t *testing.T) {
	serve(t, nil, func(c *ws.Conn, _ *http.Request) {
		w, _ := c.Writer(context.Background(), ws.MessageText)
		for range 10 {
			_, _ = w.Write(make([]byte, 8<<10)) // more than the library keeps back
			time.Sleep(3 * time.Second)
		}
		_ = w.Close()
		linger(c)
	}, func(t *testing.T, d websocket.Dialer) {
		for m, err := range stream.Reconnect(stream.Config{Dialer: d, Staleness: 4 * time.Second}).Messages(t.Context()) {
			want(t, "error", err, nil)
			want(t, "length", len(m.Data), 80<<10)
			break
		}
	})
}

// The server hears a close frame when the consumer has had enough.
func TestFarewell(t *testing.T) {
	heard := make(chan ws.StatusCode, 1)
	serve(t, nil, func(c *ws.Conn, _ *http.Request) {
		_ = c.Write(context.Background(), ws.MessageText, []byte("a"))
		_, _, err := c.Read(context.Background())
		heard <- ws.CloseStatus(err)
	}, func(t *testing.T, d websocket.Dialer) {
		began := time.Now()
		for range stream.Reconnect(stream.Config{Dialer: d}).Messages(t.Context()) {
			break
		}
		want(t, "took", time.Since(began), 0)
		want(t, "heard", <-heard, ws.StatusNormalClosure)
	})
}

// pipes is a network without buffers: whoever writes waits for the other side to read.
func pipes(t *testing.T, server func(net.Conn)) *http.Client {
	t.Helper()
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			t.Cleanup(func() { _ = there.Close() })
			go server(there)
			return here, nil
		},
	}}
}

// upgrade answers a handshake by hand.
func upgrade(c net.Conn, accept func(key string) string) {
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		accept(req.Header.Get("Sec-WebSocket-Key")))
}

func accepted(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// A server that takes nothing in holds nobody up.
func TestFrozenServer(t *testing.T) {
	states := map[string]func(net.Conn){
		"takes no connection": func(net.Conn) {},
		"takes no request":    func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) },
		"answers nothing":     func(c net.Conn) { _, _ = http.ReadRequest(bufio.NewReader(c)) },
		"answers half":        func(c net.Conn) { _, _ = http.ReadRequest(bufio.NewReader(c)); fmt.Fprint(c, "HTTP/1.1 101 Sw") },
		"refuses, half": func(c net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(c))
			fmt.Fprint(c, "HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\nn")
		},
		"switches to nonsense":  func(c net.Conn) { upgrade(c, func(string) string { return "nonsense" }) },
		"freezes once upgraded": func(c net.Conn) { upgrade(c, accepted) },
		"freezes in a frame":    func(c net.Conn) { upgrade(c, accepted); _, _ = c.Write([]byte{0x81, 0x7e, 0x01}) },
		"freezes in a ping":     func(c net.Conn) { upgrade(c, accepted); _, _ = c.Write([]byte{0x89, 0x00}) }, // the pong is not taken in
		"freezes in a close":    func(c net.Conn) { upgrade(c, accepted); _, _ = c.Write([]byte{0x88, 0x02, 0x03, 0xe8}) },
	}
	encrypted := &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}, MinVersion: tls.VersionTLS12}
	for name, server := range maps.Clone(states) {
		states["encrypted, "+name] = func(c net.Conn) { server(tls.Server(c, encrypted)) }
	}
	for name, server := range states {
		t.Run(name, func(t *testing.T) {
			fakes.Bubble(t, time.Time{}, func(t *testing.T) {
				address := "ws://localhost/"
				if strings.HasPrefix(name, "encrypted") {
					address = "wss://localhost/"
				}
				stm := stream.Reconnect(stream.Config{
					Dialer: websocket.Dialer{URL: address, Client: pipes(t, server)}, Rand: func(n int64) int64 { return n },
				})
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for _, err := range stm.Messages(context.Background()) {
						t.Errorf("yielded %v", err)
					}
				}()
				synctest.Wait()
				began := time.Now()
				_ = stm.Close()
				want(t, "Close took", time.Since(began), 0)
				<-ended
				if took := time.Since(began); took > 10*time.Millisecond {
					t.Errorf("the loop ended after %v", took)
				}
			})
		})
	}
}

// A message that the server does not take in holds up neither Close nor the loop, and its sender only as long as the
// deadline says.
func TestFrozenWhileSending(t *testing.T) {
	for _, deadline := range []time.Duration{-1, 0, time.Minute} {
		fakes.Bubble(t, time.Time{}, func(t *testing.T) {
			client := pipes(t, func(c net.Conn) { upgrade(c, accepted) })
			stm := stream.Reconnect(stream.Config{Dialer: websocket.Dialer{URL: "ws://localhost/", Client: client}, SendDeadline: deadline})
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for _, err := range stm.Messages(context.Background()) {
					t.Errorf("yielded %v", err)
				}
			}()
			synctest.Wait()
			var err error
			sent := make(chan time.Time, 1)
			began := time.Now()
			go func() {
				err = stm.Send(context.Background(), stream.Message{Data: []byte("a")})
				sent <- time.Now()
			}()
			time.Sleep(time.Hour)
			if deadline >= 0 {
				most := max(deadline, 10*time.Second)
				want(t, "Send took", (<-sent).Sub(began), most)
				if late, ok := errors.AsType[*delay.TimeoutError](err); !ok || late.After != most || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("sent: %v", err)
				}
			}
			began = time.Now()
			_ = stm.Close()
			want(t, "Close took", time.Since(began), 0)
			<-ended
			if deadline < 0 {
				<-sent
				want(t, "sent", err != nil, true)
			}
			if took := time.Since(began); took > 10*time.Millisecond {
				t.Errorf("the loop ended after %v", took)
			}
		})
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// A stale connection is replaced although the server takes nothing in.
func TestFrozenServerIsReplaced(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		dialled := make(chan time.Time, 16)
		client := pipes(t, func(c net.Conn) {
			dialled <- time.Now()
			upgrade(c, accepted)
			if len(dialled) > 1 {
				_, _ = c.Write([]byte{0x81, 0x01, 'a'})
			}
		})
		stm := stream.Reconnect(stream.Config{
			Dialer:    websocket.Dialer{URL: "ws://localhost/", Client: client},
			Staleness: 10 * time.Second, Rand: func(n int64) int64 { return n },
		})
		for m, err := range stm.Messages(t.Context()) {
			want(t, "error", err, nil)
			want(t, "message", string(m.Data), "a")
			break
		}
		first := <-dialled
		if took := (<-dialled).Sub(first) - 11*time.Second; took < 0 || took > 10*time.Millisecond {
			t.Errorf("replaced %v after silence and wait", took)
		}
	})
}

func TestEndedContextDialsNothing(t *testing.T) {
	handle(t, func(http.ResponseWriter, *http.Request) { t.Error("a request") }, func(t *testing.T, d websocket.Dialer) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := d.Dial(ctx, stream.Attempt{})
		want(t, "error", errors.Is(err, context.Canceled), true)
	})
}

// A transport that does not tell its connection still works.
func TestTransportThatTellsNothing(t *testing.T) {
	serve(t, nil, func(c *ws.Conn, _ *http.Request) {
		_ = c.Write(context.Background(), ws.MessageText, []byte("a"))
		linger(c)
	}, func(t *testing.T, d websocket.Dialer) {
		d.Client = &http.Client{Transport: mute{d.Client.Transport}, Timeout: time.Nanosecond}
		for m, err := range stream.Reconnect(stream.Config{Dialer: d}).Messages(t.Context()) {
			want(t, "error", err, nil)
			want(t, "message", string(m.Data), "a")
			break
		}
	})
}

// mute hides the trace of the request from the transport below.
type mute struct{ http.RoundTripper }

func (m mute) RoundTrip(r *http.Request) (*http.Response, error) {
	return m.RoundTripper.RoundTrip(r.WithContext(hidden{r.Context()}))
}

type hidden struct{ context.Context }

func (hidden) Value(any) any { return nil }
