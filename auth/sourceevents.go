package auth

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Refreshed says that a token source has a new token.
type Refreshed struct {
	ExpiresAt time.Time // zero when no expiry is known
	ByOther   bool      // another process had stored it
}

// RefreshFailed says that a refresh brought no token. Ahead of the expiry the present token is still good.
type RefreshFailed struct {
	Err error
}

// StoreTrouble says that a token source goes on without what its store could not do: lock the login, or keep it.
type StoreTrouble struct {
	Err error
}

// Name returns "refreshed".
func (Refreshed) Name() string { return "refreshed" }

// Name returns "refresh_failed".
func (RefreshFailed) Name() string { return "refresh_failed" }

// Name returns "store_trouble".
func (StoreTrouble) Name() string { return "store_trouble" }

func (e Refreshed) String() string {
	by := "the token was refreshed"
	if e.ByOther {
		by = "another process had refreshed the token"
	}
	if e.ExpiresAt.IsZero() {
		return by
	}
	return by + ", until " + e.ExpiresAt.Format(time.RFC3339)
}

func (e RefreshFailed) String() string { return fmt.Sprint(e.Err) }
func (e StoreTrouble) String() string  { return fmt.Sprint(e.Err) }

func (e Refreshed) record() (slog.Level, []slog.Attr) {
	return slog.LevelInfo, []slog.Attr{slog.Time("expires_at", e.ExpiresAt), slog.Bool("by_other", e.ByOther)}
}

func (e RefreshFailed) record() (slog.Level, []slog.Attr) {
	return slog.LevelWarn, []slog.Attr{slog.String("error", e.Err.Error())}
}

func (e StoreTrouble) record() (slog.Level, []slog.Attr) {
	return slog.LevelWarn, []slog.Attr{slog.String("error", e.Err.Error())}
}

// tell tells whoever wants to know.
func (s *TokenSource) tell(e Event) {
	if s.cfg.Logger != nil {
		level, attrs := e.record()
		s.cfg.Logger.LogAttrs(context.Background(), level, "auth: "+e.Name(), attrs...)
	}
	if s.cfg.OnEvent != nil {
		s.cfg.OnEvent(e)
	}
}
