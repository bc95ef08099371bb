package websocket_test

import (
	"bytes"
	"compress/flate"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

// A message that the end of the connection cut off is none, wherever it was cut.
func TestAMessageCutOffIsNone(t *testing.T) {
	const whole, fragment, compressed = 0x82, 0x02, 0xC2
	var deflated bytes.Buffer
	w, _ := flate.NewWriter(&deflated, flate.NoCompression)
	_, _ = w.Write(make([]byte, 60))
	_ = w.Flush()
	payload := bytes.TrimSuffix(deflated.Bytes(), []byte("\x00\x00\xff\xff"))
	for name, sent := range map[string][]byte{
		"after the header":                  {whole, 3},
		"in the payload":                    {whole, 3, 'a', 'b'},
		"between two fragments":             {fragment, 1, 'a'},
		"in a header":                       {fragment, 1, 'a', 0x80},
		"after the header of a fragment":    {fragment, 1, 'a', 0x80, 2},
		"compressed, after the header":      {compressed, byte(len(payload))},
		"compressed, in the payload":        append([]byte{compressed, byte(len(payload))}, payload[:20]...),
		"compressed, between two fragments": append([]byte{compressed &^ 0x80, 20}, payload[:20]...),
	} {
		t.Run(name, func(t *testing.T) {
			handle(t, func(w http.ResponseWriter, r *http.Request) {
				conn, rw, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = conn.Close() }()
				key := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
				fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"+
					"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n%s", base64.StdEncoding.EncodeToString(key[:]), sent)
				_ = rw.Flush()
			}, func(t *testing.T, d websocket.Dialer) {
				d.Compression = true
				m, err := dial(t, d).Receive()
				if e, ok := errors.AsType[*stream.DisconnectError](err); !ok || e.Class != stream.Transient || len(m.Data) > 0 {
					t.Errorf("%q, %v", m.Data, err)
				}
			})
		})
	}
}
