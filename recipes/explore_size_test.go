//go:build !race

package recipes_test

// shortForm is how long the programs of TestEveryShortProgram are.
const shortForm = usual
