package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/clock"
)

func TestSinceTakesTheClockThatShowsMost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ step, slept, want time.Duration }{
		"all agree":           {0, 0, time.Second},
		"suspended":           {0, time.Hour, time.Hour + time.Second},
		"wall set forward":    {time.Minute, 0, time.Minute + time.Second},
		"wall set back":       {-time.Hour, 0, time.Second},
		"suspended, set back": {-time.Hour, time.Minute, time.Minute + time.Second},
		"restored snapshot":   {time.Hour, 0, time.Hour + time.Second},
		"sleep read twice":    {0, -time.Microsecond, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var step, slept time.Duration
				c := &clock.Clock{
					Wall:  func() time.Time { return time.Now().Add(step) },
					Slept: func() time.Duration { return slept },
				}
				before := c.Now()
				time.Sleep(time.Second)
				step, slept = tt.step, tt.slept
				if got := c.Now().Since(before); got != tt.want {
					t.Errorf("%v have passed, want %v", got, tt.want)
				}
			})
		})
	}
}

// A moment that is dated with a sleep read earlier looks older, not younger,
// if the machine slept in between.
func TestAtErrsOnTheSafeSide(t *testing.T) {
	t.Parallel()
	slept := time.Duration(0)
	c := &clock.Clock{Slept: func() time.Duration { return slept }}
	read := c.Now().Slept()
	slept = 3 * time.Second
	at := c.At(time.Now(), read)
	if age := c.Now().Since(at); age < 3*time.Second {
		t.Errorf("age %v, want the sleep to count", age)
	}
}

func TestAddMovesAllClocks(t *testing.T) {
	t.Parallel()
	c := clock.System()
	now := c.Now()
	if d := now.Add(time.Minute).Since(now); d != time.Minute {
		t.Errorf("a minute later is %v later", d)
	}
	if now.IsZero() || !(clock.Stamp{}).IsZero() {
		t.Error("IsZero")
	}
}

// In a bubble the machine's clocks run at another pace than Go's.
func TestSystemInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clock.System()
		before := c.Now()
		time.Sleep(time.Hour)
		if got := c.Now().Since(before); got != time.Hour {
			t.Errorf("%v have passed, want an hour", got)
		}
		if c.Slept != nil {
			t.Error("the machine's sleep is read in a bubble")
		}
	})
}

// Nothing sleeps during the test, so all clocks agree.
func TestSystemAgreesWithGo(t *testing.T) {
	t.Parallel()
	c := clock.System()
	for range 100 {
		before, mono := c.Now(), time.Now()
		if off := c.Now().Since(before) - time.Since(mono); off > time.Second {
			t.Fatalf("clocks differ by %v", off)
		}
	}
}

func BenchmarkNow(b *testing.B) {
	c := clock.System()
	for b.Loop() {
		c.Now()
	}
}
