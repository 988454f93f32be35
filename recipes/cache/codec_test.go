package cache_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes/cache"
)

// The codec of JSON takes whole documents only: what a writer left behind a document is
// a sign of a write that went wrong.
func TestJSON(t *testing.T) {
	t.Parallel()
	decode := cache.JSON[map[string]int]()
	if v, err := decode([]byte(" {\"a\": 1}\n")); err != nil || v["a"] != 1 {
		t.Errorf("%v, %v", v, err)
	}
	for _, bad := range []string{"", `{"a":1}{"b":2}`, `{"a":1}x`, `{"a":1`, `{"a":"1"}`, "null", " null\n"} {
		if v, err := decode([]byte(bad)); err == nil || v != nil {
			t.Errorf("%q: %v, %v", bad, v, err)
		}
	}
}

// A codec that panics makes its node undecodable, and the cache goes on.
func TestCodecPanics(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/n", "1")
		value, err := cache.NewValue(r.c, "/n", func(data []byte) (string, error) {
			if string(data) == "bad" {
				panic("the codec's own words")
			}
			return string(data), nil
		})
		r.Check(err)
		r.Check(value.Start(r.Ctx))
		for _, data := range []string{"2", "bad", "3"} {
			r.set("/n", data)
			_, err = value.Wait(r.Within(time.Minute), r.Srv.Zxid())
			r.Check(err)
			n, _ := value.Get()
			var bad *cache.UndecodableError
			switch {
			case data != "bad" && (n.Value != data || n.Err != nil):
				r.Errorf("%s: %+v", data, n)
			case data == "bad" && (n.Value != "2" || !errors.As(n.Err, &bad) || !strings.Contains(n.Err.Error(), "the codec's own words")):
				r.Errorf("%+v", n)
			}
		}
		value.Close()
		r.wantNothingLeft()
	})
}

// Close does not wait for a codec that runs. What it returns is not seen, and nothing is left
// when it has returned.
func TestCloseBesideCodec(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/a", "1")
		entered, leave := make(chan struct{}), make(chan struct{})
		tree, err := cache.NewTree(r.c, "/app", func(data []byte) (string, error) {
			if string(data) == "slow" {
				close(entered)
				<-leave
			}
			return string(data), nil
		}, opts...)
		r.Check(err)
		r.Check(tree.Start(r.Ctx))
		r.set("/app/a", "slow")
		<-entered
		begun := time.Now()
		tree.Close()
		tree.Close()
		if took := time.Since(begun); took > 0 {
			r.Errorf("Close took %v", took)
		}
		if s := tree.State(); !errors.Is(s.Err, cache.ErrClosed) || text(tree.Snapshot()) != "/app= /app/a=1" {
			r.Errorf("%v, %s", s, text(tree.Snapshot()))
		}
		for _, err := range tree.Changes(r.Ctx) {
			if err != nil && !errors.Is(err, cache.ErrClosed) {
				r.Error(err)
			}
		}
		close(leave)
		r.wantNothingLeft()
		if got := text(tree.Snapshot()); got != "/app= /app/a=1" {
			r.Errorf("after the codec has returned: %s", got)
		}
	})
}
