// SPDX-License-Identifier: BSD-2-Clause

package natra_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	natra "github.com/OWNER/natra/tools/bindings/go"
)

// TestMain makes the pod of the examples. Without a kernel to change there are none.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(isolatedVariable) == "" {
		flag.Set("test.run", "^Test")
	} else if err := exec.Command("sh", "-ec", "ip netns add example;"+
		"ip link add h-example type veth peer name eth0 netns example").Run(); err != nil {
		log.Fatal("example's pod: ", err)
	}
	code := m.Run()
	if os.Getenv(isolatedVariable) != "" {
		exec.Command("sh", "-c", "ip link del h-example; ip netns del example").Run()
	}
	os.Exit(code)
}

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	n, err := natra.New(natra.Options{Natractl: os.Getenv("NATRACTL")})
	if err != nil {
		log.Fatal(err)
	}
	target := natra.Target{ID: "web", Ifname: "eth0", Netns: "example", Label: "shop/web-0"}
	info, err := n.Attach(ctx, target, natra.Policy{
		IngressRateBitsPerSec: 10e6,
		EgressRateBitsPerSec:  20e6,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Label, info.Effective.IngressRateBitsPerSec, info.Effective.EgressBurstBits)

	policy := info.Policy
	policy.IngressRateBitsPerSec = 50e6
	if err := n.Configure(ctx, info.ID, policy); err != nil {
		log.Fatal(err)
	}
	if _, err := n.Detach(ctx, natra.Target{ID: info.ID}); err != nil {
		log.Fatal(err)
	}
	all, err := n.Attachments(ctx)
	fmt.Println(len(all), err)
	// Output:
	// shop/web-0 10000000 10000000
	// 0 <nil>
}

func ExampleHandle_CheckPolicy() {
	n, err := natra.New(natra.Options{Natractl: os.Getenv("NATRACTL")})
	if err != nil {
		log.Fatal(err)
	}
	err = n.CheckPolicy(natra.Policy{IngressRateBitsPerSec: 10e6, Horizon: 10 * time.Second})
	fmt.Println(err)
	fmt.Println(errors.Is(err, syscall.EINVAL))
	// Output:
	// horizon_ns: 10000000000 is over 9000000000
	// true
}

func ExampleHandle_ParseRate() {
	n, err := natra.New(natra.Options{Natractl: os.Getenv("NATRACTL")})
	if err != nil {
		log.Fatal(err)
	}
	rate, err := n.ParseRate("1.5G")
	fmt.Println(rate, err)
	_, err = n.ParseRate("fast")
	fmt.Println(err)
	// Output:
	// 1500000000 <nil>
	// rate: "fast" is not a rate
}
