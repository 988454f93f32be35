//go:build race

package grpcdocent_test

// perSecond is how many calls a load makes.
const perSecond = 50
