package config

import (
	"github.com/sluicehq/sluice/internal/letterkeys"
)

// LetterKeys reads the keys of dead letters: those of the environment, or else of
// deadLetter.keyFile. There may be none.
func (c *Config) LetterKeys(env func(string) string) (letterkeys.Keys, error) {
	file := c.DeadLetter.KeyFile
	if file != "" {
		file = c.file(file)
	}
	return letterkeys.Find(env, file)
}
