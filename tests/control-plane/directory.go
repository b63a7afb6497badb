// The working directory: one process at a time, nothing stale that a caller
// could mistake for readiness, and names that stay inside it.

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Names inside the directory. The process changes into it, so that these stay
// short: a Unix socket's path may not exceed about 100 bytes.
const (
	logName        = "control-plane.log"
	kubeconfigName = "kubeconfig"
	lockName       = "lock"
	pkiName        = "pki"
	etcdDataName   = "etcd"
	etcdSocketName = "etcd.sock"
)

// claimDirectory makes dir, changes into it, locks it against a second process
// and removes an earlier run's kubeconfig. The returned function unlocks.
func claimDirectory(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chdir(dir); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(lockName, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("%s is in use by another control-plane (%w)", dir, err)
	}
	if err := os.Remove(kubeconfigName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		lock.Close()
		return nil, err
	}
	return func() { lock.Close() }, nil
}

// writeAtomically makes the whole content appear at once under name.
func writeAtomically(name string, content []byte) error {
	temporary := name + ".tmp"
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}
