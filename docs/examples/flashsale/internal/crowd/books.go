package crowd

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Sale is a line of the ledger.
type Sale struct {
	Item   int // how many were left, this one included
	Worker int
	Buyer  string
	Token  int64         // fencing token of the hold
	Waited time.Duration // for the lock
	Held   time.Duration // until the item was paid
}

// Books is what an auditor finds.
type Books struct {
	Stock, Left int
	Sales       []Sale // in the order in which they were booked
}

// Err says what is wrong with the books.
func (b *Books) Err() error {
	var wrong []error
	if b.Left != 0 {
		wrong = append(wrong, fmt.Errorf("stock is %d, want 0", b.Left))
	}
	if len(b.Sales) != b.Stock {
		wrong = append(wrong, fmt.Errorf("%d items sold, %d were for sale", len(b.Sales), b.Stock))
	}
	for i, s := range b.Sales {
		if want := b.Stock - i; s.Item != want {
			wrong = append(wrong, fmt.Errorf("sale %d is of item %d, want item %d", i+1, s.Item, want))
			break
		}
		if i > 0 && s.Token <= b.Sales[i-1].Token {
			wrong = append(wrong, fmt.Errorf("sale %d has token %d, not above %d of the sale before", i+1, s.Token, b.Sales[i-1].Token))
			break
		}
	}
	return errors.Join(wrong...)
}

// Lost is how many sales do not show in the stock: each of them was overwritten
// by a buyer that had not seen it.
func (b *Books) Lost() int { return len(b.Sales) - (b.Stock - b.Left) }

// Verdict is one line about the books.
func (b *Books) Verdict(took time.Duration) string {
	verdict := "books are right"
	if err := b.Err(); err != nil {
		verdict = "BOOKS ARE WRONG: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return fmt.Sprintf("sold %d of %d, %d left, in %v: %s", len(b.Sales), b.Stock, b.Left, took.Round(time.Millisecond), verdict)
}

// Print writes the verdict, which processes held the lock, and how long buyers waited.
func (b *Books) Print(w io.Writer, took time.Duration) {
	perWorker := map[int]int{}
	held := map[int]time.Duration{}
	waits := make([]time.Duration, 0, len(b.Sales))
	for _, s := range b.Sales {
		perWorker[s.Worker]++
		held[s.Worker] += s.Held
		waits = append(waits, s.Waited)
	}
	_, _ = fmt.Fprintln(w, b.Verdict(took))
	workers := make([]int, 0, len(perWorker))
	for n := range perWorker {
		workers = append(workers, n)
	}
	slices.Sort(workers)
	for _, n := range workers {
		_, _ = fmt.Fprintf(w, "  process %d held the lock %3d times, %v in all\n", n, perWorker[n], held[n].Round(time.Millisecond))
	}
	if len(waits) > 0 {
		slices.Sort(waits)
		at := func(q float64) time.Duration {
			return waits[int(q*float64(len(waits)-1))].Round(10 * time.Microsecond)
		}
		_, _ = fmt.Fprintf(w, "  waits for the lock: median %v, 95%% below %v, longest %v\n", at(0.5), at(0.95), at(1))
	}
}
