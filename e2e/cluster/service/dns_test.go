package service

import (
	"net"
	"testing"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
)

// answerTo asks for one name in a cluster that has the Service wva in the namespace keda.
func answerTo(name string, kind uint16) *dns.Msg {
	request := new(dns.Msg).SetQuestion(name, kind)
	return answer(request, func(namespace, name string) ([]net.IP, bool) {
		return []net.IP{net.IPv4(10, 96, 0, 7)}, namespace == "keda" && name == "wva"
	})
}

func TestNameOfAServiceHasItsAddress(t *testing.T) {
	for _, name := range []string{"wva.keda.svc.cluster.local.", "WVA.keda.SVC.cluster.local."} {
		reply := answerTo(name, dns.TypeA)
		require.Equal(t, dns.RcodeSuccess, reply.Rcode)
		require.Len(t, reply.Answer, 1)
		require.Equal(t, "10.96.0.7", reply.Answer[0].(*dns.A).A.String())
		require.Equal(t, name, reply.Answer[0].Header().Name, "as it was asked")
	}
	reply := answerTo("wva.keda.svc.cluster.local.", dns.TypeAAAA)
	require.Equal(t, dns.RcodeSuccess, reply.Rcode, "it exists")
	require.Empty(t, reply.Answer)
}

func TestOtherNamesDoNotExist(t *testing.T) {
	for _, name := range []string{
		"other.keda.svc.cluster.local.", "wva.keda.svc.", "wva.keda.svc.keda.svc.cluster.local.", "a.wva.keda.svc.cluster.local.",
		"svc.cluster.local.", "example.com.", ".",
	} {
		require.Equal(t, dns.RcodeNameError, answerTo(name, dns.TypeA).Rcode, name)
	}
}
