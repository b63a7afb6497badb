// Command control-plane serves a real kube-apiserver with an embedded etcd from
// one process, for the demo, the tests and the benchmarks.
//
// This file holds the order of events: prepare the directory, start etcd, start
// the API server, report readiness, wait, stop.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
)

// startTimeout bounds the wait for /readyz; a start takes seconds, but the
// machine may be busy compiling.
const startTimeout = 3 * time.Minute

func main() {
	began := time.Now()
	cfg, err := parseConfig(os.Args[1:])
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "control-plane: %v\nsee control-plane --help\n", err)
		os.Exit(2)
	}
	if err := run(cfg, began); err != nil {
		fmt.Fprintf(os.Stderr, "control-plane: %v\n", err)
		os.Exit(1)
	}
}

// run serves until it is asked to stop. Whatever goes wrong after the log was
// opened is told on the original stderr together with the end of the log.
func run(cfg *config, began time.Time) error {
	ctx := stopContext(cfg.exitWithParent)
	release, err := claimDirectory(cfg.dir)
	if err != nil {
		return err
	}
	defer release()
	streams, err := redirectOutput(logName)
	if err != nil {
		return fmt.Errorf("cannot open the log: %w", err)
	}
	err = serve(ctx, cfg, streams, began)
	if err != nil && ctx.Err() == nil {
		streams.reportFailure(err)
		os.Exit(1)
	}
	return nil
}

// serve runs etcd and the API server until ctx ends or one of them fails.
func serve(ctx context.Context, cfg *config, out *streams, began time.Time) error {
	creds, err := loadOrCreateCredentials()
	if err != nil {
		return err
	}
	listener, err := listenLoopback(cfg.port)
	if err != nil {
		return err
	}
	store, err := startEtcd(ctx, cfg.quotaBytes)
	if err != nil {
		return fmt.Errorf("etcd did not start: %w", err)
	}
	defer store.Close()

	server := startAPIServer(ctx, cfg, creds, listener)
	if err := server.waitReady(ctx, creds, startTimeout); err != nil {
		return fmt.Errorf("kube-apiserver did not get ready: %w", err)
	}
	if err := announce(cfg.dir, server.url, creds, out.stdout, began); err != nil {
		return err
	}
	select {
	case err := <-server.done:
		return fmt.Errorf("kube-apiserver ended: %w", err)
	case err := <-store.Err():
		return fmt.Errorf("etcd ended: %w", err)
	case <-ctx.Done():
		<-server.done
		return nil
	}
}
