// Opens app.db with the emitted snippet (snippet.go), and prints each PRAGMA that the command line
// names, as two connections of the pool see it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(pragmas []string) error {
	db, err := Open()
	if err != nil {
		return err
	}
	defer db.Close()
	var found [2]map[string]string
	for i := range found {
		conn, err := db.Conn(context.Background())
		if err != nil {
			return err
		}
		// The connection is kept until the end, so that the pool opens another.
		defer conn.Close()
		found[i] = map[string]string{}
		for _, pragma := range pragmas {
			var value string
			row := conn.QueryRowContext(context.Background(), "PRAGMA "+pragma)
			if err := row.Scan(&value); err != nil {
				return fmt.Errorf("%s: %w", pragma, err)
			}
			found[i][pragma] = value
		}
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}
