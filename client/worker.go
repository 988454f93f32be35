package client

// job is a call for a worker.
type job interface {
	run()  // blocks
	tell() // wakes who waits
}

// idleWorkers is how many goroutines of a session wait for the next call. A
// goroutine that is kept has its stack already: go-zookeeper's calls outgrow
// that of a new one, which is then copied in the middle of the hand-over of a
// lock.
const idleWorkers = 8

// work has j run by a goroutine that the session waits for at its end. It
// reports false, and does nothing, once the session is disposed of.
func (s *session) work(j job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disposed {
		return false
	}
	if n := len(s.idle); n > 0 {
		worker := s.idle[n-1] // the last to rest has its stack in the caches
		s.idle = s.idle[:n-1]
		worker <- j // it has room: nobody else knows it
		return true
	}
	worker := make(chan job, 1)
	worker <- j
	s.running.Go(func() { s.serve(worker) }) // ends with the session, or when enough others rest
	return true
}

// serve runs what comes in. A worker rests before it tells, so that who is
// woken by it and calls again finds it.
func (s *session) serve(worker chan job) {
	for j := range worker {
		j.run()
		resting := s.rest(worker)
		j.tell()
		if !resting {
			return
		}
	}
}

// rest reports whether worker is to wait for more.
func (s *session) rest(worker chan job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disposed || len(s.idle) == idleWorkers {
		return false
	}
	s.idle = append(s.idle, worker)
	return true
}

// begin counts the calling goroutine among those that the session waits for,
// until it calls running.Done. It reports false once the session is disposed
// of.
func (s *session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disposed {
		return false
	}
	s.running.Add(1)
	return true
}

// dismiss ends the workers and waits for all that runs, which must be ending.
func (s *session) dismiss() {
	s.mu.Lock()
	s.disposed = true
	for _, worker := range s.idle {
		close(worker)
	}
	s.idle = nil
	s.mu.Unlock()
	s.running.Wait()
}
