package simulation

import (
	"slices"
	"time"
)

// mostReads is how often a client may read the nodes of one lock while nothing happens that
// concerns it. A waiter reads a few nodes when it begins to wait, and once more to look after
// its own node. Then it waits for an event. A client has up to twelve waiters. When all of
// them want permits in the same moment, each also looks who made the leases that it finds.
// The most that was seen is 90 (permits, seed 5039).
const mostReads = 192

// Read records that a client has read a node of a lock.
func (h *History) Read(client, lock string, at time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.readings.now, func(r *Reading) bool { return r.Client == client && r.Lock == lock })
	if i < 0 {
		i = len(h.readings.now)
		h.readings.now = append(h.readings.now, &Reading{Client: client, Lock: lock, Begun: at})
	}
	r := h.readings.now[i]
	r.Reads++
	r.Ended = at
}

// Stirred records that something has happened that a client may have to read for. An empty
// client or lock stands for all.
func (h *History) Stirred(client, lock string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stir(client, lock)
}

// stir is Stirred. The caller holds h.mu.
func (h *History) stir(client, lock string) {
	h.readings.now = slices.DeleteFunc(h.readings.now, func(r *Reading) bool {
		over := (client == "" || r.Client == client) && (lock == "" || r.Lock == lock)
		if over && r.Reads > mostReads {
			h.readings.most = append(h.readings.most, *r)
		}
		return over
	})
}

// restless: a client that waits does not ask again and again.
func restless(f *facts) (errs []error) {
	f.stir("", "")
	for _, r := range f.readings.most {
		errs = append(errs, broken(ErrRestless, "%s read %d times below %s from %v to %v", r.Client, r.Reads, r.Lock, r.Begun, r.Ended))
	}
	return errs
}
