// SPDX-License-Identifier: BSD-2-Clause

// Command cri starts and stops pods without containers, as a kubelet does.
//
//	cri SOCKET run NAME [ANNOTATION=VALUE]...   prints the id of the pod
//	cri SOCKET stop ID                          stops the pod and removes it
//	cri SOCKET status ID                        prints the state, namespace and address
//	cri SOCKET ready                            succeeds when the network is there
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
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
		return fmt.Errorf("usage: cri SOCKET run|stop|status|ready ...")
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
	case args[1] == "stop":
		return stop(ctx, client, args[2])
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
