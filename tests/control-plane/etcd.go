// The embedded etcd: one member, reached through a Unix socket inside the
// directory, tuned for data that nobody needs after the run.

package main

import (
	"context"
	"errors"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd returns when etcd serves. It relies on the process being in its
// directory.
func startEtcd(ctx context.Context, quotaBytes int64) (*embed.Etcd, error) {
	store, err := embed.StartEtcd(etcdConfig(quotaBytes))
	if err != nil {
		return nil, err
	}
	select {
	case <-store.Server.ReadyNotify():
		return store, nil
	case err = <-store.Err():
	case <-store.Server.StopNotify():
		err = errors.New("stopped before it was ready")
	case <-ctx.Done():
		err = ctx.Err()
	}
	store.Close()
	return nil, err
}

func etcdConfig(quotaBytes int64) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = "control-plane", etcdDataName
	cfg.ListenClientUrls = []url.URL{socketURL(etcdSocketName)}
	// No listener for peers: there are none. The default advertised addresses
	// stay because etcd insists on host:port there; nobody dials them.
	cfg.ListenPeerUrls = nil
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)

	cfg.QuotaBackendBytes = quotaBytes
	cfg.UnsafeNoFsync = true
	cfg.EnableGRPCGateway = false
	// A lone member has nobody to wait for: a short election starts it sooner.
	cfg.TickMs, cfg.ElectionMs = 20, 200
	// kube-apiserver compacts every 5 minutes; this is for the case that a
	// caller turned that off.
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = embed.CompactorModePeriodic, "10m"

	// Embedding leaves this at 0, which logs every request.
	cfg.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	// As clusters usually set it: keeps the API server's watch caches current.
	cfg.WatchProgressNotifyInterval = 5 * time.Second

	cfg.Logger, cfg.LogLevel = "zap", "warn"
	cfg.LogOutputs = []string{"stderr"} // the log file, see output.go
	return cfg
}

// socketURL names a socket in the current directory the way both etcd's server
// and its client read it.
func socketURL(name string) url.URL { return url.URL{Scheme: "unix", Host: name} }
