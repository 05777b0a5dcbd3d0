package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"

	"github.com/agent-container/agent-container/guest/gateway"
	"github.com/agent-container/agent-container/spec"
)

// runGateway is the gateway, in a container of its own:
//
//	gateway          closes the namespace and serves it until it is told to stop
//	gateway check    fails unless it enforces: its rules are the kernel's, and it
//	                 proves itself to whoever is in the namespace
func runGateway(args []string) error {
	dir := override(spec.EnvRunDir, spec.ContainerRunDir)
	job, key, err := gatewayFill(dir)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	switch {
	case len(args) == 0:
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		resolvers, err := keptResolvers(dir, "/etc/resolv.conf")
		if err != nil {
			return fmt.Errorf("gateway: the resolvers: %w", err)
		}
		return gateway.Run(ctx, gateway.Config{Policy: job.Policy, Key: key, Local: job.Local, Inbound: job.Inbound, Resolvers: resolvers, Journal: os.Stdout})
	case len(args) == 1 && args[0] == "check":
		if err := gateway.Verify(job.Inbound); err != nil {
			return err
		}
		return gateway.Prove(context.Background(), key)
	}
	return errors.New("usage: gateway [check]")
}

// gatewayFill reads what the gateway's container was filled with.
func gatewayFill(dir string) (spec.GatewayJob, []byte, error) {
	var job spec.GatewayJob
	text, err := os.ReadFile(filepath.Join(dir, spec.FillGateway))
	if err != nil {
		return job, nil, err
	}
	if err := json.Unmarshal(text, &job); err != nil {
		return job, nil, fmt.Errorf("%s: %w", spec.FillGateway, err)
	}
	key, err := os.ReadFile(filepath.Join(dir, spec.FillKey))
	return job, key, err
}

// keptResolvers is the gateway's own copy of the engine's resolv.conf. It is made
// when nothing else runs in the namespace, at a start of ours, and stays for the
// starts that are not: a service that still runs then could have written another
// resolver into the engine's file, and the gateway would dial what that one says.
func keptResolvers(dir, engines string) (path string, err error) {
	path = filepath.Join(dir, spec.FileResolvers)
	if kept, err := os.ReadFile(path); err == nil && len(kept) > 0 {
		return path, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	text, err := os.ReadFile(engines)
	if err != nil {
		return "", err
	}
	return path, renameio.WriteFile(path, text, 0o600, renameio.WithTempDir(dir))
}
