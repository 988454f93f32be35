// Package fence tests docent's package fence against real databases:
// PostgreSQL and MariaDB from Debian's packages (scripts/databases.sh), each
// started for a test in a directory and on a socket of its own and never as
// the host's service, and SQLite in the test's own process.
package fence
