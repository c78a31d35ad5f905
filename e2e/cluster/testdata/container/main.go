// Command container is the only program of the image that the tests of the kubelet run. It serves
// its view of its surroundings.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
)

// surroundings is the answer to /.
type surroundings struct {
	Arguments   []string
	Environment []string
	User        int
	Hostname    string
	Status      string // of the process, with its capabilities
	Read        string // the content of the file that the query names
	Error       string
}

func main() {
	var ready, failing atomic.Bool
	ready.Store(true)
	http.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if failing.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	http.HandleFunc("/unready", func(http.ResponseWriter, *http.Request) { ready.Store(false) })
	http.HandleFunc("/fail", func(http.ResponseWriter, *http.Request) { failing.Store(true) })
	http.HandleFunc("/", func(w http.ResponseWriter, request *http.Request) {
		_ = json.NewEncoder(w).Encode(see(request.FormValue("read"), request.FormValue("write")))
	})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		fmt.Println("asked to end")
		os.Exit(0)
	}()
	go func() { fmt.Println(http.ListenAndServe("127.0.0.1:8081", nil)) }()
	fmt.Println("started")
	fmt.Println(http.ListenAndServe(":8080", nil))
}

func see(read, write string) surroundings {
	var s surroundings
	s.Arguments, s.Environment, s.User = os.Args, os.Environ(), os.Getuid()
	s.Hostname, _ = os.Hostname()
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "CapEff") || strings.HasPrefix(line, "NoNewPrivs") {
			s.Status += line
		}
	}
	if read != "" {
		content, err := os.ReadFile(read)
		s.Read = string(content)
		if err != nil {
			s.Error = err.Error()
		}
	}
	if write != "" {
		if err := os.WriteFile(write, []byte("written"), 0o600); err != nil {
			s.Error = err.Error()
		}
	}
	return s
}
