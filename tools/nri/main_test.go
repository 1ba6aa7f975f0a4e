// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/net/multiplex"
	"github.com/containerd/nri/pkg/stub"
	"github.com/containerd/ttrpc"
)

// The runtime says how long it waits for an answer when it configures the plugin, or does not.
func TestTimeout(t *testing.T) {
	r := newRig(t)
	for says, want := range map[time.Duration]time.Duration{
		6 * time.Second: 3 * time.Second, 0: stub.DefaultRequestTimeout / 2,
	} {
		r.requestTimeout = func() time.Duration { return says }
		if _, err := r.Configure(context.Background(), "", "containerd", "2.1.0"); err != nil {
			t.Fatal(err)
		}
		if got := time.Duration(r.timeout.Load()); got != want {
			t.Errorf("%v: %v", says, got)
		}
	}
}

// half is a runtime that registers a plugin, and ends before it configures it.
type half struct{ conn net.Conn }

func (h half) RegisterPlugin(context.Context, *api.RegisterPluginRequest) (*api.Empty, error) {
	time.AfterFunc(50*time.Millisecond, func() { h.conn.Close() })
	return &api.Empty{}, nil
}

func (half) UpdateContainers(context.Context, *api.UpdateContainersRequest) (*api.UpdateContainersResponse, error) {
	return nil, syscall.ENOSYS
}

func (h half) serve(ctx context.Context) error {
	server, err := ttrpc.NewServer()
	if err != nil {
		return err
	}
	l, err := multiplex.Multiplex(h.conn).Listen(multiplex.RuntimeServiceConn)
	if err != nil {
		return err
	}
	api.RegisterRuntimeService(server, h)
	return server.Serve(ctx, l)
}

// After a runtime that has ended too early the plugin connects again, and it ends when it is told to.
func TestRuntimeThatDoesNotConfigure(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	socket := filepath.Join(filepath.Dir(r.natractl), "nri.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	defer func(before time.Duration) { configureMost = before }(configureMost)
	configureMost = 300 * time.Millisecond
	connected, ended := make(chan bool, 9), make(chan error, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			connected <- true
			go half{conn}.serve(ctx)
		}
	}()
	go func() { ended <- serve(ctx, r.plugin, socket, "", "") }()
	for range 2 {
		select {
		case <-connected:
		case <-time.After(5 * time.Second):
			t.Fatal("the plugin does not connect")
		}
	}
	time.Sleep(100 * time.Millisecond) // it waits to be configured
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(closeMost + 5*time.Second):
		t.Fatal("the plugin does not end")
	}
}
