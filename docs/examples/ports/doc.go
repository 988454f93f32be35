// Package ports measures the ports in its directories beside what they replace.
package ports
