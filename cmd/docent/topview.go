package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// order is how top sorts locks.
type order int

const (
	byWait order = iota // the longest wait first, then the longest hold
	byHold
	byWaiters
	byPath
	orders // how many there are
)

func (o order) String() string { return [...]string{"wait", "hold", "waiters", "path"}[o] }

// sorted returns the locks in an order.
func (o order) sorted(locks []summary) []summary {
	locks = slices.Clone(locks)
	slices.SortStableFunc(locks, func(a, b summary) int {
		wait := cmp.Or(older(a.stuck(), b.stuck()), cmp.Compare(min(1, b.Waiters), min(1, a.Waiters)))
		hold := older(moment(a.longest.Earliest), moment(b.longest.Earliest))
		switch o {
		case byHold:
			return cmp.Or(hold, wait)
		case byWaiters:
			return cmp.Or(cmp.Compare(b.Waiters, a.Waiters), wait, hold)
		case byPath:
			return cmp.Compare(a.Path, b.Path)
		default:
			return cmp.Or(wait, hold)
		}
	})
	return locks
}

// stuck is since when somebody waits for whom something stands still. The candidates of an election
// wait for as long as another one leads.
func (s summary) stuck() *time.Time {
	if s.campaigns {
		return nil
	}
	return s.LongestSince
}

// older puts the earlier time first, and one that is not known last.
func older(a, b *time.Time) int {
	switch {
	case a == nil || b == nil:
		return cmp.Compare(known(b), known(a))
	default:
		return a.Compare(*b)
	}
}

func known(t *time.Time) int {
	if t == nil {
		return 0
	}
	return 1
}

// picture is what a look at all locks has shown.
type picture struct {
	at    time.Time
	locks []summary
	gone  bool // the directory did not exist
	warn  bytes.Buffer
	err   error
}

// action is what a key asks of top beyond what it shows.
type action int

const (
	nothing action = iota
	quit
	askHolder
)

// view is what a user has chosen to see. It has no clock, no terminal and no connection: keys
// come by key, and lines returns what is to be seen.
//
//	key                 list                    while a filter is typed   while a question stands
//	q, Ctrl-C           ends top                q is typed                answers no
//	s                   the next order          is typed                  answers no
//	w                   only locks with waiters is typed                  answers no
//	/                   begins to type          is typed                  answers no
//	up, down, k, j      selects a lock          k and j are typed         answers no
//	Enter               details of the lock     keeps the filter          answers no
//	a                   asks a question         is typed                  answers no
//	y                   nothing                 is typed                  asks the holder
//	Esc                 back, or no filter      drops the filter          answers no
type view struct {
	keys     bool // there is a keyboard
	order    order
	waiting  bool
	filter   string
	typing   bool
	selected string // the path of a lock, "" for the first
	details  bool
	question *summary // whose holder would be asked
	said     string   // of what was done last
	offset   int      // the first lock that is shown
}

// wanted are the locks that the view shows, in order.
func (v *view) wanted(p *picture) []summary {
	if p == nil {
		return nil
	}
	return slices.DeleteFunc(v.order.sorted(p.locks), func(s summary) bool {
		return v.waiting && s.Waiters == 0 || !strings.Contains(s.Path+" "+s.Holder+" "+s.ID+" "+s.Host, v.filter)
	})
}

// index is the place of the selected lock among those that are shown, 0 if it is not there.
func (v *view) index(locks []summary) int {
	return max(0, slices.IndexFunc(locks, func(s summary) bool { return s.Path == v.selected }))
}

// key takes a key.
func (v *view) key(k string, p *picture) action {
	v.said = ""
	locks := v.wanted(p)
	i := v.index(locks)
	switch {
	case k == "\x03":
		return quit
	case v.question != nil:
		if k == "y" {
			return askHolder
		}
		v.question, v.said = nil, "nothing was done: the answer was not y"
	case v.typing:
		v.typed(k)
	case k == "q":
		return quit
	case k == "\x1b" && v.details:
		v.details = false
	case k == "\x1b":
		v.filter = ""
	case k == "s":
		v.order = (v.order + 1) % orders
	case k == "w":
		v.waiting = !v.waiting
	case k == "/":
		v.typing, v.details = true, false
	case len(locks) == 0:
	case k == "\x1b[A" || k == "\x1bOA" || k == "k":
		v.selected = locks[max(0, i-1)].Path
	case k == "\x1b[B" || k == "\x1bOB" || k == "j":
		v.selected = locks[min(len(locks)-1, i+1)].Path
	case k == "\r" || k == "\n":
		v.details, v.selected = !v.details, locks[i].Path
	case k == "a":
		v.asks(locks[i])
	}
	return nothing
}

// typed takes a key of a filter.
func (v *view) typed(k string) {
	switch {
	case k == "\r" || k == "\n":
		v.typing = false
	case k == "\x1b":
		v.typing, v.filter = false, ""
	case k == "\x7f" || k == "\b":
		_, size := utf8.DecodeLastRuneInString(v.filter)
		v.filter = v.filter[:len(v.filter)-size]
	case printableText(k):
		v.filter += k
	}
}

func printableText(k string) bool {
	return k != "" && !strings.ContainsFunc(k, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// asks begins a question about the holder of a lock.
func (v *view) asks(s summary) {
	switch {
	case s.Kind == kindLatch:
		v.said = s.Path + " is an election, where no participant hears of a request"
	case s.Holders != 1:
		v.said = fmt.Sprintf("%s has %s: docent ask %s NODE", s.Path, counted(s.Holders, "holder", "holders"), s.Path)
	default:
		v.question = &s
	}
}

// size is that of a terminal, 0 where there is none.
type size struct{ width, height int }

// topRow is a lock as top shows it: what matters most stands first, as a narrow terminal cuts
// off the rest.
type topRow struct {
	Path    string `col:"LOCK"`
	Waiters int    `col:"WAITERS"`
	Longest string `col:"LONGEST WAIT"`
	Held    string `col:"HELD"`
	Holder  string `col:"HOLDER"`
	ID      string `col:"ID,some"`
	Host    string `col:"HOST"`
	Kind    string `col:"KIND"`
	Holders int    `col:"HOLDERS"`
}

// lines are what the view shows of a picture, with a word about how old that is. p is nil before
// the first one.
func (v *view) lines(p *picture, head, word string, room size) []string {
	top := []string{head}
	if p != nil && p.warn.Len() > 0 {
		top = append(top, strings.Split(strings.TrimSpace(p.warn.String()), "\n")...)
	}
	if word != "" {
		top = append(top, word)
	}
	bottom := v.bottom()
	limit := 1 << 30
	if room.height > 0 {
		top = top[:min(len(top), max(1, room.height-4))] // warnings of many directories
		limit = max(1, room.height-len(top)-len(bottom)-1)
	}
	var body []string
	if v.details {
		body = v.detailed(p, limit)
	} else {
		body = v.listed(p, limit, room.width)
	}
	all := slices.Concat(top, []string{""}, body)
	for len(bottom) > 0 && len(all)+len(bottom) < room.height {
		all = append(all, "")
	}
	return cutLines(append(all, bottom...), room)
}

// bottom are the lines for the user of a keyboard.
func (v *view) bottom() []string {
	switch {
	case !v.keys:
		return nil
	case v.question != nil:
		q := v.question
		return []string{"y/n: ask the holder of " + shown(q.Path) + " to release, " + shownOf(*q) + "?"}
	case v.typing:
		return []string{"filter: " + v.filter + "_"}
	case v.said != "":
		return []string{v.said}
	}
	line := "q quit  s sort: " + v.order.String() + "  / filter  w waiting  Enter details  a ask"
	if v.filter != "" {
		line = "filter: " + v.filter + " (Esc)  " + line
	}
	return []string{line}
}

// shownOf is who holds a lock, for a person.
func shownOf(s summary) string {
	name := strings.Join(strings.Fields(s.Holder+" "+s.Host), " ")
	for _, r := range s.rows {
		if r.State == holds {
			name = strings.TrimSpace(name + " " + r.Node)
			break
		}
	}
	return shown(name)
}

// listed is the list of locks, in limit lines.
func (v *view) listed(p *picture, limit, width int) []string {
	locks := v.wanted(p)
	if len(locks) == 0 {
		switch {
		case p == nil:
			return []string{"reading"}
		case p.gone:
			return []string{"no lock to show: the directory does not exist"}
		}
		return []string{"no lock to show"}
	}
	space, more := limit-1, 0 // the heading
	if len(locks) > space {
		space = max(1, space-1) // a line about more
		more = len(locks) - space
	}
	space = min(space, len(locks))
	at := v.index(locks)
	v.offset = max(0, min(v.offset, at, len(locks)-space), at-space+1)
	longest := 1 << 20
	if width > 0 {
		longest = max(12, width*2/5)
	}
	all := make([]topRow, space)
	for i, s := range locks[v.offset : v.offset+space] {
		all[i] = topRow{
			tail(s.Path, longest), s.Waiters, s.Longest, heldFor(s.held, p.at), s.Holder, s.ID, s.Host, s.Kind, s.Holders,
		}
	}
	lines := textOf(all)
	if v.keys {
		lines[1+at-v.offset] = reversed + lines[1+at-v.offset]
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

// detailed is the queue of the selected lock, in limit lines.
func (v *view) detailed(p *picture, limit int) []string {
	locks := v.wanted(p)
	i := slices.IndexFunc(locks, func(s summary) bool { return s.Path == v.selected })
	if i < 0 {
		return []string{shown(v.selected) + ": nobody holds it, and nobody waits (Esc)"}
	}
	s := locks[i]
	head := []string{shown(s.Path) + ", " + s.Kind + " (Esc)"}
	for _, r := range s.rows {
		if r.State == holds && limit > 4 { // a narrow terminal cuts NODE off
			head = append(head, "held by "+shown(r.Node))
			break
		}
	}
	lines := slices.Concat(head, textOf(s.rows))
	if len(lines) > limit && limit > 2 {
		more := len(lines) - (limit - 1)
		lines = append(lines[:limit-1], fmt.Sprintf("and %d more: docent queue %s", more, shown(s.Path)))
	}
	return lines
}

// textOf is a table, as lines without colors.
func textOf[T any](rows []T) []string {
	var text bytes.Buffer
	_ = write(&text, table, rows) // a buffer takes everything
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// reversed begins a line that is selected.
const reversed = "\x1b[7m"

// cutLines makes lines fit a terminal.
func cutLines(lines []string, room size) []string {
	if room.height > 0 && len(lines) > room.height {
		lines = append(lines[:room.height-1:room.height-1], lines[len(lines)-1])
	}
	for i, line := range lines {
		line, selected := strings.CutPrefix(line, reversed)
		if runes := []rune(line); room.width > 0 && len(runes) > room.width {
			line = string(runes[:room.width])
		}
		if selected {
			line = reversed + line + "\x1b[0m"
		}
		lines[i] = line
	}
	return lines
}

// tail is the end of a text that is too long: locks differ there.
func tail(s string, longest int) string {
	runes := []rune(s)
	if len(runes) <= longest {
		return s
	}
	return "…" + string(runes[len(runes)-longest+1:])
}
