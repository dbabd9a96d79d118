package config

import (
	"github.com/sluicehq/sluice/internal/letterkeys"
)

// LetterKeys reads the signing keys of dead letters from the environment, else from
// deadLetter.keyFile. The result may be empty.
func (c *Config) LetterKeys(env func(string) string) (letterkeys.Keys, error) {
	file := c.DeadLetter.KeyFile
	if file != "" {
		file = c.file(file)
	}
	return letterkeys.Find(env, file)
}
