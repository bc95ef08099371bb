package streams_test

import (
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/heed-sdk/heed/interop/streams"
)

// TestExpires has a connection closed when its token expires.
func TestExpires(t *testing.T) {
	t.Parallel()
	expiry := time.Now().Add(2 * time.Second).Truncate(time.Second) // the library counts in whole seconds
	s := streams.Start(t, streams.Config{Expires: func(string) time.Time { return expiry }})
	c := mustDial(t, s, "token")
	c.subscribe(streams.Subscribe(2, channel))
	if m, err := c.next(); websocket.CloseStatus(err) != 3005 {
		t.Errorf("got %+v and %v, want a close with 3005", m, err)
	}
	if early := time.Until(expiry); early > 0 {
		t.Errorf("closed %v before the token expired", early)
	}
}
