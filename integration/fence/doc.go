// Package fence tests docent's package fence against real databases: PostgreSQL
// and MariaDB from Debian's packages (scripts/databases.sh), and SQLite in the
// test's own process. A test starts each server in a directory and on a socket of
// its own, never as the host's service.
package fence
