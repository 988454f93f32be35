package ui_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/cmd/docent/internal/ui"
)

// acts is what pages have asked for.
type acts struct {
	mu  sync.Mutex
	all []ui.Action
}

func (a *acts) act(_ context.Context, c *client.Client, one ui.Action) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, one)
	if c == nil {
		return "", errors.New("no client")
	}
	if strings.Contains(one.Lock, "refused") {
		return "", errors.New("the contender has left meanwhile; nothing was done")
	}
	return "done: " + one.Do, nil
}

func (a *acts) seen() []ui.Action {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all
}

const token = "TOKENOFTHETEST"

// A page acts only after a confirmation that names the node, and an eviction only after a yes.
func TestBrowserActs(t *testing.T) {
	t.Parallel()
	var done acts
	r := newRig(t, ui.Config{Act: done.act, Token: token})
	held := r.stand(r.connect("a"), "/locks/orders", "10.0.0.7 pid=1 client=billing")
	name := held[strings.LastIndexByte(held, '/')+1:]
	b := browser(t, 1100, 700)
	r.run(b, chromedp.Navigate(r.http.URL+"/#/lock?at=/locks/orders"), has("open the address that docent ui has printed"),
		until(`![...document.querySelectorAll("button")].some((b) => b.textContent === "Evict")`),
		chromedp.Navigate("about:blank"), chromedp.Navigate(r.http.URL+"/#token="+token), has("Live"), until(`!location.href.includes("TOKEN")`),
		click("/locks/orders"), has("Evict"), click("Ask"), has("Ask to release?"),
		until(`document.querySelector("dialog").innerText.includes("`+name+`")`), click("Cancel"),
		until(`!document.querySelector("dialog").open`))
	if len(done.seen()) != 0 {
		t.Fatalf("done without a confirmation: %+v", done.seen())
	}
	r.run(b, click("Evict"), has("Delete this node?"), until(`document.querySelector("dialog").innerText.includes("`+name+`")`),
		until(`[...document.querySelectorAll("dialog button")].at(-1).disabled`), shot("evict"),
		chromedp.SendKeys(chromedp.CSS("dialog input"), "yes"), click("Delete this node"), has("done: evict"), click("Close"), has("evicted from a page"))
	all := done.seen()
	if len(all) != 1 || all[0].Do != ui.ActionEvict || all[0].Lock != "/locks/orders" || all[0].Path != held || all[0].Token == 0 || !all[0].Holds {
		t.Errorf("%+v", all)
	}
	r.stand(r.connect("a"), "/locks/refused", "10.0.0.7 pid=1 client=billing")
	r.run(b, chromedp.Evaluate[chromedp.Void](`location.hash = "#/lock?at=/locks/refused"`), has("Evict"), click("Ask"), click("Write the request"), has("has left meanwhile"))
}

// send sends a request as a page would, but for what change changes.
func (r *rig) send(change func(*http.Request)) (status int, text string) {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, r.http.URL+"/act",
		strings.NewReader(`{"do": "evict", "lock": "/locks/orders", "path": "/locks/orders/x", "token": "7"}`))
	r.check(err)
	req.Header.Set("X-Docent-Token", token)
	req.Header.Set("Origin", r.http.URL)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	change(req)
	res, err := http.DefaultClient.Do(req)
	r.check(err)
	body, err := io.ReadAll(res.Body)
	r.check(err)
	r.check(res.Body.Close())
	return res.StatusCode, string(body)
}

// Other sites, names that are not the page's own, and whoever does not know the token act
// in vain.
func TestStrangersDoNotAct(t *testing.T) {
	t.Parallel()
	var done acts
	r := newRig(t, ui.Config{Act: done.act, Token: token, Hosts: []string{"ops.example.org"}})
	s := r.open("locks", "", "")
	s.live()
	for name, tt := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"no token":         {func(q *http.Request) { q.Header.Del("X-Docent-Token") }, http.StatusForbidden},
		"another token":    {func(q *http.Request) { q.Header.Set("X-Docent-Token", token+"X") }, http.StatusForbidden},
		"another site":     {func(q *http.Request) { q.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"the same domain":  {func(q *http.Request) { q.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		"another origin":   {func(q *http.Request) { q.Header.Del("Sec-Fetch-Site"); q.Header.Set("Origin", "http://evil.example") }, http.StatusForbidden},
		"a rebound name":   {func(q *http.Request) { q.Host = "evil.example:8370" }, http.StatusMisdirectedRequest},
		"a name like ours": {func(q *http.Request) { q.Host = "localhost.evil.example" }, http.StatusMisdirectedRequest},
		"no name":          {func(q *http.Request) { q.Host = ":8370" }, http.StatusMisdirectedRequest},
		"a GET":            {func(q *http.Request) { q.Method = http.MethodGet }, http.StatusNotFound},
		"no action": {func(q *http.Request) {
			q.Body = io.NopCloser(strings.NewReader(`{"do": "drop"}`))
			q.ContentLength = -1
		}, http.StatusBadRequest},
		"too long an action": {func(q *http.Request) {
			q.Body = io.NopCloser(strings.NewReader(`{"do": "` + strings.Repeat("x", 1<<20)))
			q.ContentLength = -1
		}, http.StatusBadRequest},
	} {
		if status, text := r.send(tt.change); status != tt.status {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if len(done.seen()) > 0 {
		t.Fatalf("%+v", done.seen())
	}
	for name, change := range map[string]func(*http.Request){
		"the page":           func(*http.Request) {},
		"by an address":      func(q *http.Request) { q.Host = "[::1]:9999"; q.Header.Set("Origin", "http://[::1]:9999") },
		"a forwarded port":   func(q *http.Request) { q.Host = "localhost:9999"; q.Header.Set("Origin", "http://localhost:9999") },
		"the name of a flag": func(q *http.Request) { q.Host = "OPS.example.org"; q.Header.Set("Origin", "http://OPS.example.org") },
	} {
		if status, text := r.send(change); status != http.StatusOK {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
}

// Without --allow-actions nobody acts. Without a page there is no session to act by.
func TestLookersDoNotAct(t *testing.T) {
	t.Parallel()
	r := newRig(t, ui.Config{})
	if status, text := r.send(func(*http.Request) {}); status != http.StatusForbidden || !strings.Contains(text, "--allow-actions") {
		t.Errorf("%d %s", status, text)
	}
	var done acts
	r = newRig(t, ui.Config{Act: done.act, Token: token})
	if status, text := r.send(func(*http.Request) {}); status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", status, text)
	}
	r = newRig(t, ui.Config{Act: done.act}) // a mistake of the caller
	if status, text := r.send(func(q *http.Request) { q.Header.Del("X-Docent-Token") }); status != http.StatusForbidden {
		t.Errorf("%d %s", status, text)
	}
}

// A foreign site can neither frame the page, nor read it, nor make docent ask the servers.
func TestHeaders(t *testing.T) {
	t.Parallel()
	r := newRig(t, ui.Config{})
	for path, kind := range map[string]string{"/": "text/html", "/app.js": "text/javascript", "/style.css": "text/css", "/icon.svg": "image/svg+xml"} {
		res, err := http.Get(r.http.URL + path) //nolint:noctx // of this test
		r.check(err)
		r.check(res.Body.Close())
		h := res.Header
		if res.StatusCode != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), kind) {
			t.Errorf("%s: %s, %s", path, res.Status, h.Get("Content-Type"))
		}
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(h.Get("Content-Security-Policy"), want) {
				t.Errorf("%s: the policy lacks %s", path, want)
			}
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, h)
		}
	}
	for name, site := range map[string]func(http.Header){
		"another site":               func(h http.Header) { h.Set("Sec-Fetch-Site", "cross-site") },
		"another site of an address": func(h http.Header) { h.Del("Sec-Fetch-Site"); h.Set("Origin", "http://evil.example") },
		"a sandbox":                  func(h http.Header) { h.Del("Sec-Fetch-Site"); h.Set("Origin", "null") },
	} {
		status, _ := r.send(func(q *http.Request) {
			q.Method, q.URL.Path = http.MethodGet, "/events"
			q.Body, q.ContentLength = http.NoBody, 0
			site(q.Header)
		})
		if status != http.StatusForbidden || r.srv.ConnCount() != 0 {
			t.Errorf("%s: status %d, %d connections", name, status, r.srv.ConnCount())
		}
	}
}
