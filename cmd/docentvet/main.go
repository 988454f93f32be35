// Command docentvet finds misuse of Docent that compiles: a lock that is not released,
// work that goes on after a loss, an error that is compared in vain. It runs by itself or
// under go vet. See docs/docentvet.md.
package main

import (
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/docent-go/docent/cmd/docentvet/internal/calldone"
	"github.com/docent-go/docent/cmd/docentvet/internal/deferinloop"
	"github.com/docent-go/docent/cmd/docentvet/internal/guardless"
	"github.com/docent-go/docent/cmd/docentvet/internal/holdcontext"
	"github.com/docent-go/docent/cmd/docentvet/internal/holdleak"
	"github.com/docent-go/docent/cmd/docentvet/internal/lockintx"
	"github.com/docent-go/docent/cmd/docentvet/internal/outercontext"
	"github.com/docent-go/docent/cmd/docentvet/internal/zkerrorcompare"
)

// checks are all analyzers, in the order of docs/docentvet.md.
var checks = []*analysis.Analyzer{
	outercontext.Analyzer,
	holdcontext.Analyzer,
	holdleak.Analyzer,
	deferinloop.Analyzer,
	lockintx.Analyzer,
	guardless.Analyzer,
	zkerrorcompare.Analyzer,
	calldone.Analyzer,
}

func main() { multichecker.Main(checks...) }
