//go:build foreign

package foreign_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/internal/zoodefs"
)

// slow is how long a step may take without being mentioned.
const slow = 1500 * time.Millisecond

type starter func(context.Context, *testing.T, *server) *peers.Script

// step is one named part of a program and all that was observed in it.
type step struct {
	name  string
	ended bool
	why   string // it failed, or ""
	seen  []string
	loose bool // counts of changes are not compared
}

// report is a program's run on one server.
type report struct {
	steps []*step
}

func (r *report) passed() int {
	n := 0
	for _, s := range r.steps {
		if s.ended && s.why == "" {
			n++
		}
	}
	return n
}

// conductor does what a program asks for.
type conductor struct {
	server *server
	conn   *zk.Conn
	now    *step
	begun  time.Time
}

// run follows a program to its end. Failed steps are errors of the test.
func run(ctx context.Context, t *testing.T, s *server, script *peers.Script) *report {
	t.Helper()
	conn, _ := harness.Dial(ctx, t, 10*time.Second, s.addr)
	c := &conductor{server: s, conn: conn}
	r := &report{}
	for {
		line, err := script.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Errorf("the program did not end well: %v", err)
			break
		}
		kind, rest, _ := strings.Cut(line, " ")
		name, rest, _ := strings.Cut(rest, " ")
		if kind == "step" {
			c.now, c.begun = &step{name: name}, time.Now()
			r.steps = append(r.steps, c.now)
			s.proxy.Resume() // the step before may have failed half way
			s.proxy.Accept()
			continue
		}
		if c.now == nil || c.now.name != name {
			t.Errorf("not a line of this step: %s", line)
			continue
		}
		switch kind {
		case "see":
			c.now.seen = append(c.now.seen, "see "+mask(rest))
		case "ask":
			answer, err := c.do(ctx, rest)
			if err != nil {
				answer = "error " + strings.ReplaceAll(err.Error(), "\n", " | ")
			} else {
				answer = "done " + answer
			}
			if err := script.Tell(answer); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		case "ok", "fail":
			c.now.ended = true
			if took := time.Since(c.begun); took > slow {
				t.Logf("%s took %v", name, took.Round(time.Millisecond))
			}
			if kind == "fail" {
				c.now.why = rest
				t.Errorf("%s: %s", line, mask(rest))
			}
		default:
			t.Errorf("not a line of a program: %s", line)
		}
	}
	for _, s := range r.steps {
		if !s.ended {
			t.Errorf("step %s has not ended", s.name)
		}
	}
	return r
}

// do does what was asked for, and returns what to answer.
func (c *conductor) do(ctx context.Context, request string) (string, error) {
	words := strings.Fields(request)
	p := c.server.proxy
	switch words[0] {
	case "cut":
		p.CutAll()
	case "refuse":
		p.Refuse(0)
	case "accept":
		p.Accept()
	case "stall":
		p.Stall()
	case "resume":
		p.Resume()
	case "lose":
		return "", c.strike(words[1], words[2], proxy.SwallowReplyAndCut)
	case "drop":
		return "", c.strike(words[1], words[2], proxy.CutBefore)
	case "loose":
		c.now.loose = true
	case "release":
		return c.server.version.String(), nil
	case "mask":
		return mask(words[1]), nil
	case "tree":
		lines, err := c.tree("/" + c.now.name)
		c.now.seen = append(c.now.seen, prefixed("tree "+words[1]+": ", lines)...)
		return "", err
	case "watches":
		n, err := strconv.Atoi(words[2])
		if err != nil {
			return "", err
		}
		lines, err := c.server.awaitWatches(ctx, "/"+c.now.name, n)
		if n <= 50 {
			c.now.seen = append(c.now.seen, prefixed("watches "+words[1]+": ", lines)...)
		}
		return "", err
	default:
		return "", fmt.Errorf("unknown request %q", request)
	}
	return "", nil
}

// strike puts a rule in force for the next request of this type below a prefix.
func (c *conductor) strike(op, prefix string, action proxy.Action) error {
	for o := zoodefs.OpCreate; o <= zoodefs.OpWhoAmI; o++ {
		if o.String() == op {
			c.server.proxy.On(proxy.Match{Op: o, Prefix: prefix}, action)
			return nil
		}
	}
	return fmt.Errorf("no request type %q", op)
}

func prefixed(prefix string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = prefix + l
	}
	if len(lines) == 0 {
		return []string{prefix + "nothing"}
	}
	return out
}
