package zkserver_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func (sd *side) showEvents(events []answer) string {
	var v []string
	for _, ev := range events {
		d := dec{b: ev.body}
		v = append(v, fmt.Sprintf(" event[%s %d %d %d %q]", sd.relative(ev.zxid), ev.err, d.int(), d.int(), d.text()))
	}
	if sd.anyOrder {
		slices.Sort(v)
	}
	return strings.Join(v, "")
}

// relative tells a zxid apart from others without its absolute value.
func (sd *side) relative(z int64) string {
	if z <= 0 {
		return strconv.FormatInt(z, 10)
	}
	return "z" + strconv.FormatInt(z-sd.zxid, 10)
}

func (sd *side) show(op int32, a answer, events []answer, err error) string {
	out := sd.showEvents(events)
	if err != nil {
		return out + " " + kindOfError(err)
	}
	out += fmt.Sprintf(" reply[%s err %d]", sd.relative(a.zxid), a.err)
	d := &dec{b: a.body}
	if a.err != 0 && (op != 22 || len(a.body) == 0) {
		return out + fmt.Sprintf(" %x", a.body)
	}
	out += " " + sd.showBody(op, d)
	if d.short || len(d.b) > 0 {
		out += fmt.Sprintf(" short %v rest %x", d.short, d.b)
	}
	return out
}

func (sd *side) showBody(op int32, d *dec) string {
	switch op {
	case 1, 9:
		return fmt.Sprintf("%q", d.text())
	case 15, 19, 21:
		return fmt.Sprintf("%q %s", d.text(), sd.stat(d))
	case 3, 5, 7:
		return sd.stat(d)
	case 4:
		return fmt.Sprintf("%q %s", d.text(), sd.stat(d))
	case 6:
		return fmt.Sprintf("%s %s", showACL(d), sd.stat(d))
	case 8, 103:
		return showNames(d)
	case 12:
		return showNames(d) + " " + sd.stat(d)
	case 104, 106:
		return strconv.Itoa(int(d.int()))
	case 107:
		var v []string
		for n := d.int(); n > 0 && !d.short; n-- {
			v = append(v, d.text()+"="+d.text())
		}
		slices.Sort(v)
		return fmt.Sprintf("%q", v)
	case 14, 22:
		return sd.showMulti(d)
	case 102:
		if len(d.b) <= 4 { // no token
			return ""
		}
		return regexp.MustCompile(`nonce="[^"]*"`).ReplaceAllString(d.text(), `nonce="..."`)
	default:
		return ""
	}
}

func (sd *side) showMulti(d *dec) string {
	var b strings.Builder
	for !d.short {
		op, done, code := d.int(), d.bool(), d.int()
		fmt.Fprintf(&b, "{%d %v %d", op, done, code)
		if done {
			break
		}
		if op == -1 {
			fmt.Fprintf(&b, " %d", d.int())
		} else {
			b.WriteString(" " + sd.showBody(op, d))
		}
		b.WriteString("}")
	}
	return b.String()
}

// showNames shows names in order, without the names that other runs have left.
func showNames(d *dec) string {
	v := slices.DeleteFunc(d.strings(), func(s string) bool {
		return strings.HasPrefix(s, "diff") || strings.HasPrefix(s, "conf")
	})
	slices.Sort(v)
	return fmt.Sprintf("%q", v)
}

func showACL(d *dec) string {
	var v []string
	for n := d.int(); n > 0 && !d.short; n-- {
		v = append(v, fmt.Sprintf("%d:%s:%s", d.int(), d.text(), d.text()))
	}
	return fmt.Sprintf("%q", v)
}

// stat shows everything but times.
func (sd *side) stat(d *dec) string {
	czxid, mzxid := d.long(), d.long()
	d.long()
	d.long()
	version, cversion, aversion := d.int(), d.int(), d.int()
	owner := d.long()
	length, kids, pzxid := d.int(), d.int(), d.long()
	if czxid == 0 && mzxid == 0 && pzxid > sd.zxid-2 {
		return "(root)" // earlier runs have left their mark on it
	}
	name, ok := sd.sessions[owner]
	if !ok {
		name = fmt.Sprintf("%#x", owner)
	}
	return fmt.Sprintf("(c%s m%s p%s v%d cv%d av%d owner %s len %d kids %d)", sd.relative(czxid),
		sd.relative(mzxid), sd.relative(pzxid), version, cversion, aversion, name, length, kids)
}
