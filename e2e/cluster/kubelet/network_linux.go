package kubelet

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// gateway is the address of the near end of every pod's link: the next hop of all that a pod sends.
const gateway = "169.254.1.1"

// connect gives the network namespace of a process one link, with the pod's address.
func connect(pid int, address string) error {
	// Pods reach each other through this namespace.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("forward packets: %w", err)
	}
	near := "pod" + strings.ReplaceAll(strings.TrimPrefix(address, "10.244."), ".", "x")
	if link, err := netlink.LinkByName(near); err == nil { // of the container before
		if err := netlink.LinkDel(link); err != nil {
			return err
		}
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name = near
	veth := &netlink.Veth{LinkAttrs: attributes, PeerName: "eth0", PeerNamespace: netlink.NsPid(pid)}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("add a link: %w", err)
	}
	link, err := netlink.LinkByName(near)
	if err != nil {
		return err
	}
	if err := addAddress(netlink.AddrAdd, link, gateway); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	// The table of local routes comes first, and the whole block of pods is local in it.
	err = netlink.RouteReplace(&netlink.Route{
		LinkIndex: link.Attrs().Index, Dst: host(address), Scope: netlink.SCOPE_LINK, Table: syscall.RT_TABLE_LOCAL, Type: syscall.RTN_UNICAST,
	})
	if err != nil {
		return fmt.Errorf("route to the link: %w", err)
	}
	return connectInside(pid, address)
}

// connectInside sets up the far end.
func connectInside(pid int, address string) error {
	namespace, err := netns.GetFromPid(pid)
	if err != nil {
		return err
	}
	defer namespace.Close() // nothing is written
	inside, err := netlink.NewHandleAt(namespace)
	if err != nil {
		return err
	}
	defer inside.Close()
	for _, name := range []string{"lo", "eth0"} {
		link, err := inside.LinkByName(name)
		if err != nil {
			return err
		}
		if name == "eth0" {
			if err := addAddress(inside.AddrAdd, link, address); err != nil {
				return err
			}
		}
		if err := inside.LinkSetUp(link); err != nil {
			return err
		}
		if name != "eth0" {
			continue
		}
		err = inside.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: host(gateway), Scope: netlink.SCOPE_LINK})
		if err != nil {
			return fmt.Errorf("route to the gateway: %w", err)
		}
		if err := inside.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(gateway)}); err != nil {
			return fmt.Errorf("route through the gateway: %w", err)
		}
	}
	return nil
}

// dialInside connects to the loopback of a process, as a kubelet does to forward a port.
func dialInside(ctx context.Context, pid int, port int32) (net.Conn, error) {
	inside, err := netns.GetFromPid(pid)
	if err != nil {
		return nil, err
	}
	defer inside.Close()   // nothing is written
	runtime.LockOSThread() // a socket belongs to the network namespace of the thread that makes it
	outside, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	defer outside.Close() // nothing is written
	if err := netns.Set(inside); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("enter the network of process %d: %w", pid, err)
	}
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if back := netns.Set(outside); back != nil {
		return nil, back // the thread stays locked, and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return connection, err
}

func addAddress(add func(netlink.Link, *netlink.Addr) error, link netlink.Link, address string) error {
	if err := add(link, &netlink.Addr{IPNet: host(address)}); err != nil {
		return fmt.Errorf("add %s: %w", address, err)
	}
	return nil
}

// host is the network of one address.
func host(address string) *net.IPNet {
	return &net.IPNet{IP: net.ParseIP(address).To4(), Mask: net.CIDRMask(32, 32)}
}
