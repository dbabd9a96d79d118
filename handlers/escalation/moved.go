package escalation

import "sync"

// maxMoved is how many keys a generation of moved holds.
const maxMoved = 10_000

// moved remembers the watchdog's messages that were followed by another. One that
// comes twice would make two, and each of those again: as long as a process lives,
// it makes one of them. Two generations bound what is remembered; what is forgotten
// is a message more.
type moved struct {
	mu       sync.Mutex
	new, old map[string]bool
}

func (m *moved) has(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.new[key] || m.old[key]
}

func (m *moved) add(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.new == nil || len(m.new) >= maxMoved {
		m.new, m.old = map[string]bool{}, m.new
	}
	m.new[key] = true
}
