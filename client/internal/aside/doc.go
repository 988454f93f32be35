// Package aside does what must not hold anybody up: it writes log lines and calls hooks, on
// goroutines of its own. A [Journal] and a [Teller] never block who tells them something. Behind
// a log handler or a hook that blocks they keep the first thousand, and drop the rest.
package aside
