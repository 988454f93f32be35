// Package crowd is what the two flash sales have in common: processes full of
// buyers, and the books that an auditor checks afterwards.
package crowd
