// The announcement: the admin's kubeconfig and the JSON line that callers wait
// for.

package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// readiness is the JSON line's content.
type readiness struct {
	Kubeconfig   string `json:"kubeconfig"`
	Server       string `json:"server"`
	APIServerPID int    `json:"apiserver_pid"`
	ReadyMS      int64  `json:"ready_ms"`
}

// announce writes the kubeconfig into the current directory, which is dir, and
// then the line. A reader of stdout that is gone already is no failure.
func announce(dir, server string, creds *credentials, stdout io.Writer, began time.Time) error {
	content, err := clientcmd.Write(kubeconfig(server, creds))
	if err != nil {
		return err
	}
	if err := writeAtomically(kubeconfigName, content); err != nil {
		return err
	}
	line, err := json.Marshal(readiness{
		Kubeconfig:   filepath.Join(dir, kubeconfigName),
		Server:       server,
		APIServerPID: os.Getpid(),
		ReadyMS:      time.Since(began).Milliseconds(),
	})
	if err != nil {
		return err
	}
	_, _ = stdout.Write(append(line, '\n'))
	return nil
}

// kubeconfig is self-contained: it can be copied anywhere.
func kubeconfig(server string, creds *credentials) clientcmdapi.Config {
	const name = "control-plane"
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: creds.caPEM}
	cfg.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: creds.adminToken}
	cfg.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	cfg.CurrentContext = name
	return *cfg
}
