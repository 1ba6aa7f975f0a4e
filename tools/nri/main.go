// SPDX-License-Identifier: BSD-2-Clause

// Command natra-nri limits pods where no CNI list can be changed: containerd and CRI-O tell
// it by NRI of each pod that starts, after its interface was made. README.md says more.
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/containerd/nri/pkg/stub"

	natra "github.com/OWNER/natra/tools/bindings/go"
)

const (
	// How long to wait before the runtime is called again after it has gone.
	reconnect = time.Second
	// How long a connection may take to end.
	closeMost = time.Second
)

// How long the runtime may take to register the plugin and to begin to configure it, which it does at
// once: after one that is gone by then the stub waits for ever.
var configureMost = 10 * time.Second

// A thread that has entered a pod's namespace ends, but the first one cannot: /proc/self would
// lead there from then on, and the namespace would stay. So it runs main alone.
func init() { runtime.LockOSThread() }

func main() {
	socket := flag.String("socket", "", "NRI's socket (/var/run/nri/nri.sock)")
	index := flag.String("index", "", "where the plugin stands among others (90)")
	natractl := flag.String("natractl", "", "path of natractl, to run that in place of the library")
	conf := flag.String("config", "", "the configuration, in place of the runtime's file for this plugin")
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	n, err := natra.New(natra.Options{Natractl: *natractl, KeepPrograms: true,
		Log: func(level natra.Level, line string) {
			if level <= natra.LevelWarn {
				log.Warn(line)
			}
		}})
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		err = serve(ctx, newPlugin(n, log), *socket, *index, *conf)
	}
	if err != nil {
		log.Error(err.Error())
		os.Exit(1)
	}
}

// serve runs the plugin until the context ends. A runtime that starts the plugin itself ends it, too,
// by closing the connection; else the plugin waits until there is a runtime again.
func serve(ctx context.Context, p *plugin, socket, index, conf string) error {
	_, isChild := os.LookupEnv("NRI_PLUGIN_IDX")
	options := []stub.Option{stub.WithOnClose(func() {})}
	if !isChild {
		if index == "" {
			index = "90"
		}
		options = append(options, stub.WithPluginName("natra"), stub.WithPluginIdx(index))
	}
	if socket != "" {
		options = append(options, stub.WithSocketPath(socket))
	}
	if conf != "" {
		if err := p.configure(conf); err != nil {
			return err
		}
		p.isConfigured = true
	}
	go p.sweep(ctx)
	for {
		conn := make(chan net.Conn, 1)
		s, err := stub.New(p, append(slices.Clone(options), stub.WithDialer(func(path string) (net.Conn, error) {
			c, err := net.Dial("unix", path)
			if err == nil {
				conn <- c
			}
			return c, err
		}))...)
		if err != nil {
			return err
		}
		err = p.run(ctx, s)
		// A stub that waits does not close it, and the runtime is not to know the plugin twice.
		select {
		case c := <-conn:
			c.Close()
		default:
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case p.refusal() != nil:
			return p.refusal()
		case isChild:
			return err
		}
		p.log.Warn("no runtime", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reconnect):
		}
	}
}

// run serves the runtime until the connection or the context ends.
func (p *plugin) run(ctx context.Context, s stub.Stub) error {
	p.mu.Lock()
	p.requestTimeout = s.RequestTimeout
	p.mu.Unlock()
	select {
	case <-p.heard:
	default:
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	late := time.After(configureMost)
	for {
		select {
		case err := <-ended:
			return err
		case <-p.heard:
			late = nil
		case <-late:
			return errors.New("the runtime does not configure the plugin")
		case <-ctx.Done():
			select {
			case <-ended:
			case <-time.After(closeMost):
			}
			return ctx.Err()
		}
	}
}

// refusal returns why the runtime's configuration was refused; nil: it was not.
func (p *plugin) refusal() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}
