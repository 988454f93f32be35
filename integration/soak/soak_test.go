package main

import (
	"context"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A short run leaves a table and a plot.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	grown, err := run(t.Context(), config{length: 5 * time.Second, every: time.Second, dir: dir, clients: 3, pause: 100 * time.Millisecond})
	if err != nil || len(grown) > 0 {
		t.Fatalf("grown %q, error %v", grown, err)
	}
	file, err := os.Open(filepath.Join(dir, "soak.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) < 4 {
		t.Fatalf("%d rows, error %v", len(rows), err)
	}
	last := rows[len(rows)-1]
	for i, name := range columns() {
		if name != "failed" && (last[i] == "0" || last[i] == "") {
			t.Errorf("%s is %q", name, last[i])
		}
	}
	svg, err := os.ReadFile(filepath.Join(dir, "soak.svg"))
	if err != nil || strings.Count(string(svg), "<polyline") != len(measured()) {
		t.Fatalf("error %v, plot:\n%s", err, svg)
	}
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// Many hours in a bubble, whose clock waits for nobody: DOCENT_SOAK_HOURS says how many, and
// DOCENT_SOAK_DIR where the table and the plot go. The server and the links are in memory, and
// answer at once. So longer pauses make as much work per hour as there is in real time.
func TestHours(t *testing.T) {
	hours := 0.02
	if text := os.Getenv("DOCENT_SOAK_HOURS"); text != "" {
		var err error
		if hours, err = strconv.ParseFloat(text, 64); err != nil {
			t.Fatal(err)
		}
	}
	dir := os.Getenv("DOCENT_SOAK_DIR")
	if dir == "" {
		dir = t.TempDir()
	}
	length := time.Duration(hours * float64(time.Hour))
	synctest.Test(t, func(t *testing.T) {
		grown, err := run(t.Context(), config{length: length, every: length / 400, dir: dir, clients: 3, pause: 300 * time.Millisecond, memory: true})
		if err != nil || len(grown) > 0 {
			t.Errorf("grown %q, error %v", grown, err)
		}
	})
}

// At rest nothing works, behind it all go on, and an end of the run ends the wait for it.
func TestRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var busy, done, failed atomic.Int64
		work := func(ctx context.Context) error {
			busy.Add(1)
			defer busy.Add(-1)
			pause(ctx, time.Second)
			return nil
		}
		const workers = 3
		free := newTurns(workers)
		var all sync.WaitGroup
		for range workers {
			all.Go(func() { repeat(ctx, 100*time.Millisecond, "work", work, free, &done, &failed) })
		}
		time.Sleep(10500 * time.Millisecond)
		for range 2 {
			before := done.Load()
			if before == 0 || !free.rest(ctx, time.Minute, func() {
				if n := busy.Load(); n != 0 {
					t.Errorf("%d work", n)
				}
				if now := done.Load(); now > before+workers {
					t.Errorf("%d pieces of work at rest", now-before)
				}
			}) {
				t.Errorf("%d pieces, and then no rest", before)
			}
			time.Sleep(10 * time.Second)
		}
		cancel()
		all.Wait()
		if free.rest(ctx, time.Minute, func() { t.Error("a rest behind the end") }) {
			t.Error("a rest behind the end")
		}
	})
}

// What grows is found, and what only moves or fills up at first is not.
func TestGrowth(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]struct {
		goroutines func(i int) int64
		found      int
	}{
		"flat":          {func(int) int64 { return 300 }, 0},
		"up and down":   {func(i int) int64 { return 300 + int64(i%3)*9 }, 0},
		"fills up":      {func(i int) int64 { return 300 + min(int64(i), 4)*50 }, 0},
		"grows":         {func(i int) int64 { return 300 + int64(i)*3 }, 1},
		"grows, little": {func(i int) int64 { return 10 + int64(i)/4 }, 0},
	} {
		samples := make([]sample, rests)
		for i := range samples {
			samples[i].goroutines = in.goroutines(i)
		}
		if grown := growth(samples); len(grown) != in.found {
			t.Errorf("%s: %q", name, grown)
		}
	}
}
