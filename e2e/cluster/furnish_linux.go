package cluster

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/vishvananda/netlink"
)

// furnish sets up the namespaces: a directory of their own, their own DNS server, and a network in
// which every address of a service or pod is this machine's.
func furnish(directory string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount %s: %w", directory, err)
	}
	for name, content := range map[string]string{"hosts": localhost, "resolv.conf": resolver} {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
		if err := syscall.Mount(path, "/etc/"+name, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount /etc/%s: %w", name, err)
		}
	}
	// Some containers reject a fresh /proc. The old one serves, though with the process ids of
	// outside.
	_ = syscall.Mount("proc", "/proc", "proc", 0, "")
	return furnishNetwork()
}

func furnishNetwork() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find the loopback: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("set the loopback up: %w", err)
	}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(advertised), Mask: net.CIDRMask(32, 32)}}
	if err := netlink.AddrAdd(loopback, address); err != nil {
		return fmt.Errorf("add %s: %w", advertised, err)
	}
	for _, block := range []string{services, pods} {
		destination, err := netlink.ParseIPNet(block)
		if err != nil {
			return err
		}
		// A local route to a whole block: a listener on 0.0.0.0 answers on every address in it.
		route := &netlink.Route{
			LinkIndex: loopback.Attrs().Index, Dst: destination, Scope: netlink.SCOPE_HOST,
			Table: syscall.RT_TABLE_LOCAL, Type: syscall.RTN_LOCAL,
		}
		if err := netlink.RouteAdd(route); err != nil {
			return fmt.Errorf("route %s to the loopback: %w", block, err)
		}
	}
	return nil
}
