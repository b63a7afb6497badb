// The API server: its flags, its start inside this process, and the wait for
// its readiness.

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// disabledAdmission are plugins whose work is finished by a controller that
// does not run here: ServiceAccounts made by one, the not-ready taint lifted by
// one, protection finalizers removed by one, quotas counted by one.
const disabledAdmission = "ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection,ResourceQuota"

// serviceAccountIssuer is the issuer that most clusters use.
const serviceAccountIssuer = "https://kubernetes.default.svc.cluster.local"

// readyPoll is the time between two looks at /readyz.
const readyPoll = 50 * time.Millisecond

// apiServer is a kube-apiserver that runs in this process.
type apiServer struct {
	url  string
	done chan error // gets one value when the server has ended
}

// listenLoopback opens the listener that is handed over to kube-apiserver, so
// that a free port found is a port held.
func listenLoopback(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// startAPIServer returns at once; failures arrive on done.
func startAPIServer(ctx context.Context, cfg *config, creds *credentials, listener net.Listener) *apiServer {
	server := &apiServer{url: "https://" + listener.Addr().String(), done: make(chan error, 1)}
	go func() {
		err := runAPIServer(ctx, apiServerFlags(cfg, creds), listener)
		if err == nil {
			err = errors.New("it returned without an error")
		}
		server.done <- err
	}()
	return server
}

// runAPIServer does what kube-apiserver's own command does, with a listener
// that is already open.
func runAPIServer(ctx context.Context, args []string, listener net.Listener) error {
	opts := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range opts.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	opts.SecureServing.Listener = listener
	opts.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port

	registry := opts.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return err
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	if err := logsapi.ValidateAndApply(opts.Logs, registry.FeatureGateFor(compatibility.DefaultKubeComponent)); err != nil {
		return err
	}
	completed, err := opts.Complete(ctx)
	if err != nil {
		return err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return utilerrors.NewAggregate(errs)
	}
	return app.Run(ctx, completed)
}

// apiServerFlags are this program's own flags, less those that the caller gave
// after "--", followed by the caller's.
func apiServerFlags(cfg *config, creds *credentials) []string {
	own := []string{
		"--etcd-servers=unix://" + etcdSocketName,
		"--bind-address=127.0.0.1",
		// A loopback address can be no endpoint of the kubernetes Service.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + creds.certFile,
		"--tls-private-key-file=" + creds.keyFile,
		"--authorization-mode=Node,RBAC",
		"--token-auth-file=" + creds.tokenFile,
		"--service-account-issuer=" + serviceAccountIssuer,
		"--service-account-signing-key-file=" + creds.signingKeyFile,
		"--service-account-key-file=" + creds.signingKeyFile,
		"--service-cluster-ip-range=" + cfg.serviceCIDRs,
		"--disable-admission-plugins=" + disabledAdmission,
		"--allow-privileged=true",
		// Ends open watches at shutdown instead of waiting for their clients.
		"--shutdown-watch-termination-grace-period=1s",
	}
	if cfg.maxInflight > 0 {
		own = append(own, fmt.Sprintf("--max-requests-inflight=%d", cfg.maxInflight))
	}
	if cfg.maxMutatingInflight > 0 {
		own = append(own, fmt.Sprintf("--max-mutating-requests-inflight=%d", cfg.maxMutatingInflight))
	}
	return overrideFlags(own, cfg.apiserverPassThrough)
}

// overrideFlags drops from own every flag that is in given, too: flags with
// lists would otherwise be added up and not replaced.
func overrideFlags(own, given []string) []string {
	replaced := map[string]bool{}
	for _, flag := range given {
		replaced[flagName(flag)] = true
	}
	var merged []string
	for _, flag := range own {
		if !replaced[flagName(flag)] {
			merged = append(merged, flag)
		}
	}
	return append(merged, given...)
}

// flagName returns "--name" of "--name=value".
func flagName(flag string) string {
	name, _, _ := strings.Cut(flag, "=")
	return name
}

// waitReady returns nil when /readyz answered 200, or why it never will.
func (s *apiServer) waitReady(ctx context.Context, creds *credentials, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client := probeClient(creds.caPEM)
	defer client.CloseIdleConnections()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	last := errors.New("/readyz was never asked")
	for {
		select {
		case err := <-s.done:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%w; the last answer: %w", ctx.Err(), last)
		case <-ticker.C:
			if last = askReady(ctx, client, s.url, creds.adminToken); last == nil {
				return nil
			}
		}
	}
}

func probeClient(caPEM []byte) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(caPEM)
	return &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
	}
}

// askReady asks /readyz once, as the admin.
func askReady(ctx context.Context, client *http.Client, server, token string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	return fmt.Errorf("%s: %s", response.Status, body)
}
