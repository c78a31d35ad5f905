package app

import (
	"io"
	"log/slog"

	"github.com/wva-project/wva/config"
)

// NewLogger returns a logger in the form of the configuration, and its level, which can be changed.
func NewLogger(w io.Writer, c config.Log) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(c.Level)
	options := &slog.HandlerOptions{Level: level}
	if c.Format == config.FormatJSON {
		return slog.New(slog.NewJSONHandler(w, options)), level
	}
	return slog.New(slog.NewTextHandler(w, options)), level
}
