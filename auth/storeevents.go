package auth

import (
	"fmt"
	"log/slog"
)

// StoreChosen says where a login will be kept, before it begins.
type StoreChosen struct {
	Choice Choice
}

// RevokeFailed says that a server may not have revoked what an earlier login left.
type RevokeFailed struct {
	Err error
}

// Name returns "store_chosen".
func (StoreChosen) Name() string { return "store_chosen" }

// Name returns "revoke_failed".
func (RevokeFailed) Name() string { return "revoke_failed" }

func (e StoreChosen) String() string { return "the login is kept in the " + e.Choice.String() }

func (e RevokeFailed) String() string { return fmt.Sprint(e.Err) }

func (e StoreChosen) record() (slog.Level, []slog.Attr) {
	return slog.LevelInfo, []slog.Attr{slog.String("store", e.Choice.Name), slog.String("why", e.Choice.Why)}
}

func (e RevokeFailed) record() (slog.Level, []slog.Attr) {
	return slog.LevelWarn, []slog.Attr{slog.String("error", e.Err.Error())}
}
