package ui_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/docent-go/docent/cmd/docent/internal/ui"
)

// chromium is Debian's. CI installs it; a test fails without it.
const chromium = "/usr/bin/chromium"

type step = chromedp.Action[chromedp.Void]

// browser opens a browser of its own, with a window. It ends with the test.
func browser(t testing.TB, width, height int) context.Context {
	t.Helper()
	opts := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	opts = append(opts, chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(width, height), chromedp.UserDataDir(t.TempDir()))
	all, endAll := chromedp.NewExecAllocator(t.Context(), opts...)
	tab, end := chromedp.NewContext(all)
	t.Cleanup(func() {
		if err := chromedp.Cancel(tab); err != nil {
			t.Logf("end of the browser: %v", err)
		}
		end()
		endAll()
	})
	if err := chromedp.Do(tab, chromedp.EmulateViewport(int64(width), int64(height))); err != nil {
		t.Fatal(err)
	}
	return tab
}

// until waits until an expression of the page is true.
func until(expression string) step {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		again := time.NewTicker(25 * time.Millisecond)
		defer again.Stop()
		for {
			if ok, err := chromedp.Evaluate[bool](expression)(ctx, t); err != nil && ctx.Err() == nil || ok {
				return chromedp.Void{}, err
			}
			select {
			case <-again.C:
			case <-ctx.Done():
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
				defer cancel()
				text, err := chromedp.Evaluate[string]("document.body.innerText")(ctx, t)
				return chromedp.Void{}, fmt.Errorf("not true within 20 s: %s; the page says:\n%s%w", expression, text, err)
			}
		}
	}
}

// has waits until the page has a text.
func has(want string) step {
	return until("document.body.innerText.includes(" + strconv.Quote(want) + ")")
}

// click clicks on the link or the button with a text.
func click(text string) step {
	return chromedp.Click(chromedp.Search(`//*[(self::a or self::button) and normalize-space(text())="` + text + `"]`))
}

// shots is the variable that names a directory for screenshots.
const shots = "DOCENT_UI_SHOTS"

// shot keeps a screenshot if somebody wants it.
func shot(name string) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		dir := os.Getenv(shots)
		if dir == "" {
			return nil
		}
		png, err := chromedp.CaptureScreenshot()(ctx, t)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600)
	})
}

func (r *rig) run(ctx context.Context, steps ...step) {
	r.Helper()
	r.check(chromedp.Do(ctx, steps...))
}

// All views, as an operator sees them.
func TestBrowserShowsAllViews(t *testing.T) {
	t.Parallel()
	r := newRig(t, ui.Config{})
	r.office()
	b := browser(t, 1100, 700)
	r.run(b, chromedp.Navigate(r.http.URL), has("Locks (62)"), has("Live"), shot("locks"),
		click("/locks/payments/settle"), has("Timeline"), has("billing on 10.4.0.7 pid 4707"), shot("lock"),
		click("Waits"), has("part of a circle"), shot("waits"),
		click("Elections"), has("node-1"), shot("elections"),
		click("Groups"), has("host-1, host-2, host-3"), shot("groups"),
		click("Tree"), has("config"),
		click("config"), has("limits"),
		click("limits"), has(`"burst": 20`), shot("tree"),
		click("Sessions"), has("billing on 10.4.0.7"), shot("sessions"),
		click("Servers"), has("Asking"), shot("servers"),
	)
}

// Whoever has never seen the page finds the stuck lock among sixty: it is the first that is
// marked, and a click shows the holder, since when it holds, where it runs, and who waits.
func TestBrowserFindsTheStuckLock(t *testing.T) {
	t.Parallel()
	r := newRig(t, ui.Config{})
	r.office()
	b := browser(t, 1100, 700)
	begun := time.Now()
	r.run(b, chromedp.Navigate(r.http.URL),
		until(`document.querySelector("tbody tr.stuck td a")?.textContent === "/locks/payments/settle"`), shot("stuck"),
		until(`document.querySelectorAll("tbody tr.stuck").length === 4`),
		chromedp.Click(chromedp.CSS("tbody tr.stuck td a")), has("Timeline"), has("billing on 10.4.0.7 pid 4707"), has("41m"),
		until(`document.querySelectorAll("tr.waits").length === 4`), shot("stuck-lock"))
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

// The search is in the address, so that a link shows the same to somebody else.
func TestBrowserSearch(t *testing.T) {
	t.Parallel()
	r := newRig(t, ui.Config{})
	r.office()
	b := browser(t, 1100, 700)
	r.run(b, chromedp.Navigate(r.http.URL), has("Live"),
		chromedp.SendKeys(chromedp.CSS("#search"), "4707"), until(`document.querySelectorAll("tbody tr").length === 2`), has("/locks/payments/settle"),
		until(`location.hash === "#/locks?q=4707"`),
		chromedp.Navigate("about:blank"), chromedp.Navigate(r.http.URL+"/#/sessions?q=mail"), has("Sessions with nodes"),
		until(`document.querySelectorAll("tbody tr").length === 1 && document.querySelector("#search").value === "mail"`))
}

// Names and data are shown as text: none of them runs, breaks the stream, or makes a page too wide.
func TestBrowserHostileNames(t *testing.T) {
	t.Parallel()
	r := newRig(t, ui.Config{})
	r.hostile()
	for name, width := range map[string]int{"desk": 1100, "phone": 390} {
		b := browser(t, width, 800)
		r.run(b, chromedp.Navigate(r.http.URL), has("Live"), has("Locks (7)"), has("<script>"), has("back\\slash 'quote' \ufffdgnp.exe"),
			narrow(), until(`document.title === "locks – docent"`), shot("hostile-"+name))
		for i := range 7 {
			r.run(b, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelectorAll("tbody tr td:first-child a")[%d].click()`, i)),
				has("Timeline"), until(`document.querySelectorAll("tr.holds, tr.waits").length === 2`), narrow(),
				until(`document.title.endsWith(" – docent") && !document.querySelector("main script, main img, main b, main [onmouseover]")`),
				chromedp.Evaluate[chromedp.Void](`location.hash = "#/locks"`), has("Locks (7)"))
		}
		r.run(b, chromedp.Evaluate[chromedp.Void](`location.hash = "#/tree?at=/hostile"`), has("7 children"), narrow(),
			chromedp.Evaluate[chromedp.Void](`location.hash = "#/waits"`), has("several locks"), narrow())
	}
}

// narrow waits until the page is no wider than its window.
func narrow() step { return until("document.documentElement.scrollWidth <= innerWidth") }

// Every view fits a phone.
func TestBrowserPhone(t *testing.T) {
	t.Parallel()
	r := newRig(t, ui.Config{})
	r.office()
	b := browser(t, 390, 800)
	r.run(b, chromedp.Navigate(r.http.URL), has("Live"), has("Locks (62)"), narrow(), shot("phone"))
	for view, text := range map[string]string{
		"lock?at=/locks/payments/settle": "Timeline", "waits": "part of a circle", "elections": "node-1", "groups": "host-1",
		"tree?at=/config/limits": "burst", "sessions": "billing", "servers": "Asking",
	} {
		r.run(b, chromedp.Evaluate[chromedp.Void](`location.hash = "#/`+view+`"`), has(text), narrow())
	}
}

// The page is dark or light as the system is, or as the button says.
func TestBrowserDark(t *testing.T) {
	t.Parallel()
	r := newRig(t, ui.Config{})
	r.office()
	b := browser(t, 1100, 700)
	const background = `getComputedStyle(document.body).backgroundColor`
	r.run(b, chromedp.Navigate(r.http.URL), has("Live"), until(background+` === "rgb(255, 255, 255)"`),
		chromedp.Click(chromedp.CSS("#theme")), until(background+` === "rgb(18, 22, 29)"`), has("Locks (62)"), shot("dark"),
		chromedp.Navigate(r.http.URL+"/?again"), until(background+` === "rgb(18, 22, 29)"`),
		chromedp.Click(chromedp.CSS("#theme")), until(background+` === "rgb(255, 255, 255)"`))
}
