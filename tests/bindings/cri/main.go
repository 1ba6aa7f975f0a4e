// SPDX-License-Identifier: BSD-2-Clause

// Command cri starts and stops pods without containers, as a kubelet does.
//
//	cri SOCKET run NAME [ANNOTATION=VALUE]...   prints the id of the pod
//	cri SOCKET start COUNT PREFIX [ANNOTATION=VALUE]...
//	                                            starts pods at the same time; prints the id of
//	                                            each and the ms until it ran, then the ms of all
//	cri SOCKET stop ID...                       stops the pods and removes them
//	cri SOCKET status ID                        prints the state, namespace and address
//	cri SOCKET ready                            succeeds when the network is there
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func command(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("usage: cri SOCKET run|start|stop|status|ready ...")
	}
	conn, err := grpc.NewClient("unix://"+args[0],
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	// A last resort: whoever starts this program sets a limit that fits what it does.
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	client := cri.NewRuntimeServiceClient(conn)
	switch {
	case args[1] == "ready":
		return ready(ctx, client)
	case len(args) < 3:
		return fmt.Errorf("%s: which pod?", args[1])
	case args[1] == "run":
		return run(ctx, client, args[2], args[3:])
	case args[1] == "start":
		return start(ctx, client, args[2:])
	case args[1] == "stop":
		return together(len(args)-2, func(i int) error { return stop(ctx, client, args[2+i]) })
	case args[1] == "status":
		return status(ctx, client, args[2])
	}
	return fmt.Errorf("%s: unknown", args[1])
}

func ready(ctx context.Context, client cri.RuntimeServiceClient) error {
	r, err := client.Status(ctx, &cri.StatusRequest{})
	if err != nil {
		return err
	}
	for _, c := range r.Status.Conditions {
		// Others are warnings.
		if (c.Type == cri.RuntimeReady || c.Type == cri.NetworkReady) && !c.Status {
			return fmt.Errorf("%s: %s", c.Type, c.Message)
		}
	}
	return nil
}

func run(ctx context.Context, client cri.RuntimeServiceClient, name string, annotations []string) error {
	id, err := sandbox(ctx, client, name, annotations)
	if err == nil {
		fmt.Println(id)
	}
	return err
}

func sandbox(ctx context.Context, client cri.RuntimeServiceClient, name string, annotations []string) (string, error) {
	pod := &cri.PodSandboxConfig{
		Metadata:    &cri.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name},
		Annotations: map[string]string{},
		Linux: &cri.LinuxPodSandboxConfig{
			SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: &cri.NamespaceOption{}},
		},
	}
	for _, a := range annotations {
		key, value, _ := strings.Cut(a, "=")
		pod.Annotations[key] = value
	}
	r, err := client.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: pod})
	return r.GetPodSandboxId(), err
}

// start starts COUNT pods, named PREFIX and a number, at the same time.
func start(ctx context.Context, client cri.RuntimeServiceClient, args []string) error {
	count, err := strconv.Atoi(args[0])
	if err != nil || count < 1 || len(args) < 2 {
		return fmt.Errorf("start: '%s' is no number of pods with a prefix", args[0])
	}
	// The first call of a connection makes it.
	if err := ready(ctx, client); err != nil {
		return err
	}
	lines := make([]string, count)
	begin := time.Now()
	err = together(count, func(i int) error {
		id, err := sandbox(ctx, client, args[1]+strconv.Itoa(i), args[2:])
		lines[i] = fmt.Sprintf("%s %.3f", id, ms(begin))
		return err
	})
	all := ms(begin)
	if err == nil {
		fmt.Printf("%s\n%.3f\n", strings.Join(lines, "\n"), all)
	}
	return err
}

func ms(begin time.Time) float64 {
	return float64(time.Since(begin).Microseconds()) / 1e3
}

// together calls do with 0 to count-1 at the same time, and returns all their errors.
func together(count int, do func(int) error) error {
	var all sync.WaitGroup
	errs, begin := make([]error, count), make(chan struct{})
	for i := range count {
		all.Add(1)
		go func() {
			defer all.Done()
			<-begin
			errs[i] = do(i)
		}()
	}
	close(begin)
	all.Wait()
	return errors.Join(errs...)
}

func stop(ctx context.Context, client cri.RuntimeServiceClient, id string) error {
	_, err := client.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: id})
	if err == nil {
		_, err = client.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: id})
	}
	return err
}

func status(ctx context.Context, client cri.RuntimeServiceClient, id string) error {
	r, err := client.PodSandboxStatus(ctx, &cri.PodSandboxStatusRequest{PodSandboxId: id, Verbose: true})
	if err != nil {
		return err
	}
	var info struct {
		RuntimeSpec struct {
			Linux struct {
				Namespaces []struct{ Type, Path string }
			}
		}
	}
	if err := json.Unmarshal([]byte(r.Info["info"]), &info); err != nil {
		return err
	}
	netns := ""
	for _, n := range info.RuntimeSpec.Linux.Namespaces {
		if n.Type == "network" {
			netns = n.Path
		}
	}
	fmt.Println(r.Status.State, netns, r.Status.Network.GetIp())
	return nil
}
