package service

import (
	"fmt"
	"net"
	"strings"

	"github.com/miekg/dns"
)

// zone is the domain of the cluster.
const zone = "svc.cluster.local."

// ttl is that of answers, in seconds.
const ttl = 5

// dnsServer answers the names of Services: NAME.NAMESPACE.svc.cluster.local. Everything else does
// not exist.
type dnsServer struct {
	server *dns.Server
	ended  chan struct{}
	err    error // written before ended is closed
}

// startDNS returns once the server listens.
func startDNS(address string, resolve func(namespace, name string) ([]net.IP, bool)) (*dnsServer, error) {
	connection, err := net.ListenPacket("udp", net.JoinHostPort(address, "53")) //nolint:noctx // it does not wait
	if err != nil {
		return nil, fmt.Errorf("start the DNS server: %w", err)
	}
	started := make(chan struct{})
	d := &dnsServer{ended: make(chan struct{}), server: &dns.Server{
		PacketConn: connection, NotifyStartedFunc: func() { close(started) },
		Handler: dns.HandlerFunc(func(w dns.ResponseWriter, request *dns.Msg) { _ = w.WriteMsg(answer(request, resolve)) }),
	}}
	go func() {
		defer close(d.ended)
		d.err = d.server.ActivateAndServe()
	}()
	select {
	case <-started:
		return d, nil
	case <-d.ended:
		return nil, fmt.Errorf("start the DNS server: %w", d.err)
	}
}

func (d *dnsServer) close() {
	_ = d.server.Shutdown() // it may have ended
	<-d.ended
}

// answer answers one request. A name that exists has no addresses of another family.
func answer(request *dns.Msg, resolve func(namespace, name string) ([]net.IP, bool)) *dns.Msg {
	reply := new(dns.Msg).SetReply(request)
	reply.Authoritative, reply.RecursionAvailable = true, true
	for _, question := range request.Question {
		name, namespace, ok := split(question.Name)
		var addresses []net.IP
		if ok {
			addresses, ok = resolve(namespace, name)
		}
		if !ok {
			return reply.SetRcode(request, dns.RcodeNameError)
		}
		if question.Qtype != dns.TypeA {
			continue
		}
		header := dns.RR_Header{Name: question.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: ttl}
		for _, address := range addresses {
			reply.Answer = append(reply.Answer, &dns.A{Hdr: header, A: address})
		}
	}
	return reply
}

// split takes a Service's full name apart.
func split(full string) (name, namespace string, ok bool) {
	prefix, found := strings.CutSuffix(strings.ToLower(full), "."+zone)
	if !found {
		return "", "", false
	}
	name, namespace, found = strings.Cut(prefix, ".")
	return name, namespace, found && !strings.Contains(namespace, ".")
}
