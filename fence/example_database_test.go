package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/docent-go/docent/fence"
)

// exampleDatabase stands for a real database: it takes every statement and knows the
// newest token. The caller must call end.
func exampleDatabase() (bank fence.Database, end func()) {
	db := sql.OpenDB(&store{trace: &trace{}, rolledBack: make(chan struct{})})
	return fence.Database{DB: db, Dialect: fence.SQLite}, func() { _ = db.Close() }
}

// Short work in SQL: lock, transaction, check of the token, work, commit, release.
func ExampleTx() {
	ctx := context.Background()
	bank, end := exampleDatabase()
	defer end()
	fmt.Println(bank.Dialect.CreateTable(ctx, bank.DB)) // once, or by your migration

	lock := newLock(ctx) // any exclusive lock of package recipes
	fmt.Println(fence.Tx(ctx, lock, bank, "stock", func(ctx context.Context, tx *sql.Tx) error {
		token, ok := fence.Token(ctx, "stock")
		fmt.Println("token", token, ok)
		_, err := tx.ExecContext(ctx, "UPDATE stock SET items = items - 1 WHERE id = 7")
		return err
	}))
	// Output:
	// <nil>
	// token 7 true
	// <nil>
}

// Slow work under a hold that is there already: the token is raised before it, and each
// write is a transaction of its own.
func ExampleUnder() {
	ctx := context.Background()
	bank, end := exampleDatabase()
	defer end()
	hold := newLock(ctx).hold // any exclusive hold of package recipes
	fmt.Println(fence.Under(ctx, hold, bank, "stock", func(ctx context.Context) error {
		return bank.Tx(ctx, "stock", func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE stock SET items = 9 WHERE id = 7")
			return err
		})
	}))
	// Output: <nil>
}

// A service that checks the token itself answers as fence.Handler does.
func ExampleRefuse() {
	var gate fence.Gate
	ctx := context.Background()
	book := func(w http.ResponseWriter, token int64) {
		err := gate.Do(ctx, "stock", token, func(context.Context) error { return nil })
		if err != nil && !fence.Refuse(w, err) {
			http.Error(w, "the booking failed", http.StatusInternalServerError)
		}
	}
	for _, token := range []int64{9, 7} {
		answer := httptest.NewRecorder()
		book(answer, token)
		resp := answer.Result()
		fmt.Println(resp.StatusCode, errors.Is(fence.CheckResponse(resp), fence.ErrStale))
		_ = resp.Body.Close()
	}
	// Output:
	// 200 false
	// 412 true
}
