package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/docent-go/docent/docs/examples/flashsale/internal/crowd"
	"github.com/docent-go/docent/recipes"
)

// shop is a stock file and a ledger. Buying reads the stock, takes its time,
// and writes it back: without a lock that works, buyers overwrite each other.
type shop struct{ stock, ledger string }

func newShop(dir string) *shop {
	return &shop{stock: filepath.Join(dir, "stock"), ledger: filepath.Join(dir, "ledger")}
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

// buy is a crowd.Purchase. It stops if the lock is lost while it is under way.
func (s *shop) buy(hold *recipes.Hold, entry crowd.Sale) (soldOut bool, err error) {
	ctx := hold.Context()
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

func (s *shop) book(entry crowd.Sale) error {
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

func (s *shop) audit(stock int) (*crowd.Books, error) {
	b := &crowd.Books{Stock: stock}
	var err error
	if b.Left, err = s.left(); err != nil {
		return nil, err
	}
	f, err := os.Open(s.ledger)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var entry crowd.Sale
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			return nil, err
		}
		b.Sales = append(b.Sales, entry)
	}
	return b, nil
}
