package simulation

import "github.com/wva-project/wva/fleet"

// Request is one request as it arrives. Times are seconds of virtual time since the simulation
// began.
type Request struct {
	Arrival float64       // at the gateway
	Model   fleet.ModelID // that is requested
	Prompt  int           // prompt tokens, at least 1
	Output  int           // output tokens, at least 1
}
