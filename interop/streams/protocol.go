package streams

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Pong answers a ping.
var Pong = []byte("{}")

// Position is a place in a channel's history. Offsets of different epochs have nothing to do with each other.
type Position struct {
	Offset uint64 `json:"offset,omitempty"`
	Epoch  string `json:"epoch,omitempty"`
}

// Connect is the first command on a connection.
func Connect(id uint32) []byte {
	return command(map[string]any{"id": id, "connect": struct{}{}})
}

// Subscribe is the command to hear what is published on the channel from now on.
func Subscribe(id uint32, channel string) []byte {
	return command(map[string]any{"id": id, "subscribe": map[string]any{"channel": channel}})
}

// SubscribeFrom is the command to hear what was published on the channel after the position, and from now on.
func SubscribeFrom(id uint32, channel string, from Position) []byte {
	return command(map[string]any{"id": id, "subscribe": map[string]any{
		"channel": channel, "recover": true, "offset": from.Offset, "epoch": from.Epoch,
	}})
}

// Frame puts several commands into one frame.
func Frame(commands ...[]byte) []byte { return bytes.Join(commands, []byte("\n")) }

func command(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return b
}

// Message is one message of the server. Exactly one of its pointers is set, except in a ping, which has none.
type Message struct {
	ID        uint32           `json:"id"`
	Error     *Error           `json:"error"`
	Connect   *ConnectResult   `json:"connect"`
	Subscribe *SubscribeResult `json:"subscribe"`
	Push      *Push            `json:"push"`
}

// Error says why a command was not carried out.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// ConnectResult answers connect.
type ConnectResult struct {
	Client string `json:"client"`
	Ping   int    `json:"ping"` // seconds, rounded down: 0 for an interval of less than one
	Pong   bool   `json:"pong"`
}

// SubscribeResult answers subscribe. Its position is the one to recover from when there were no publications since.
type SubscribeResult struct {
	Position
	WasRecovering bool          `json:"was_recovering"`
	Recovered     bool          `json:"recovered"`
	Publications  []Publication `json:"publications"`
}

// Push is a publication that nobody asked for by a command.
type Push struct {
	Channel string      `json:"channel"`
	Pub     Publication `json:"pub"`
}

// Publication is what was published, and where it is in the channel's history.
type Publication struct {
	Data   json.RawMessage `json:"data"`
	Offset uint64          `json:"offset"`
}

// IsPing reports whether the message wants a [Pong].
func (m Message) IsPing() bool { return m == Message{} }

// Parse takes a frame apart.
func Parse(frame []byte) ([]Message, error) {
	var messages []Message
	for line := range bytes.Lines(frame) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var m Message
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("streams: a line of %d bytes: %w", len(line), err)
		}
		messages = append(messages, m)
	}
	return messages, nil
}
