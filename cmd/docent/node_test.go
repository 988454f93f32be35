package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// One node is made, read, changed and deleted, and each refusal says what to do instead.
func TestNodes(t *testing.T) {
	t.Parallel()
	srv := server(t)
	for i, tt := range []struct {
		args     []string
		code     int
		out, err string // err is a part
	}{
		{[]string{"get", "/config/limit"}, 1, "", "/config/limit does not exist"},
		{[]string{"set", "/config/limit", "1"}, 1, "", "docent create /config/limit DATA"},
		{[]string{"create", "/config/limit", "1"}, 1, "", "give --parents"},
		{[]string{"create", "-p", "/config/limit", "100"}, 0, "", "created /config/limit: 3 bytes"},
		{[]string{"create", "/config/limit", "1"}, 1, "", "docent set /config/limit DATA"},
		{[]string{"create", "/config/mark"}, 0, "", "0 bytes"},
		{[]string{"get", "/config/limit"}, 0, "100", ""},
		{[]string{"set", "/config/limit", "200", "--version", "7"}, 1, "", "another version than 7"},
		{[]string{"set", "/config/limit", "200", "--version", "0"}, 0, "", "set /config/limit: 3 bytes, version 1"},
		{[]string{"set", "/config/mark", "-"}, 0, "", "0 bytes"}, // of an empty standard input
		{[]string{"get", "/config/limit"}, 0, "200", ""},
		{[]string{"rm", "/config", "-y"}, 1, "", "has children"},
		{[]string{"rm", "/config/limit"}, exitUsage, "", "give --yes"},
		{[]string{"rm", "/config/limit", "-y", "--version", "0"}, 1, "", "another version than 0; nothing was done"},
		{[]string{"rm", "/config/limit", "-y"}, 0, "", "deleted /config/limit"},
		{[]string{"rm", "/config/limit", "-y"}, 1, "", "does not exist"},
		{[]string{"rm", "config"}, exitUsage, "", "path"},
		{[]string{"create"}, exitUsage, "", "PATH"},
		{[]string{"set", "/config/mark"}, exitUsage, "", "DATA"},
	} {
		s := do(t, srv, tt.args...)
		if s.code != tt.code || s.out != tt.out || !strings.Contains(s.err, tt.err) {
			t.Errorf("%d %v: %+v", i, tt.args, s)
		}
	}
	var rows []map[string]any
	s := do(t, srv, "get", "/config/mark", "--json")
	if err := json.Unmarshal([]byte(s.out), &rows); err != nil || len(rows) != 1 || rows[0]["version"] != 1.0 || rows[0]["encoding"] != asText {
		t.Errorf("%+v: %v, %v", s, rows, err)
	}
}
