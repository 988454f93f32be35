package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/docent-go/docent/observe/live/internal/promserver"
)

// span is the time that a picture shows.
type span struct {
	from time.Time
	long time.Duration
	step time.Duration // between two points
}

// points is how many points a series has at most.
func (s span) points() int { return int(s.long/s.step) + 1 }

// series is a line of a panel. A point without a value is NaN.
type series struct {
	name   string
	unit   string
	right  bool // has its axis at the right
	points []float64
}

// scraped waits until the server has scraped so many targets.
func scraped(ctx context.Context, server *promserver.Server, targets int) error {
	for {
		var up []struct{ Value [2]any }
		if err := server.Query(ctx, "query", url.Values{"query": {"sum(up)"}}, &up); err != nil {
			return err
		}
		if len(up) == 1 && up[0].Value[1] == strconv.Itoa(targets) {
			return nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			return fmt.Errorf("the Prometheus server has not scraped all %d targets: %w", targets, ctx.Err())
		}
	}
}

// ask asks the server for the series of a panel. A query without any value above 0 is an
// error, because its panel would show nothing.
func ask(ctx context.Context, server *promserver.Server, p panel, values map[string]string, s span) ([]series, error) {
	var all []series
	var errs error
	for _, t := range p.Targets {
		expr, err := expand(t.Expr, values)
		if err != nil {
			return nil, fmt.Errorf("panel %q: %w", p.Title, err)
		}
		unit, right, err := p.scale(t.RefID)
		if err != nil {
			return nil, err
		}
		var matrix []struct {
			Metric map[string]string
			Values [][2]any
		}
		err = server.Query(ctx, "query_range", url.Values{
			"query": {expr}, "start": {unix(s.from)}, "end": {unix(s.from.Add(s.long))}, "step": {unix(time.Unix(0, 0).Add(s.step))},
		}, &matrix)
		if err != nil {
			return nil, fmt.Errorf("panel %q: %w", p.Title, err)
		}
		seen := false
		for _, row := range matrix {
			line := series{legend(t.LegendFormat, row.Metric), unit, right, make([]float64, s.points())}
			for i := range line.points {
				line.points[i] = math.NaN()
			}
			for _, pair := range row.Values {
				if err := line.put(s, pair); err != nil {
					return nil, fmt.Errorf("panel %q: %w", p.Title, err)
				}
			}
			seen = seen || line.most() > 0
			all = append(all, line)
		}
		if !seen {
			errs = errors.Join(errs, fmt.Errorf("panel %q shows nothing for the query %s", p.Title, expr))
		}
	}
	return all, errs
}

// put notes a pair of time and value of an answer.
func (l series) put(s span, pair [2]any) error {
	at, isNumber := pair[0].(float64)
	text, isText := pair[1].(string)
	value, err := strconv.ParseFloat(text, 64)
	if !isNumber || !isText || err != nil {
		return fmt.Errorf("the pair %v is not a time and a number", pair)
	}
	i := int(math.Round((at - float64(s.from.UnixMilli())/1000) / s.step.Seconds()))
	if i < 0 || i >= len(l.points) {
		return fmt.Errorf("the time %v is outside of what was asked for", at)
	}
	l.points[i] = value
	return nil
}

// most is the largest value, 0 if there is none.
func (l series) most() float64 {
	most := 0.0
	for _, v := range l.points {
		if v > most { // never so for NaN
			most = v
		}
	}
	return most
}

// unix is a time as the API of Prometheus takes it.
func unix(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64)
}
