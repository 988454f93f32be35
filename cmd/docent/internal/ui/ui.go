// Package ui is the web page of `docent ui`: the locks of an ensemble, live.
//
// A collector reads nodes while a page is open, at most 50 requests a second, and keeps a
// model of them. The model is a machine without I/O: events and answers go in, pictures and
// timelines come out. Each page gets a stream of bounded pictures of the one view that it
// shows. The page is static, runs under a strict Content-Security-Policy, and writes what
// nodes say as text.
package ui

import (
	"context"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
)

//go:embed assets
var assets embed.FS

// Config says what a UI shows, and what it may do.
type Config struct {
	// Dial makes a client for as long as a page is open. It need not wait for a
	// connection. The UI closes the client.
	Dial func(context.Context) (*client.Client, error)
	// Dir is the top of what is read, and Depth how many levels below it.
	Dir   string
	Depth int
	// Hosts are names by which a browser may call the UI, beside localhost and addresses.
	Hosts []string
	// Ask asks one server how it is. It returns when ctx ends at the latest.
	Ask func(ctx context.Context, server string) Server
	// Act does what a page asks for. Nil lets pages look only. Token is what such a page
	// must show.
	Act   func(ctx context.Context, c *client.Client, a Action) (said string, err error)
	Token string
}

// Server is what one server says of itself.
type Server struct {
	Address string `json:"address"`
	Says    string `json:"says"` // empty if it does not answer
	Mode    string `json:"mode"`
}

// The actions.
const (
	ActionAsk   = "ask"   // request the release
	ActionEvict = "evict" // delete the node
)

// Action is what a page asks for, of the contender that it has shown.
type Action struct {
	Do    string `json:"do"`
	Lock  string `json:"lock"`
	Path  string `json:"path"`         // of the node
	Token int64  `json:"token,string"` // of the node: its czxid
	Holds bool   `json:"holds"`        // whether it was shown as a holder
}

const (
	mostPages    = 64
	mostNodes    = 100_000
	picturePause = 250 * time.Millisecond // between two pictures of a page, at least
	writeLimit   = 10 * time.Second       // a page that reads more slowly is cut off
	actLimit     = 20 * time.Second
	serversEvery = 5 * time.Second
	serverLimit  = 2 * time.Second
	longest      = 64 << 10 // an action, in bytes: paths of nodes may be long
)

// UI is the page and what is behind it. It is an http.Handler, safe for concurrent use.
type UI struct {
	cfg   Config
	k     *collector
	mux   *http.ServeMux
	same  *http.CrossOriginProtection
	ended chan struct{}
	end   func()

	asking sync.WaitGroup // of the servers

	mu      sync.Mutex // guards the rest
	pages   int
	servers []Server
	asked   time.Time
}

// New returns a UI. It does no I/O until a page is open. The caller closes it.
func New(cfg Config) *UI {
	ended := make(chan struct{})
	u := &UI{
		cfg: cfg, k: newCollector(cfg.Dir, limits{nodes: mostNodes, depth: cfg.Depth}, cfg.Dial),
		mux: http.NewServeMux(), same: http.NewCrossOriginProtection(),
		ended: ended, end: sync.OnceFunc(func() { close(ended) }),
	}
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the name is constant
	}
	u.mux.Handle("GET /", http.FileServerFS(files))
	u.mux.HandleFunc("GET /events", u.events)
	u.mux.HandleFunc("POST /act", u.act)
	return u
}

// Close ends all streams and the session, and waits for both.
func (u *UI) Close() {
	u.mu.Lock()
	u.end() // nobody asks the servers from now on
	u.mu.Unlock()
	u.k.close()
	u.asking.Wait()
}

// policy lets the page run its own script, and call its own server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// ServeHTTP serves the page. It refuses names that are not its own, by which a foreign
// site could reach it (DNS rebinding), and writes from other sites.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !u.known(r.Host) {
		http.Error(w, fmt.Sprintf("docent ui is not %q: open it as localhost or by an address, or start it with --host", shown(r.Host, mostName)), http.StatusMisdirectedRequest)
		return
	}
	if err := u.same.Check(r); err != nil {
		http.Error(w, "the request is of another site", http.StatusForbidden)
		return
	}
	u.mux.ServeHTTP(w, r)
}

// known reports whether the UI answers to a name. A foreign site has a name, so an address is
// always good.
func (u *UI) known(host string) bool {
	name := host
	if only, _, err := net.SplitHostPort(host); err == nil {
		name = only
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "localhost" || slices.ContainsFunc(u.cfg.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

// enter counts a page.
func (u *UI) enter() (leave func(), ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pages >= mostPages {
		return nil, false
	}
	done, ok := u.k.look()
	if !ok {
		return nil, false
	}
	u.pages++
	return func() {
		done()
		u.mu.Lock()
		defer u.mu.Unlock()
		u.pages--
	}, true
}

// foreign reports whether another site asks for a stream. Browsers do not say by Sec-Fetch-Site
// which site asks a server without encryption, unless that is this host.
func foreign(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site != "same-origin"
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host != r.Host
}

// events streams the status, and pictures of one view.
func (u *UI) events(w http.ResponseWriter, r *http.Request) {
	if foreign(r) {
		http.Error(w, "the request is of another site", http.StatusForbidden)
		return
	}
	leave, ok := u.enter()
	if !ok {
		http.Error(w, fmt.Sprintf("%d pages are open: close some", mostPages), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	s := stream{u: u, w: w, to: http.NewResponseController(w), q: query{
		view: r.FormValue("view"), at: r.FormValue("at"), search: strings.ToLower(r.FormValue("q")),
	}}
	if s.q.at == "" {
		s.q.at = u.cfg.Dir
	}
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		news := u.k.hears()
		if s.send() != nil {
			return
		}
		pause(r.Context(), picturePause)
		select {
		case <-news:
		case <-again.C:
		case <-r.Context().Done():
			return
		case <-u.ended:
			return
		}
	}
}

// hears returns what is closed at the next news.
func (k *collector) hears() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.news
}

// stream is what one page gets.
type stream struct {
	u    *UI
	w    http.ResponseWriter
	to   *http.ResponseController
	q    query
	last string
}

// send sends the status, and the picture if it is another one than the last.
func (s *stream) send() error {
	st := s.u.k.status(time.Now())
	st.Actions = s.u.cfg.Act != nil
	p := s.u.k.picture(s.q)
	if s.q.view == "servers" {
		p.Servers = s.u.askServers()
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := s.to.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	if string(text) != s.last {
		s.last = string(text)
		if _, err := fmt.Fprintf(s.w, "event: picture\ndata: %s\n\n", text); err != nil {
			return err
		}
	}
	if text, err = json.Marshal(st); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.w, "event: status\ndata: %s\n\n", text); err != nil {
		return err
	}
	return s.to.Flush()
}

// wake wakes whoever looks.
func (k *collector) wake() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tell()
}

func (k *collector) picture(q query) *picture {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.m.picture(q, time.Now())
}

// askServers returns how the servers are, as of some seconds ago, and has them asked again.
func (u *UI) askServers() []Server {
	c := u.k.session()
	u.mu.Lock()
	defer u.mu.Unlock()
	if c == nil || u.cfg.Ask == nil || time.Since(u.asked) < serversEvery || u.over() {
		return u.servers
	}
	u.asked = time.Now() // others show what there is
	u.asking.Go(func() { u.ask(c.Servers()) })
	return u.servers
}

// over reports whether Close was called.
func (u *UI) over() bool {
	select {
	case <-u.ended:
		return true
	default:
		return false
	}
}

// ask asks servers how they are, all at once.
func (u *UI) ask(addresses []string) {
	ctx, cancel := context.WithTimeout(context.Background(), serverLimit) // Close waits for it
	defer cancel()
	slices.Sort(addresses)
	all := make([]Server, len(addresses))
	var wg sync.WaitGroup
	for i, address := range addresses {
		all[i] = Server{Address: address}
		if u.k.limit.wait(ctx, 1) == nil {
			wg.Go(func() { all[i] = u.cfg.Ask(ctx, address) })
		}
	}
	wg.Wait()
	u.mu.Lock()
	u.servers = all
	u.mu.Unlock()
	u.k.wake()
}

// act does what a page asks for.
func (u *UI) act(w http.ResponseWriter, r *http.Request) {
	switch {
	case u.cfg.Act == nil:
		http.Error(w, "this docent ui only looks: start it with --allow-actions", http.StatusForbidden)
		return
	case u.cfg.Token == "" || subtle.ConstantTimeCompare([]byte(r.Header.Get("X-Docent-Token")), []byte(u.cfg.Token)) != 1:
		http.Error(w, "the token is missing or old: open the address that docent ui has printed", http.StatusForbidden)
		return
	}
	var a Action
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, longest)).Decode(&a); err != nil {
		http.Error(w, "no action: "+err.Error(), http.StatusBadRequest)
		return
	}
	if a.Do != ActionAsk && a.Do != ActionEvict {
		http.Error(w, "the actions are ask and evict", http.StatusBadRequest)
		return
	}
	c := u.k.session()
	if c == nil {
		http.Error(w, "there is no session: keep a page open", http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), actLimit)
	defer cancel()
	said, err := u.cfg.Act(ctx, c, a)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v: look whether it was done: %w", actLimit, err)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	if a.Do == ActionEvict {
		u.k.evicted(a)
	}
	_, _ = fmt.Fprintln(w, said)
}

// evicted writes into the timeline that a page has had a node deleted.
func (k *collector) evicted(a Action) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	k.m.evicted(a.Lock, happening{from: now, by: now, what: didEvict, node: a.Path[strings.LastIndexByte(a.Path, '/')+1:], token: a.Token})
	k.tell()
}
