// The cloud: it has a running machine for each node, the one that
// provider-simulated has for the node's name with --auto-instances.

package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	cloudprovider "k8s.io/cloud-provider"
)

var (
	machineTypes = []string{"sim.small", "sim.medium", "sim.large"}
	zones        = []string{"sim-1a", "sim-1b", "sim-1c"}
)

// cloud serves machines, and routes where asked to.
type cloud struct {
	latency     time.Duration
	routes      *routes
	withRoutes  bool
	exists      atomic.Int64
	shutdown    atomic.Int64
	metadata    atomic.Int64
	listRoutes  atomic.Int64
	createRoute atomic.Int64
	deleteRoute atomic.Int64
}

func newCloud() *cloud {
	made := &cloud{}
	made.routes = &routes{cloud: made, table: map[string]*cloudprovider.Route{}}
	return made
}

var (
	_ cloudprovider.Interface   = &cloud{}
	_ cloudprovider.InstancesV2 = &cloud{}
)

// counts are the calls so far, by method.
func (c *cloud) counts() map[string]int64 {
	return map[string]int64{
		"InstanceExists":   c.exists.Load(),
		"InstanceShutdown": c.shutdown.Load(),
		"InstanceMetadata": c.metadata.Load(),
		"ListRoutes":       c.listRoutes.Load(),
		"CreateRoute":      c.createRoute.Load(),
		"DeleteRoute":      c.deleteRoute.Load(),
	}
}

// call counts one call and takes its time.
func (c *cloud) call(ctx context.Context, count *atomic.Int64) error {
	count.Add(1)
	timer := time.NewTimer(c.latency)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *cloud) InstanceExists(ctx context.Context, _ *v1.Node) (bool, error) {
	return true, c.call(ctx, &c.exists)
}

func (c *cloud) InstanceShutdown(ctx context.Context, _ *v1.Node) (bool, error) {
	return false, c.call(ctx, &c.shutdown)
}

func (c *cloud) InstanceMetadata(ctx context.Context, node *v1.Node) (*cloudprovider.InstanceMetadata, error) {
	if err := c.call(ctx, &c.metadata); err != nil {
		return nil, err
	}
	return machine(node.Name), nil
}

// machine derives everything from the name.
func machine(name string) *cloudprovider.InstanceMetadata {
	hash := fnv1a(name)
	stem := strings.TrimRight(name, "0123456789")
	number := hash % (1 << 24)
	if n, err := strconv.ParseUint(name[len(stem):], 10, 16); err == nil {
		number = fnv1a(stem)%256*65536 + n
	}
	zone := zones[number%65536%uint64(len(zones))]
	return &cloudprovider.InstanceMetadata{
		ProviderID:   fmt.Sprintf("simulated://%s/i-%016x", zone, mix(hash)),
		InstanceType: machineTypes[mix(hash)%256%uint64(len(machineTypes))],
		Zone:         zone,
		Region:       "sim-1",
		NodeAddresses: []v1.NodeAddress{
			{Type: v1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.%d", number>>16&255, number>>8&255, number&255)},
			{Type: v1.NodeHostName, Address: name},
		},
	}
}

func fnv1a(text string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text))
	return hash.Sum64()
}

// mix is the finisher of splitmix64.
func mix(value uint64) uint64 {
	value = (value ^ value>>30) * 0xbf58476d1ce4e5b9
	value = (value ^ value>>27) * 0x94d049bb133111eb
	return value ^ value>>31
}

func (c *cloud) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {}
func (c *cloud) InstancesV2() (cloudprovider.InstancesV2, bool)                    { return c, true }
func (c *cloud) Instances() (cloudprovider.Instances, bool)                        { return nil, false }
func (c *cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool)                  { return nil, false }
func (c *cloud) Zones() (cloudprovider.Zones, bool)                                { return nil, false }
func (c *cloud) Clusters() (cloudprovider.Clusters, bool)                          { return nil, false }
func (c *cloud) Routes() (cloudprovider.Routes, bool)                              { return c.routes, c.withRoutes }
func (c *cloud) ProviderName() string                                              { return "simulated" }
func (c *cloud) HasClusterID() bool                                                { return true }
