// SPDX-License-Identifier: BSD-2-Clause

// Command natra-nri limits pods where no CNI list can be changed: containerd and CRI-O tell
// it by NRI of each pod that starts, after its interface was made. README.md says more.
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/containerd/nri/pkg/stub"

	natra "github.com/OWNER/natra/tools/bindings/go"
)

// How long to wait before the runtime is called again after it has gone.
const reconnect = time.Second

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
		err = serve(newPlugin(n, log), *socket, *index, *conf)
	}
	if err != nil {
		log.Error(err.Error())
		os.Exit(1)
	}
}

// serve runs the plugin until SIGTERM. A runtime that starts the plugin itself ends it, too,
// by closing the connection; else the plugin waits until there is a runtime again.
func serve(p *plugin, socket, index, conf string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
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
		s, err := stub.New(p, options...)
		if err != nil {
			return err
		}
		p.timeout = s.RequestTimeout() / 2
		err = s.Run(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case p.refused != nil:
			return p.refused
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
