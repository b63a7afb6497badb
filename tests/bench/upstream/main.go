// Upstream's cloud-controller-manager (k8s.io/cloud-provider) with a simulated
// cloud in the same process: what `ccm-bench` runs beside ccm-core.
//
// It takes upstream's flags, and --simulated-latency: how long a call to the
// cloud takes, and --simulated-routes: whether the cloud has routes. For each line on stdin it prints how often the cloud was called,
// as one line of JSON on stdout; everything else goes to stderr. SIGTERM, SIGINT
// or the end of stdin stop it, and the last line on stdout has the final counts.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
)

func main() {
	simulated := newCloud()
	opts, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flags := cliflag.NamedFlagSets{}
	flags.FlagSet("simulated cloud").DurationVar(&simulated.latency, "simulated-latency", 20*time.Millisecond,
		"How long each call to the simulated cloud takes.")
	flags.FlagSet("simulated cloud").BoolVar(&simulated.withRoutes, "simulated-routes", false,
		"Whether the simulated cloud has a routing table.")
	found := func(*config.CompletedConfig) cloudprovider.Interface { return simulated }
	command := app.NewCloudControllerManagerCommand(
		opts, found, controllers(), names.CCMControllerAliases(), flags, stopped(simulated))
	code := cli.Run(command)
	report(simulated)
	os.Exit(code)
}

// controllers are those that ask for machines or routes, under the names that
// they have by default.
func controllers() map[string]app.ControllerInitFuncConstructor {
	chosen := map[string]app.ControllerInitFuncConstructor{}
	for _, name := range []string{names.CloudNodeController, names.CloudNodeLifecycleController, names.NodeRouteController} {
		chosen[name] = app.DefaultInitFuncConstructors[name]
	}
	return chosen
}

// stopped is closed when a signal comes or stdin ends. Until then each line on
// stdin is answered.
func stopped(simulated *cloud) <-chan struct{} {
	stop := make(chan struct{})
	once := sync.OnceFunc(func() { close(stop) })
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		once()
	}()
	go func() {
		defer once()
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			report(simulated)
		}
	}()
	return stop
}

func report(simulated *cloud) {
	line, err := json.Marshal(simulated.counts())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println(string(line))
}
