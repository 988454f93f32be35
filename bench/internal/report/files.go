package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/docent-go/docent/bench/internal/run"
)

const (
	resultsName = "results.json"
	tablesName  = "tables.md"
	beginMark   = "<!-- bench:begin: made by bench, go run . -doc -->"
	endMark     = "<!-- bench:end -->"
)

// Write writes the results, the tables and the plots to dir.
func Write(r *run.Results, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // holds nothing secret
		return err
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{resultsName: text, tablesName: []byte(Text(r))} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil { //nolint:gosec // the same
			return err
		}
	}
	_, err = savePictures(r, dir)
	return err
}

// Read reads what Write wrote.
func Read(path string) (*run.Results, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r run.Results
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &r, nil
}

func savePictures(r *run.Results, dir string) ([]picture, error) {
	all, err := pictures(blocks(r))
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if err := p.save(dir); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Replace replaces the part of the Markdown file at path that is between the marks.
func Replace(path, part string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	made, err := replace(string(text), part)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(made), 0o644) //nolint:gosec // holds nothing secret
}

// replace puts a new part between the marks.
func replace(text, part string) (string, error) {
	before, rest, ok := strings.Cut(text, beginMark)
	_, after, closed := strings.Cut(rest, endMark)
	if !ok || !closed {
		return "", fmt.Errorf("no %s followed by %s", beginMark, endMark)
	}
	return before + beginMark + "\n\n" + strings.TrimSpace(part) + "\n\n" + endMark + after, nil
}
