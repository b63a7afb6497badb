// Starting and stopping the built program: everything the tests need to hold a
// running control plane.

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	startLimit = 2 * time.Minute // a busy machine; 3 to 5 s on a quiet one
	stopLimit  = 5 * time.Second // what --help promises
)

// binary is the built program's path. The tests don't import the program: linking
// kube-apiserver once more would take longer than they do.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("CONTROL_PLANE_BIN"); path != "" {
		return filepath.Abs(path)
	}
	build := exec.Command("../build")
	build.Stderr = os.Stderr
	path, err := build.Output()
	return strings.TrimSpace(string(path)), err
})

// readiness is the line that the program prints.
type readiness struct {
	Kubeconfig   string `json:"kubeconfig"`
	Server       string `json:"server"`
	APIServerPID int    `json:"apiserver_pid"`
	ReadyMS      int64  `json:"ready_ms"`
}

// instance is a started program.
type instance struct {
	readiness
	command *exec.Cmd
	stdin   io.Closer
	stdout  *bufio.Reader
	stderr  *bytes.Buffer
	admin   *rest.Config
	client  *kubernetes.Clientset
}

// launch starts the program without waiting for it and ends it with the test.
func launch(t *testing.T, dir string, args ...string) *instance {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatalf("building the control plane: %v", err)
	}
	i := &instance{command: exec.Command(path, append([]string{"--dir", dir}, args...)...), stderr: &bytes.Buffer{}}
	i.command.Stderr = i.stderr
	stdin, err := i.command.StdinPipe()
	must(t, err)
	stdout, err := i.command.StdoutPipe()
	must(t, err)
	i.stdin, i.stdout = stdin, bufio.NewReader(stdout)
	must(t, i.command.Start())
	t.Cleanup(func() { _ = i.command.Process.Kill() })
	return i
}

// start launches the program and waits until it is ready.
func start(t *testing.T, dir string, args ...string) *instance {
	t.Helper()
	i := launch(t, dir, args...)
	i.awaitReady(t)
	return i
}

// awaitReady reads the JSON line and makes the admin's client.
func (i *instance) awaitReady(t *testing.T) {
	t.Helper()
	i.readiness = readLine(t, i.stdout, func() string { _ = i.command.Wait(); return i.stderr.String() })
	t.Logf("%s is ready after %d ms", i.Server, i.ReadyMS)
	var err error
	i.admin, err = clientcmd.BuildConfigFromFlags("", i.Kubeconfig)
	must(t, err)
	i.admin.QPS = -1
	i.client, err = kubernetes.NewForConfig(i.admin)
	must(t, err)
}

// readLine parses the readiness line; why tells what to print if none comes.
func readLine(t *testing.T, stdout *bufio.Reader, why func() string) (ready readiness) {
	t.Helper()
	lines := make(chan string, 1)
	go func() {
		line, _ := stdout.ReadString('\n')
		lines <- line
	}()
	select {
	case line := <-lines:
		if line == "" {
			t.Fatalf("ended before it was ready:\n%s", why())
		}
		must(t, json.Unmarshal([]byte(line), &ready))
	case <-time.After(startLimit):
		t.Fatalf("not ready after %s", startLimit)
	}
	return ready
}

// awaitEnd checks that the program ends in time with exit code 0 and printed
// nothing after its one line.
func (i *instance) awaitEnd(t *testing.T) {
	t.Helper()
	began := time.Now()
	rest := awaitEOF(t, i.stdout)
	if rest != "" {
		t.Errorf("printed more than one line: %q", rest)
	}
	if err := i.command.Wait(); err != nil {
		t.Errorf("did not end cleanly: %v\n%s", err, i.stderr)
	}
	t.Logf("ended after %d ms", time.Since(began).Milliseconds())
}

// awaitEOF returns what is still read from stdout until its last writer is gone.
func awaitEOF(t *testing.T, stdout io.Reader) string {
	t.Helper()
	ended := make(chan string, 1)
	go func() {
		rest, _ := io.ReadAll(stdout)
		ended <- string(rest)
	}()
	select {
	case rest := <-ended:
		return rest
	case <-time.After(stopLimit):
		t.Fatalf("still running %s after it was asked to stop", stopLimit)
		return ""
	}
}

func (i *instance) terminate(t *testing.T) {
	t.Helper()
	must(t, i.command.Process.Signal(syscall.SIGTERM))
	i.awaitEnd(t)
}

// as is a client with another bearer token.
func (i *instance) as(t *testing.T, token string) *kubernetes.Clientset {
	t.Helper()
	config := rest.AnonymousClientConfig(i.admin)
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// portOf returns the port in a server's URL.
func portOf(t *testing.T, server string) string {
	t.Helper()
	var port int
	if _, err := fmt.Sscanf(server, "https://127.0.0.1:%d", &port); err != nil {
		t.Fatalf("server %q: %v", server, err)
	}
	return fmt.Sprint(port)
}
