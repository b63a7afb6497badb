// Stopping: what asks the process to stop, and the guarantee that it does.

package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	// stopGrace is what kube-apiserver and etcd get for an orderly end; after
	// it the process exits as it is. The promise to callers is 5 seconds.
	stopGrace = 4 * time.Second
	// parentPoll is how often the parent's identity is looked at.
	parentPoll = 250 * time.Millisecond
)

// stopContext ends on SIGTERM or SIGINT and, with exitWithParent, at the end of
// stdin or of the parent. Once it has ended the process exits within stopGrace.
func stopContext(exitWithParent bool) context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	// A reader of stdout or stderr that went away must not end the process.
	signal.Ignore(syscall.SIGPIPE)
	if exitWithParent {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
		go func() {
			waitParentGone()
			stop()
		}()
	}
	context.AfterFunc(ctx, func() {
		time.Sleep(stopGrace)
		os.Exit(0)
	})
	return ctx
}

// waitParentGone returns when this process got another parent, as happens when
// the first one dies. Linux's PR_SET_PDEATHSIG is no substitute: it fires when
// the *thread* that started this process ends, and test runners start it from
// short-lived threads.
func waitParentGone() {
	first := os.Getppid()
	for os.Getppid() == first {
		time.Sleep(parentPoll)
	}
}
