// SPDX-License-Identifier: BSD-2-Clause

// Command natra-ptp is a CNI plugin that makes a pod's interface and limits it in the same
// process, so that its list needs no element for natra. It makes the interface with the
// packages that containernetworking's ptp is made of.
//
// Its keys are those of ptp without ipMasq. The rates are those of the capability
// "bandwidth": a runtime passes on the pod's annotations if the list has
// "capabilities": {"bandwidth": true}.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/containernetworking/plugins/pkg/ip"
	"github.com/containernetworking/plugins/pkg/ipam"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"

	natra "github.com/OWNER/natra/tools/bindings/go"
)

type conf struct {
	types.NetConf
	MTU           int    `json:"mtu"`
	Natractl      string `json:"natractl"` // its path, for a build without cgo
	RuntimeConfig struct {
		Bandwidth struct {
			IngressRate, EgressRate   uint64 // bit/s
			IngressBurst, EgressBurst uint64 // bits; more than 2 Gbit: the runtime's default
		}
	}
}

func read(args *skel.CmdArgs) (c conf, n *natra.Handle, target natra.Target, err error) {
	if err = json.Unmarshal(args.StdinData, &c); err != nil {
		return c, nil, target, fmt.Errorf("configuration: %w", err)
	}
	n, err = natra.New(natra.Options{Natractl: c.Natractl, KeepPrograms: true})
	return c, n, natra.Target{ID: c.Name + ":" + args.ContainerID + ":" + args.IfName,
		Ifname: args.IfName, Netns: args.Netns, Network: c.Name}, err
}

// policy has the pod's limits. The burst that runtimes ask for where a pod asks for none
// is as good as no limit, so natra's own default is taken.
func (c *conf) policy() natra.Policy {
	const limit = 1 << 31
	b := c.RuntimeConfig.Bandwidth
	p := natra.Policy{IngressRateBitsPerSec: b.IngressRate, EgressRateBitsPerSec: b.EgressRate}
	if b.IngressRate > 0 && b.IngressBurst < limit {
		p.IngressBurstBits = b.IngressBurst
	}
	if b.EgressRate > 0 && b.EgressBurst < limit {
		p.EgressBurstBits = b.EgressBurst
	}
	return p
}

func add(args *skel.CmdArgs) (err error) {
	c, n, target, err := read(args)
	if err != nil {
		return err
	}
	given, err := ipam.ExecAdd(c.IPAM.Type, args.StdinData)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = del(args)
		}
	}()
	result, err := current.NewResultFromResult(given)
	if err != nil {
		return err
	}
	if len(result.IPs) == 0 {
		return errors.New("the IPAM plugin has given no address")
	}
	if err = makeInterface(args, &c, result); err != nil {
		return err
	}
	if p := c.policy(); p.IngressRateBitsPerSec > 0 || p.EgressRateBitsPerSec > 0 {
		if _, err = n.Attach(context.Background(), target, p); err != nil {
			return err
		}
	}
	return types.PrintResult(result, c.CNIVersion)
}

// makeInterface makes a veth. The pod sends all that it sends to its gateway, which is the
// node's end, and the node has a route to the pod.
func makeInterface(args *skel.CmdArgs, c *conf, result *current.Result) error {
	if err := ip.EnableForward(result.IPs); err != nil {
		return err
	}
	var host net.Interface
	err := ns.WithNetNSPath(args.Netns, func(hostNS ns.NetNS) (err error) {
		var pod net.Interface
		if host, pod, err = ip.SetupVeth(args.IfName, c.MTU, "", hostNS); err != nil {
			return err
		}
		result.Interfaces = []*current.Interface{
			{Name: host.Name, Mac: host.HardwareAddr.String()},
			{Name: pod.Name, Mac: pod.HardwareAddr.String(), Sandbox: args.Netns},
		}
		return configurePod(args.IfName, result)
	})
	if err != nil {
		return err
	}
	// Its index is another in this namespace.
	link, err := netlink.LinkByName(host.Name)
	for i := 0; err == nil && i < len(result.IPs); i++ {
		one := result.IPs[i]
		err = netlink.AddrAdd(link, &netlink.Addr{IPNet: alone(one.Gateway)})
		if err == nil {
			err = ip.AddHostRoute(alone(one.Address.IP), nil, link)
		}
	}
	return err
}

// alone returns the block that has one address.
func alone(address net.IP) *net.IPNet {
	bits := 8 * net.IPv6len
	if v4 := address.To4(); v4 != nil {
		address, bits = v4, 8*net.IPv4len
	}
	return &net.IPNet{IP: address, Mask: net.CIDRMask(bits, bits)}
}

func configurePod(ifname string, result *current.Result) error {
	addresses := &current.Result{Interfaces: result.Interfaces}
	for _, one := range result.IPs {
		one.Interface = current.Int(1)
		addresses.IPs = append(addresses.IPs, &current.IPConfig{
			Interface: one.Interface, Address: *alone(one.Address.IP), Gateway: one.Gateway})
	}
	if err := ipam.ConfigureIface(ifname, addresses); err != nil {
		return err
	}
	link, err := netlink.LinkByName(ifname)
	for i := 0; err == nil && i < len(result.IPs); i++ {
		one := result.IPs[i]
		err = netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index,
			Dst: alone(one.Gateway), Scope: netlink.SCOPE_LINK})
		for _, route := range result.Routes {
			if err == nil && (route.Dst.IP.To4() == nil) == (one.Gateway.To4() == nil) {
				err = ip.AddRoute(&route.Dst, one.Gateway, link)
			}
		}
	}
	return err
}

func del(args *skel.CmdArgs) error {
	c, n, target, err := read(args)
	if err == nil {
		_, err = n.Detach(context.Background(), natra.Target{ID: target.ID})
	}
	if err == nil {
		err = ipam.ExecDel(c.IPAM.Type, args.StdinData)
	}
	if err != nil || args.Netns == "" {
		return err
	}
	err = ns.WithNetNSPath(args.Netns, func(ns.NetNS) error {
		_, err := ip.DelLinkByNameAddr(args.IfName)
		return err
	})
	if _, gone := err.(ns.NSPathNotExistErr); gone || errors.Is(err, ip.ErrLinkNotFound) {
		return nil
	}
	return err
}

func check(args *skel.CmdArgs) error {
	c, n, target, err := read(args)
	if err != nil {
		return err
	}
	if err := ipam.ExecCheck(c.IPAM.Type, args.StdinData); err != nil {
		return err
	}
	if p := c.policy(); p.IngressRateBitsPerSec > 0 || p.EgressRateBitsPerSec > 0 {
		return n.Check(context.Background(), target.ID, &p)
	}
	return nil
}

func main() {
	// The library attaches in the network namespace of the thread that calls it.
	runtime.LockOSThread()
	skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Check: check, Del: del}, version.All,
		"natra-ptp: makes a pod's interface and limits it")
}
