package escalation

import "sync"

// maxMoved limits the keys in a generation of moved.
const maxMoved = 10_000

// moved remembers the watchdog's messages that have a successor. A duplicate
// message would make two successors, and so on; a process makes only one. Two
// generations limit the memory. A forgotten key costs one more message.
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
