package main

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/wva-project/wva/e2e/cluster"
)

// The bridge leads from a port of the loopback outside to the API server inside, over a socket in
// the file system, which both sides see.
const (
	socketVariable  = "WVA_CLUSTER_SOCKET"
	addressVariable = "WVA_CLUSTER_ADDRESS" // outside
)

// openBridge listens outside and passes both addresses to the second process.
func openBridge() (func(), error) {
	socket := filepath.Join(os.TempDir(), fmt.Sprintf("wva-cluster-%d.sock", os.Getpid()))
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		return nil, err
	}
	_ = os.Setenv(socketVariable, socket) // the names are valid
	_ = os.Setenv(addressVariable, listener.Addr().String())
	go relay(listener, "unix", socket)
	return func() { _ = listener.Close() }, nil // nothing is written
}

// landBridge serves the inner end and writes the kubeconfig for outside.
func landBridge(c *cluster.Cluster, path string) (func(), error) {
	server, err := url.Parse(c.Config.Host)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", os.Getenv(socketVariable)) //nolint:noctx // it does not wait
	if err != nil {
		return nil, err
	}
	go relay(listener, "tcp", server.Host)
	file, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	for _, entry := range file.Clusters {
		entry.Server = "https://" + os.Getenv(addressVariable)
	}
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return nil, fmt.Errorf("write %s: %w; name another file with --kubeconfig", path, err)
	}
	return func() {
		_ = listener.Close() // removes the socket
		_ = os.Remove(path)
	}, nil
}

// relay carries each connection to an address, until the listener is closed.
func relay(listener net.Listener, network, address string) {
	for {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer near.Close()
			far, err := net.Dial(network, address) //nolint:noctx // a local address answers at once
			if err != nil {
				return
			}
			defer far.Close()
			go func() {
				defer far.Close() // ends the copy below
				_, _ = io.Copy(far, near)
			}()
			_, _ = io.Copy(near, far)
		}()
	}
}
