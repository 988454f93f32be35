package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Each query of the dashboard shows something in the scene, also in a short one: record
// returns an error for a query without any value above 0. The page has every panel.
func TestEveryPanelHasData(t *testing.T) {
	t.Parallel()
	b := ours(t)
	drawings, events, err := record(t.Context(), b, t.TempDir(), 12*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := write(&text, b, drawings, events); err != nil {
		t.Fatal(err)
	}
	charts := 0
	for _, p := range b.Panels {
		if !strings.Contains(text.String(), ">"+p.Title+"</h2>") {
			t.Errorf("the page does not have panel %q", p.Title)
		}
		if !p.isRow() {
			charts++
		}
	}
	if got := strings.Count(text.String(), "</svg>"); got != charts {
		t.Errorf("the page has %d charts, want %d", got, charts)
	}
}
