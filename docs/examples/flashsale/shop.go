package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// shop is a stock file and a ledger. Buying reads the stock, takes its time,
// and writes it back: without a lock that works, buyers overwrite each other.
type shop struct{ stock, ledger string }

func newShop(dir string) *shop {
	return &shop{stock: filepath.Join(dir, "stock"), ledger: filepath.Join(dir, "ledger")}
}

// sale is a line of the ledger.
type sale struct {
	Item   int // how many were left, this one included
	Worker int
	Buyer  string
	Token  int64         // fencing token of the hold
	Waited time.Duration // for the lock
	Held   time.Duration // until the item was paid
}

func (s *shop) open(items int) error {
	return os.WriteFile(s.stock, []byte(strconv.Itoa(items)), 0o600)
}

func (s *shop) left() (int, error) {
	b, err := os.ReadFile(s.stock)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(b))
}

// payment is the time that the till takes, in which everybody else would see
// the same stock.
const payment = time.Millisecond

func (s *shop) buy(ctx context.Context, entry sale) (soldOut bool, err error) {
	began := time.Now()
	left, err := s.left()
	if err != nil || left <= 0 {
		return true, err
	}
	select {
	case <-time.After(payment):
	case <-ctx.Done():
		return false, fmt.Errorf("purchase given up: %w", context.Cause(ctx))
	}
	if err := os.WriteFile(s.stock, []byte(strconv.Itoa(left-1)), 0o600); err != nil {
		return false, err
	}
	entry.Item, entry.Held = left, time.Since(began)
	return false, s.book(entry)
}

func (s *shop) book(entry sale) error {
	line, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(s.ledger, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// books is what an auditor finds.
type books struct {
	stock, left int
	sales       []sale
}

func (s *shop) audit(stock int) (*books, error) {
	b := &books{stock: stock}
	var err error
	if b.left, err = s.left(); err != nil {
		return nil, err
	}
	f, err := os.Open(s.ledger)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var entry sale
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			return nil, err
		}
		b.sales = append(b.sales, entry)
	}
	return b, nil
}

// err says what is wrong with the books.
func (b *books) err() error {
	var wrong []error
	if b.left != 0 {
		wrong = append(wrong, fmt.Errorf("stock is %d, want 0", b.left))
	}
	if len(b.sales) != b.stock {
		wrong = append(wrong, fmt.Errorf("%d items sold, %d were for sale", len(b.sales), b.stock))
	}
	for i, s := range b.sales {
		if want := b.stock - i; s.Item != want {
			wrong = append(wrong, fmt.Errorf("sale %d is of item %d, want item %d", i+1, s.Item, want))
			break
		}
		if i > 0 && s.Token <= b.sales[i-1].Token {
			wrong = append(wrong, fmt.Errorf("sale %d has token %d, not above %d of the sale before", i+1, s.Token, b.sales[i-1].Token))
			break
		}
	}
	return errors.Join(wrong...)
}

func (b *books) print(w io.Writer, took time.Duration) {
	perWorker := map[int]int{}
	held := map[int]time.Duration{}
	waits := make([]time.Duration, 0, len(b.sales))
	for _, s := range b.sales {
		perWorker[s.Worker]++
		held[s.Worker] += s.Held
		waits = append(waits, s.Waited)
	}
	verdict := "books are right"
	if err := b.err(); err != nil {
		verdict = "BOOKS ARE WRONG: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	_, _ = fmt.Fprintf(w, "sold %d of %d, %d left, in %v: %s\n", len(b.sales), b.stock, b.left, took.Round(time.Millisecond), verdict)
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
