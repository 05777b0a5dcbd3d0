package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/agent-container/agent-container/guest/gateway"
	"github.com/agent-container/agent-container/spec"
)

// runGateway is the gateway, in a container of its own:
//
//	gateway          closes the namespace and serves it until it is told to stop
//	gateway check    fails unless it enforces: its rules are the kernel's, and it
//	                 proves itself to whoever is in the namespace
func runGateway(args []string) error {
	job, key, err := gatewayFill(override(spec.EnvRunDir, spec.ContainerRunDir))
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	switch {
	case len(args) == 0:
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		return gateway.Run(ctx, gateway.Config{Policy: job.Policy, Key: key, Local: job.Local, Inbound: job.Inbound, Journal: os.Stdout})
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
