// The cloud's routing table.

package main

import (
	"context"
	"sync"

	cloudprovider "k8s.io/cloud-provider"
)

// routes are a table with one route for each destination.
type routes struct {
	cloud *cloud
	mutex sync.Mutex
	table map[string]*cloudprovider.Route
}

var _ cloudprovider.Routes = &routes{}

func (r *routes) ListRoutes(ctx context.Context, _ string) ([]*cloudprovider.Route, error) {
	if err := r.cloud.call(ctx, &r.cloud.listRoutes); err != nil {
		return nil, err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	all := make([]*cloudprovider.Route, 0, len(r.table))
	for _, route := range r.table {
		listed := *route
		all = append(all, &listed)
	}
	return all, nil
}

func (r *routes) CreateRoute(ctx context.Context, _, nameHint string, route *cloudprovider.Route) error {
	if err := r.cloud.call(ctx, &r.cloud.createRoute); err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	created := *route
	created.Name = nameHint + "-" + route.DestinationCIDR
	r.table[route.DestinationCIDR] = &created
	return nil
}

func (r *routes) DeleteRoute(ctx context.Context, _ string, route *cloudprovider.Route) error {
	if err := r.cloud.call(ctx, &r.cloud.deleteRoute); err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.table, route.DestinationCIDR)
	return nil
}
