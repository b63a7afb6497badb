// Output: the log file takes over file descriptors 1 and 2, so that neither
// kube-apiserver nor etcd nor a library can write between the JSON line; the
// original streams are kept for that line and for telling a failed start.

package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// tailBytes is how much of the log's end is shown when the start fails.
const tailBytes = 6000

// streams are the standard streams the process was started with.
type streams struct {
	stdout, stderr *os.File
	logName        string
}

// redirectOutput points descriptors 1 and 2 at the log, appending to it.
func redirectOutput(name string) (*streams, error) {
	log, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s := &streams{logName: name}
	if s.stdout, err = keepAndReplace(os.Stdout, log); err != nil {
		return nil, err
	}
	if s.stderr, err = keepAndReplace(os.Stderr, log); err != nil {
		return nil, err
	}
	s.tellCrashes()
	return s, nil
}

// keepAndReplace returns a duplicate of stream and makes stream's descriptor
// refer to replacement.
func keepAndReplace(stream, replacement *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(stream.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	kept := os.NewFile(uintptr(fd), stream.Name())
	return kept, duplicateOnto(int(replacement.Fd()), int(stream.Fd()))
}

// tellCrashes makes panics and klog's fatal errors, which would otherwise only
// reach the log, visible on the original stderr.
func (s *streams) tellCrashes() {
	_ = debug.SetCrashOutput(s.stderr, debug.CrashOptions{})
	klog.OsExit = func(code int) {
		s.reportFailure(fmt.Errorf("fatal error, exit code %d", code))
		os.Exit(code)
	}
}

// reportFailure writes err and the log's last lines to the original stderr.
func (s *streams) reportFailure(err error) {
	klog.Flush()
	fmt.Fprintf(s.stderr, "%s\ncontrol-plane: %v\n(the above is the end of %s)\n", tail(s.logName), err, absolute(s.logName))
}

// tail returns the last whole lines of a file, or the reason why it cannot.
func tail(name string) string {
	file, err := os.Open(name)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	skipped := max(0, info.Size()-tailBytes)
	content, err := io.ReadAll(io.NewSectionReader(file, skipped, tailBytes))
	if err != nil {
		return err.Error()
	}
	text := string(content)
	if _, rest, found := strings.Cut(text, "\n"); found && skipped > 0 {
		text = rest
	}
	return strings.TrimRight(text, "\n")
}
