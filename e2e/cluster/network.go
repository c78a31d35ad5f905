package cluster

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// The private network. The cluster's addresses are the usual ones of a default installation.
const (
	advertised = "10.0.0.1" // of the API server: validation rejects a loopback address
	services   = "10.96.0.0/16"
	pods       = "10.244.0.0/16"
	localhost  = "127.0.0.1 localhost\n::1 localhost\n"
)

// AddName makes a host name, such as that of a Service, resolve to the loopback. There is no DNS
// server. A listener on 0.0.0.0 answers on each address of the network.
func (c *Cluster) AddName(names ...string) error {
	c.names = append(c.names, names...)
	return writeHosts(c.names)
}

// AddService makes every form of a Service's name resolve.
func (c *Cluster) AddService(namespace, name string) error {
	qualified := name + "." + namespace
	return c.AddName(qualified, qualified+".svc", qualified+".svc.cluster.local")
}

// writeHosts writes in place, since a mount point cannot be replaced.
func writeHosts(names []string) error {
	content := localhost
	if len(names) > 0 {
		content += "127.0.0.1 " + strings.Join(names, " ") + "\n"
	}
	if err := os.WriteFile("/etc/hosts", []byte(content), 0o644); err != nil {
		return fmt.Errorf("add host names: %w", err)
	}
	return nil
}

// freePort returns a free port. Nobody else takes ports in the private network.
func freePort() (int, error) {
	//nolint:noctx // it does not wait
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}
