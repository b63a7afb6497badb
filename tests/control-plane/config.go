// The command line: what a caller may choose, and the help text.

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
)

const usageHead = `control-plane serves a real kube-apiserver with an embedded etcd on 127.0.0.1.

  control-plane --dir DIR [flags] [-- KUBE-APISERVER FLAGS]

When /readyz answers 200 it writes DIR/kubeconfig (cluster admin) and prints one
JSON line to stdout, the only one it ever prints there:

  {"kubeconfig":"/abs/DIR/kubeconfig","server":"https://127.0.0.1:PORT","apiserver_pid":N,"ready_ms":N}

Everything else goes to DIR/control-plane.log; if the start fails, the end of
that log goes to stderr and the exit code is 1 (2 for a wrong command line).

SIGTERM or SIGINT stop it, within 5 seconds in any case, with exit code 0.
A later run with the same DIR keeps its objects, certificates and tokens; with
the same --port as well, old kubeconfigs go on working. Any number of instances
run side by side, each with a DIR of its own. etcd does not sync to disk: a
crash of the machine loses the data.

What is there: every built-in API (dual-stack Services, Leases, TokenRequest,
CRDs, ...), Node and RBAC authorization, a token for system:masters.
What is not: controllers, scheduler and kubelets. So nothing deletes the content
of a namespace or dependents of a deleted owner, nobody makes "default"
ServiceAccounts, and nobody lifts taints. Admission plugins that only make sense
with such controllers are off: ` + disabledAdmission + `.

Flags:
`

const usageTail = `
Everything after "--" is handed to kube-apiserver. A flag given there replaces
this program's own value of it, for example:

  control-plane --dir /tmp/cp -- --disable-admission-plugins=ServiceAccount --v=4

Relative paths in such flags are relative to DIR.
`

// config is the validated command line.
type config struct {
	dir                  string // absolute
	port                 int
	quotaBytes           int64
	serviceCIDRs         string
	maxInflight          int
	maxMutatingInflight  int
	exitWithParent       bool
	apiserverPassThrough []string
}

// flagSet binds the command line's flags to cfg.
func (cfg *config) flagSet() *pflag.FlagSet {
	fs := pflag.NewFlagSet("control-plane", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.StringVar(&cfg.dir, "dir", "",
		"directory for all data, certificates, tokens, sockets and logs; made if missing (required)")
	fs.IntVar(&cfg.port, "port", 0, "port on 127.0.0.1; 0 picks a free one")
	fs.StringVar(&cfg.serviceCIDRs, "service-cluster-ip-range", "10.96.0.0/16,fd00:10:96::/112",
		"cluster IP ranges of Services; the first one's family is the primary")
	fs.Int64Var(&cfg.quotaBytes, "quota-bytes", 8<<30,
		"size at which etcd refuses writes, in bytes (50,000 nodes need more than etcd's own default of 2 GiB)")
	fs.IntVar(&cfg.maxInflight, "max-requests-inflight", 0,
		"kube-apiserver's flag of this name; 0 leaves its default")
	fs.IntVar(&cfg.maxMutatingInflight, "max-mutating-requests-inflight", 0,
		"kube-apiserver's flag of this name; 0 leaves its default")
	fs.BoolVar(&cfg.exitWithParent, "exit-with-parent", false,
		"also stop when stdin reaches its end or the parent process is gone")
	fs.Usage = func() {
		fmt.Fprint(os.Stdout, usageHead, fs.FlagUsages(), usageTail)
	}
	return fs
}

// parseConfig reads args (without the program's name). It answers
// pflag.ErrHelp after printing the help text.
func parseConfig(args []string) (*config, error) {
	cfg := &config{}
	fs := cfg.flagSet()
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	own := fs.Args()
	if n := fs.ArgsLenAtDash(); n >= 0 {
		cfg.apiserverPassThrough, own = own[n:], own[:n]
	}
	if len(own) > 0 {
		return nil, fmt.Errorf("unexpected argument %q (kube-apiserver flags follow a \"--\")", own[0])
	}
	return cfg, cfg.validate()
}

// validate checks the values and makes dir absolute.
func (cfg *config) validate() (err error) {
	switch {
	case cfg.dir == "":
		return errors.New("--dir is required")
	case cfg.port < 0 || cfg.port > 65535:
		return fmt.Errorf("--port %d is not between 0 and 65535", cfg.port)
	case cfg.quotaBytes <= 0:
		return fmt.Errorf("--quota-bytes %d is not positive", cfg.quotaBytes)
	}
	cfg.dir, err = filepath.Abs(cfg.dir)
	return err
}
