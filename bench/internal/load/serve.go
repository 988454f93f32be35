package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Opener connects the contenders of a peer.
type Opener func(ctx context.Context, spec *Spec) (*Field, error)

// Serve obeys the commands of in until quit or the end of in.
func Serve(ctx context.Context, in io.Reader, out io.Writer, open Opener) error {
	s := &server{open: open}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		answer, err := s.obey(ctx, words)
		if err != nil {
			answer = "error " + strings.Join(strings.Fields(err.Error()), " ")
		} else {
			answer = strings.TrimSpace("ok " + answer)
		}
		if _, err := fmt.Fprintln(out, answer); err != nil {
			return err
		}
		if words[0] == "quit" {
			return nil
		}
	}
	return lines.Err()
}

type server struct {
	open   Opener
	engine *Engine
}

func (s *server) obey(ctx context.Context, words []string) (string, error) {
	if words[0] == "setup" {
		return "", s.setup(ctx, words[1:])
	}
	if s.engine == nil {
		if words[0] == "quit" {
			return "", nil
		}
		return "", errors.New("not set up")
	}
	switch words[0] {
	case "open":
		s.engine.Open()
	case "begin":
		s.engine.Begin()
	case "count":
		return strconv.Itoa(s.engine.Count()), nil
	case "end":
		result, err := json.Marshal(s.engine.End())
		return string(result), err
	case "close":
		s.engine.Close()
	case "quit":
		s.engine.Quit(ctx)
	default:
		return "", fmt.Errorf("no such command: %s", words[0])
	}
	return "", nil
}

func (s *server) setup(ctx context.Context, words []string) error {
	if s.engine != nil {
		return errors.New("set up already")
	}
	spec, err := ParseSpec(words)
	if err != nil {
		return err
	}
	field, err := s.open(ctx, spec)
	if err != nil {
		return err
	}
	s.engine = Start(ctx, spec, field)
	return nil
}
