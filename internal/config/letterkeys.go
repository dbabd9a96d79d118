package config

import (
	"github.com/sluicehq/sluice/deadletter"
)

// LetterKeys reads the keys of dead letters: those of the environment, or else of
// deadLetter.keyFile. There may be none.
func (c *Config) LetterKeys(env func(string) string) (deadletter.Keys, error) {
	file := c.DeadLetter.KeyFile
	if file != "" {
		file = c.file(file)
	}
	return deadletter.FindKeys(env, file)
}
